//! The apply thread: takes committed entries in order, applies each, answers who waits.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
    time::Duration,
};

use membership::PERSISTED_LEASE_CHECKPOINTS;
use proto::{
    Version,
    etcdserverpb::{AlarmRequest, AlarmType, alarm_request::AlarmAction},
    raftpb, walpb,
};
use tokio::sync::oneshot;

use crate::{
    apply::{Effect, Outcome, Response, State, cluster::conf_state},
    compactor::CompactionTask,
    convert,
    core::Followed,
    data_dir::DataDir,
    error::{ApplyError, FatalError},
    gate_keeper::GateKeeper,
    proposer::Proposer,
    raft_loop::Input,
    shared::Shared,
    world::Network,
};

pub(crate) enum ToApply {
    Entries(Vec<raftpb::Entry>),
    /// The state is from now on that of the database received with this snapshot. The log says so already.
    TakeOver(raftpb::SnapshotMetadata),
    /// To be sent with the database as it is now.
    SendSnapshot(Box<raftpb::Message>),
    Stop,
}

/// The core, as apply needs it: a configuration change must be taken before the next entry is applied.
pub(crate) trait FollowsChanges: Send {
    /// Hands the change at this index to the core. `None` if the core has ended.
    fn follow(&mut self, index: u64, change: raft::eraftpb::ConfChange) -> Option<Followed>;

    /// Records a snapshot and forgets the log before it. Answers with the last entry behind it that is newer than `version`.
    /// `None` if the core has ended.
    fn cut_log(&mut self, record: walpb::Snapshot, version: Version) -> Option<Option<u64>>;
}

/// The core on a thread of its own, waited for.
impl FollowsChanges for Proposer {
    fn follow(&mut self, index: u64, change: raft::eraftpb::ConfChange) -> Option<Followed> {
        let (done, followed) = std::sync::mpsc::channel();
        self.send(Input::ConfChange { index, change, done });
        followed.recv().ok()
    }

    fn cut_log(&mut self, record: walpb::Snapshot, version: Version) -> Option<Option<u64>> {
        let (done, newer) = std::sync::mpsc::channel();
        self.send(Input::CutLog { record, version, done });
        newer.recv().ok()
    }
}

pub(crate) struct ApplyLoop {
    pub state: State,
    pub entries: Receiver<ToApply>,
    pub proposer: Proposer,
    pub core: Box<dyn FollowsChanges>,
    pub compactor: Sender<CompactionTask>,
    pub shared: Arc<Shared>,
    pub keeper: Arc<GateKeeper>,
    pub options: ApplyOptions,
    pub network: Arc<dyn Network>,
    pub data_dir: DataDir,
    /// The file covers the log up to here, by a record in the log.
    pub snapshot_index: u64,
    /// The file is still above the cluster version.
    pub lower_due: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct ApplyOptions {
    pub snapshot_count: u64,
    /// Entries that take longer are logged.
    pub slow: Duration,
    pub election_timeout: Duration,
    pub lease_checkpoints: bool,
}

impl ApplyLoop {
    pub(crate) fn run(mut self) {
        if let Err(error) = self.lower_storage() {
            self.shared.fail(error);
            return self.shared.close();
        }
        while let Ok(work) = self.entries.recv() {
            match self.take(work) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.shared.fail(error);
                    break;
                }
            }
        }
        self.shared.close();
    }

    /// Does one piece of work. False if there is no more to come.
    pub(crate) fn take(&mut self, work: ToApply) -> Result<bool, FatalError> {
        match work {
            ToApply::Entries(entries) => self.apply_all(&entries)?,
            ToApply::TakeOver(metadata) => self.take_over(&metadata)?,
            ToApply::SendSnapshot(message) => self.send_snapshot(*message)?,
            ToApply::Stop => return Ok(false),
        }
        Ok(true)
    }

    /// A compaction that an earlier run, or another member's file, has begun goes on.
    pub(crate) fn resume_compaction(&self) {
        if let Some(job) = self.state.store.pending_compaction() {
            tracing::info!(compact_revision = job.revision(), "resume scheduled compaction");
            let _ = self.compactor.send(CompactionTask { job, done: oneshot::channel().0 });
        }
    }

    fn apply_all(&mut self, entries: &[raftpb::Entry]) -> Result<(), FatalError> {
        for entry in entries {
            self.apply_one(entry)?;
        }
        if let Some(last) = entries.last() {
            self.shared.applied.advance(last.index());
            // The next change may wait for this one.
            let changed = entries.iter().any(|entry| entry.r#type() != raftpb::EntryType::EntryNormal);
            if changed || self.shared.leader() == 0 {
                self.proposer.send(Input::Applied);
            }
            self.maybe_snapshot(last)?;
            if self.lower_due {
                self.lower_storage()?;
            }
        }
        Ok(())
    }

    fn apply_one(&mut self, entry: &raftpb::Entry) -> Result<(), FatalError> {
        let begin = self.state.time.now();
        let gate_before = self.state.gates.version();
        let Outcome { request_id, mut result, effect } = self.state.apply(entry)?;
        // Before what follows from the entry: the first one of a leader's term lets the leader decide.
        self.shared.set_applied_term(entry.term());
        let took = self.state.time.now().saturating_duration_since(begin);
        if took > self.options.slow {
            self.shared.observer.slow_apply();
            tracing::warn!(?took, expected = ?self.options.slow, index = entry.index(), "apply request took too long");
        }
        self.carry_out(entry.index(), effect, &mut result)?;
        if self.state.gates.version() != gate_before {
            self.follow_gate();
        }
        if matches!(result, Err(ApplyError::NoSpace)) && !self.state.alarms.no_space() {
            // Sent before the answer, so that whoever is refused finds the alarm raised.
            self.raise_no_space();
        }
        if request_id != 0 {
            self.shared.waits.answer(request_id, || result);
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        index: u64,
        effect: Effect,
        result: &mut Result<Response, ApplyError>,
    ) -> Result<(), FatalError> {
        match effect {
            Effect::None => {}
            Effect::Compact(job) => {
                let (done, finished) = oneshot::channel();
                // The compactor ends only with the node.
                let _ = self.compactor.send(CompactionTask { job, done });
                if let Ok(Response::Compaction { finished: slot, .. }) = result {
                    *slot = Some(finished);
                }
            }
            Effect::ConfChange { change, refused } => self.conf_change(index, &change, refused)?,
            Effect::LeaderStart => self.promote_lessor(),
            Effect::VersionLowered => self.lower_storage()?,
        }
        Ok(())
    }

    /// The core must have taken the change before the next entry is applied.
    fn conf_change(&mut self, index: u64, change: &raftpb::ConfChange, refused: bool) -> Result<(), FatalError> {
        let followed = self.core.follow(index, convert::conf_change_to_core(change, refused));
        match followed.ok_or_else(|| FatalError::Core("it has ended".into()))? {
            Followed::Now(configuration) => self.check_configuration(&configuration)?,
            // The members that the core counts with come with the received database.
            Followed::Superseded => {}
        }
        if !refused {
            self.follow_members();
        }
        Ok(())
    }

    /// The members and raft's configuration are one.
    fn check_configuration(&self, core: &raftpb::ConfState) -> Result<(), FatalError> {
        let members = conf_state(&self.state.cluster.read());
        let sets =
            |state: &raftpb::ConfState| [&state.voters, &state.learners].map(|ids| BTreeSet::from_iter(ids.clone()));
        let ([voters, learners], [member_voters, member_learners]) = (sets(core), sets(&members));
        if (&voters, &learners) == (&member_voters, &member_learners) {
            return Ok(());
        }
        Err(FatalError::Core(format!(
            "it has the voters {voters:x?} and the learners {learners:x?}, \
             but the members are the voters {member_voters:x?} and the learners {member_learners:x?}"
        )))
    }

    /// Tells the network who the members are. A member that finds itself removed ends, after its last answers.
    pub(crate) fn follow_members(&self) {
        let cluster = self.state.cluster.read();
        self.network.set_members(cluster.members().cloned().collect());
        self.shared.set_learner(cluster.is_local_learner());
        if cluster.is_removed(cluster.local) {
            self.proposer.send(Input::Removed);
        }
    }

    /// Gate, proposals, voters or version have changed, or may have.
    pub(crate) fn follow_gate(&self) {
        let checkpoints = self.makes_checkpoints();
        self.state.lessor.lock().set_checkpoints(self.state.time.elapsed(), checkpoints);
        self.keeper.tend();
    }

    /// The cluster's feature decides; where it is off, the flag of whoever leads.
    fn makes_checkpoints(&self) -> bool {
        self.options.lease_checkpoints || self.state.gates.has(PERSISTED_LEASE_CHECKPOINTS)
    }

    /// A leader's first entry is applied. If it is this member's own, all that earlier leaders committed is applied
    /// too, and leases may be ended from here on. If another member led, or this one did in an earlier term, later
    /// entries may still wait to be applied, and the leases of now are not known yet.
    fn promote_lessor(&mut self) {
        // Asked under the lock: if the leadership is lost after the question, the demotion follows.
        let mut lessor = self.state.lessor.lock();
        if self.shared.standing().decides_in().is_some() {
            let now = self.state.time.elapsed();
            lessor.promote(now, self.options.election_timeout, self.makes_checkpoints());
        }
        drop(lessor);
        self.keeper.tend();
    }

    fn raise_no_space(&self) {
        let member_id = self.state.cluster.read().local.0;
        tracing::warn!(alarm = "NOSPACE", "raising alarm: the database has reached its quota");
        self.proposer.send_request(proto::etcdserverpb::InternalRaftRequest {
            alarm: Some(AlarmRequest {
                action: AlarmAction::Activate as i32,
                member_id,
                alarm: AlarmType::Nospace as i32,
            }),
            ..Default::default()
        });
    }

    /// Every `snapshot_count` entries the file is committed, and the log learns that it need not be kept.
    fn maybe_snapshot(&mut self, last: &raftpb::Entry) -> Result<(), FatalError> {
        if last.index() - self.snapshot_index <= self.options.snapshot_count {
            return Ok(());
        }
        self.state.backend.commit().map_err(FatalError::Backend)?;
        let members = conf_state(&self.state.cluster.read());
        let record = walpb::Snapshot { index: Some(last.index()), term: Some(last.term()), conf_state: Some(members) };
        self.proposer.send(Input::Snapshot { record });
        tracing::info!(snapshot_index = last.index(), "saved snapshot");
        self.snapshot_index = last.index();
        self.data_dir.remove_received_before(self.snapshot_index);
        Ok(())
    }
}
