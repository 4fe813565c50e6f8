//! The apply thread: takes committed entries in order, applies each, answers who waits.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
    time::{Duration, Instant},
};

use proto::{
    etcdserverpb::{AlarmRequest, AlarmType, alarm_request::AlarmAction},
    raftpb, walpb,
};
use tokio::sync::oneshot;

use crate::{
    apply::{Effect, Outcome, Response, State, cluster::conf_state},
    compactor::CompactionTask,
    convert,
    error::{ApplyError, FatalError},
    proposer::Proposer,
    raft_loop::Input,
    shared::Shared,
};

pub(crate) enum ToApply {
    Entries(Vec<raftpb::Entry>),
    Stop,
}

pub(crate) struct ApplyLoop {
    pub state: State,
    pub entries: Receiver<ToApply>,
    pub proposer: Proposer,
    pub compactor: Sender<CompactionTask>,
    pub shared: Arc<Shared>,
    pub options: ApplyOptions,
    /// The file covers the log up to here, by a record in the log.
    pub snapshot_index: u64,
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
    pub fn run(mut self) {
        while let Ok(ToApply::Entries(entries)) = self.entries.recv() {
            if let Err(error) = self.apply_all(&entries) {
                self.shared.fail(error);
                break;
            }
        }
        self.shared.close();
    }

    fn apply_all(&mut self, entries: &[raftpb::Entry]) -> Result<(), FatalError> {
        for entry in entries {
            self.apply_one(entry)?;
        }
        if let Some(last) = entries.last() {
            self.shared.set_applied_term(last.term());
            self.shared.applied.advance(last.index());
            if self.shared.leader() == 0 {
                self.proposer.send(Input::Applied);
            }
            self.maybe_snapshot(last)?;
        }
        Ok(())
    }

    fn apply_one(&mut self, entry: &raftpb::Entry) -> Result<(), FatalError> {
        let begin = Instant::now();
        let Outcome { request_id, mut result, effect } = self.state.apply(entry)?;
        let took = begin.elapsed();
        if took > self.options.slow {
            self.shared.observer.slow_apply();
            tracing::warn!(?took, expected = ?self.options.slow, index = entry.index(), "apply request took too long");
        }
        self.carry_out(effect, &mut result)?;
        if matches!(result, Err(ApplyError::NoSpace)) && !self.state.alarms.no_space() {
            // Sent before the answer, so that whoever is refused finds the alarm raised.
            self.raise_no_space();
        }
        if request_id != 0 {
            self.shared.waits.answer(request_id, || result);
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect, result: &mut Result<Response, ApplyError>) -> Result<(), FatalError> {
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
            Effect::ConfChange { change, refused } => self.conf_change(&change, refused)?,
            Effect::LeaderStart => self.promote_lessor(),
        }
        Ok(())
    }

    /// The core must have taken the change before the next entry is applied.
    fn conf_change(&mut self, change: &raftpb::ConfChange, refused: bool) -> Result<(), FatalError> {
        let (done, state) = std::sync::mpsc::channel();
        let change = convert::conf_change_to_core(change, refused);
        self.proposer.send(Input::ConfChange { change, done });
        let state = state.recv().map_err(|_| FatalError::Core("it has ended".into()))?;
        let members = conf_state(&self.state.cluster.read());
        if state.voters.iter().collect::<BTreeSet<_>>() != members.voters.iter().collect() {
            let (core, file) = (state.voters, members.voters);
            return Err(FatalError::Core(format!("it has the voters {core:x?}, but the members are {file:x?}")));
        }
        Ok(())
    }

    /// A leader's first entry is applied: all earlier ones are too, so leases may be let go from here on.
    fn promote_lessor(&mut self) {
        // Asked under the lock: if the leadership is lost after the question, the demotion comes after us.
        let mut lessor = self.state.lessor.lock();
        if self.shared.status().is_leader {
            let now = self.state.epoch.elapsed();
            lessor.promote(now, self.options.election_timeout, self.options.lease_checkpoints);
        }
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
        Ok(())
    }
}
