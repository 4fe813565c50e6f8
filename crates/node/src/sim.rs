//! A member that takes its steps when it is told to: the same loops as in [`Node::start`], without their threads.
//!
//! Whoever steps it decides when each loop runs, and what time it is then. One thread does everything, so a run can be
//! repeated.

mod bare_core;

use std::{
    sync::{Arc, mpsc},
    time::Instant,
};

use parking_lot::Mutex;
use proto::{Version, raftpb, walpb};

use crate::{
    apply_loop::{ApplyLoop, FollowsChanges, ToApply},
    bootstrap::StartError,
    chores::Chores,
    compactor::Compactor,
    core::{CoreStatus, Followed},
    error::FatalError,
    node::{Node, NodeOptions},
    raft_loop::{Input, RaftLoop},
    start::{Assembled, Introduction},
    wal_log::WalLog,
    world::{Network, World},
};

pub use self::bare_core::BareCore;

/// An error and its causes in one line, as a member logs them.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    crate::shared::with_causes(error)
}

/// A member in steps.
pub struct SimMember {
    node: Arc<Node>,
    raft: Arc<Mutex<RaftLoop<WalLog>>>,
    apply: ApplyLoop,
    compactor: Compactor,
    chores: Chores,
    _stop_chores: mpsc::Sender<()>,
}

/// What a step of applying did.
#[derive(Debug)]
pub enum Applied {
    /// There was nothing to do.
    Nothing,
    Entries(Vec<raftpb::Entry>),
    /// The state is now that of a received database.
    TookOver(raftpb::SnapshotMetadata),
    SentSnapshot,
    Stopped,
}

impl SimMember {
    /// Opens the data dir. What waits to be sent or applied is taken up by the first steps.
    pub fn start(
        options: NodeOptions,
        world: World,
        connect: impl FnOnce(&Introduction) -> Arc<dyn Network>,
    ) -> Result<SimMember, StartError> {
        let now = world.clock.now();
        let Assembled { node, mut raft, mut apply, compactor, chores, stop_chores } =
            Assembled::new(options, world, connect)?;
        if let Err(error) = raft.begin(now) {
            return Err(StartError::Core(error.to_string()));
        }
        let raft = Arc::new(Mutex::new(raft));
        apply.core = Box::new(Beside(raft.clone()));
        apply.lower_storage().map_err(|error| StartError::Core(error.to_string()))?;
        Ok(SimMember { node: Arc::new(node), raft, apply, compactor, chores, _stop_chores: stop_chores })
    }

    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// One pass of the raft loop. False if the member has ended.
    pub fn pass(&mut self, now: Instant) -> bool {
        let result = self.raft.lock().pass(None, now);
        let stopped = self.end_on(result, true);
        if stopped && self.node.shared.is_running() {
            self.node.shared.close();
        }
        !stopped
    }

    /// When the raft loop's next tick is due.
    pub fn next_tick(&self) -> Instant {
        self.raft.lock().next_look()
    }

    /// Applies one piece of what is committed.
    pub fn apply(&mut self) -> Applied {
        let Ok(work) = self.apply.entries.try_recv() else { return Applied::Nothing };
        let report = match &work {
            ToApply::Entries(entries) => Applied::Entries(entries.clone()),
            ToApply::TakeOver(metadata) => Applied::TookOver(metadata.clone()),
            ToApply::SendSnapshot(_) => Applied::SentSnapshot,
            ToApply::Stop => Applied::Stopped,
        };
        let result = self.apply.take(work);
        self.end_on(result, false);
        report
    }

    /// Carries out the compactions that have been applied.
    pub fn compact(&mut self) {
        while let Ok(task) = self.compactor.tasks.try_recv() {
            let result = self.compactor.carry_out(task);
            self.end_on(result, false);
        }
    }

    /// Lets ended leases go, if this member leads.
    pub fn end_leases(&self) {
        self.chores.leases();
    }

    /// Publishes and decides what is due of the feature gate.
    pub fn tend_gate(&self) {
        self.chores.keeper.tend();
    }

    /// Removes log segments that are not needed.
    pub fn purge(&self) {
        self.chores.purge();
    }

    /// Asks the core to hand the leadership on.
    pub fn transfer_leadership(&self, to: u64) {
        self.node.proposer.send(Input::TransferLeader { to });
    }

    /// Databases that this member counts as on their way to others.
    pub fn databases_under_way(&self) -> usize {
        self.raft.lock().databases_under_way()
    }

    /// Term, and whether this member leads in it.
    pub fn leads(&self) -> (u64, bool) {
        let CoreStatus { term, is_leader, .. } = *self.node.shared.standing().raft();
        (term, is_leader)
    }

    /// Asks for an orderly end: pass and apply until they have ended.
    pub fn ask_to_stop(&self) {
        self.node.proposer.send(Input::Stop);
    }

    /// As the threads do when they meet an error. Otherwise what the step returned.
    fn end_on(&self, result: Result<bool, FatalError>, on_error: bool) -> bool {
        result.unwrap_or_else(|error| {
            self.node.shared.fail(error);
            self.node.shared.close();
            on_error
        })
    }
}

/// The raft loop on the same thread, which is not in a pass while something is applied.
struct Beside(Arc<Mutex<RaftLoop<WalLog>>>);

impl FollowsChanges for Beside {
    fn follow(&mut self, index: u64, change: raft::eraftpb::ConfChange) -> Option<Followed> {
        self.0.lock().conf_change(index, &change).ok()
    }

    fn cut_log(&mut self, record: walpb::Snapshot, version: Version) -> Option<Option<u64>> {
        self.0.lock().cut_log(&record, version).ok()
    }
}
