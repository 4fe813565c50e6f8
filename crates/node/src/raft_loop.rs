//! The raft thread: takes inputs, asks the core, writes the log, hands committed entries on.
//!
//! One pass takes everything that has arrived, so that one fsync covers all proposals that wait for it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use lease::Lessor;
use parking_lot::Mutex;
use proto::{raftpb, walpb};
use tokio::sync::oneshot;

use crate::{
    apply_loop::ToApply,
    core::{Core, Work},
    error::FatalError,
    shared::Shared,
    world::Log,
};

/// Proposals taken in one pass: enough to keep the disk busy, few enough to keep answers coming.
const INPUTS_PER_PASS_MAX: usize = 1024;
/// The in-memory log is compacted when it holds this many entries more than it must.
const COMPACT_SLACK: u64 = 128;

/// What may happen to the raft thread.
pub(crate) enum Input {
    Propose {
        id: u64,
        data: Bytes,
    },
    ReadIndex {
        done: oneshot::Sender<()>,
    },
    /// A configuration change has been applied; the core must follow.
    ConfChange {
        change: raft::eraftpb::ConfChange,
        done: std::sync::mpsc::Sender<raftpb::ConfState>,
    },
    /// Entries have been applied that others of the core's doings wait for.
    Applied,
    /// The file covers the log up to here.
    Snapshot {
        record: walpb::Snapshot,
    },
    /// Writes down the commit index and ends the thread.
    Stop,
}

pub(crate) struct RaftLoop<L: Log> {
    core: Core,
    log: L,
    inputs: Receiver<Input>,
    to_apply: Sender<ToApply>,
    shared: Arc<Shared>,
    lessor: Arc<Mutex<Lessor>>,
    tick: Duration,
    catch_up_entries: u64,
    /// Proposals that wait for a leader.
    held: Vec<(u64, Bytes)>,
    /// Reads by the context given to the core.
    reads: BTreeMap<u64, Vec<oneshot::Sender<()>>>,
    next_read: u64,
    /// A commit index that is not yet in the log; it goes with the next write.
    unsaved_state: Option<raftpb::HardState>,
}

impl<L: Log> RaftLoop<L> {
    #[expect(clippy::too_many_arguments, reason = "the parts of a thread, put together once")]
    pub fn new(
        core: Core,
        log: L,
        inputs: Receiver<Input>,
        to_apply: Sender<ToApply>,
        shared: Arc<Shared>,
        lessor: Arc<Mutex<Lessor>>,
        tick: Duration,
        catch_up_entries: u64,
    ) -> RaftLoop<L> {
        RaftLoop {
            core,
            log,
            inputs,
            to_apply,
            shared,
            lessor,
            tick,
            catch_up_entries,
            held: Vec::new(),
            reads: BTreeMap::new(),
            next_read: 0,
            unsaved_state: None,
        }
    }

    /// Runs until stopped or until the log cannot be written.
    pub fn run(mut self) {
        if let Err(error) = self.serve() {
            self.shared.fail(error);
        }
        self.shared.close();
    }

    fn serve(&mut self) -> Result<(), FatalError> {
        let mut next_tick = Instant::now() + self.tick;
        self.work()?;
        loop {
            let stop = self.take_inputs(next_tick)?;
            while Instant::now() >= next_tick {
                self.core.handle_tick();
                next_tick += self.tick;
                // After a long pause (a stopped process) ticks are not made up for.
                next_tick = next_tick.max(Instant::now() - self.tick);
            }
            self.work()?;
            if stop {
                return self.finish();
            }
        }
    }

    /// Waits for an input or the next tick, then takes all there is. True if asked to stop.
    fn take_inputs(&mut self, until: Instant) -> Result<bool, FatalError> {
        let mut proposals = std::mem::take(&mut self.held);
        let mut reads = Vec::new();
        let mut stop = false;
        let wait = until.saturating_duration_since(Instant::now());
        let mut next = match self.inputs.recv_timeout(wait) {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(true),
        };
        let mut taken = 0;
        while let Some(input) = next {
            match input {
                Input::Propose { id, data } => proposals.push((id, data)),
                Input::ReadIndex { done } => reads.push(done),
                Input::ConfChange { change, done } => self.conf_change(&change, &done)?,
                Input::Applied => {}
                Input::Snapshot { record } => self.snapshot(&record)?,
                Input::Stop => stop = true,
            }
            taken += 1;
            next = if taken < INPUTS_PER_PASS_MAX { self.inputs.try_recv().ok() } else { None };
        }
        self.core.handle_applied(self.shared.applied.index());
        if self.shared.leader() == 0 {
            self.core.lead_if_alone();
        }
        self.propose(proposals);
        self.read_index(reads);
        Ok(stop)
    }

    fn propose(&mut self, proposals: Vec<(u64, Bytes)>) {
        if proposals.is_empty() {
            return;
        }
        if self.core.status().leader == 0 {
            self.held = proposals;
            return;
        }
        let data = proposals.iter().map(|(_, data)| data.clone()).collect();
        if let Err(error) = self.core.handle_proposals(data) {
            tracing::warn!(%error, count = proposals.len(), "dropped proposals");
            for (id, _) in proposals {
                self.shared.waits.forget(id);
            }
        }
    }

    /// One context serves all reads that have arrived, and is never used again.
    fn read_index(&mut self, reads: Vec<oneshot::Sender<()>>) {
        if reads.is_empty() {
            return;
        }
        self.next_read += 1;
        self.reads.insert(self.next_read, reads);
        self.core.handle_read_index(self.next_read);
    }

    /// Carries out the core's work, in the order `core.rs` gives.
    fn work(&mut self) -> Result<(), FatalError> {
        while let Some(mut work) = self.core.take_work() {
            // Before anything is handed on: apply must know of a new leader when it meets its first entry.
            self.publish_status();
            self.hand_on(std::mem::take(&mut work.committed))?;
            self.answer_reads(&work);
            self.persist(&work)?;
            let (committed, state) = self.core.handle_persisted(work);
            if state.is_some() {
                self.unsaved_state = state;
            }
            self.hand_on(committed)?;
        }
        self.publish_status();
        self.compact();
        Ok(())
    }

    fn persist(&mut self, work: &Work) -> Result<(), FatalError> {
        if work.entries.is_empty() && work.hard_state.is_none() {
            return Ok(());
        }
        let state = work.hard_state.or(self.unsaved_state.take());
        self.log.append(state.as_ref(), &work.entries).map_err(FatalError::Log)?;
        if work.must_sync {
            let took = self.log.sync().map_err(FatalError::Log)?;
            self.shared.observer.log_synced(took);
        }
        self.unsaved_state = None;
        Ok(())
    }

    fn hand_on(&mut self, committed: Vec<raftpb::Entry>) -> Result<(), FatalError> {
        if committed.is_empty() {
            return Ok(());
        }
        // Whoever applies a leader's first entry asks whether this member leads, and does not ask again.
        self.publish_status();
        self.to_apply.send(ToApply::Entries(committed)).map_err(|_| FatalError::ApplyEnded)
    }

    fn answer_reads(&mut self, work: &Work) {
        for (context, index) in &work.reads {
            for done in self.reads.remove(context).into_iter().flatten() {
                self.shared.applied.when(*index, done);
            }
        }
    }

    fn conf_change(
        &mut self,
        change: &raft::eraftpb::ConfChange,
        done: &std::sync::mpsc::Sender<raftpb::ConfState>,
    ) -> Result<(), FatalError> {
        // Reads may not rely on this member alone from before the core knows of another voter.
        self.shared.clear_sole_leader();
        let state = self.core.handle_conf_change(change).map_err(|e| FatalError::Core(e.to_string()))?;
        // The apply thread waits for this; if it has ended, its own failure is on record.
        let _ = done.send(state);
        Ok(())
    }

    fn snapshot(&mut self, record: &walpb::Snapshot) -> Result<(), FatalError> {
        // A snapshot record counts only if the commit index in the log has reached it.
        if let Some(state) = self.unsaved_state.take() {
            self.log.append(Some(&state), &[]).map_err(FatalError::Log)?;
        }
        self.log.save_snapshot(record).map_err(FatalError::Log)?;
        self.log.release_to(record.index()).map_err(FatalError::Log)
    }

    fn publish_status(&mut self) {
        let status = self.core.status();
        let lost = self.shared.status().is_leader && !status.is_leader;
        self.shared.publish(status);
        if lost {
            // After publishing: see `ApplyLoop::promote_lessor`.
            self.lessor.lock().demote();
        }
    }

    fn compact(&mut self) {
        let keep = if self.core.has_other_members() { self.catch_up_entries } else { 0 };
        let applied = self.shared.applied.index();
        let must = keep + self.core.status().last.saturating_sub(applied);
        if self.core.log_len() as u64 > must + COMPACT_SLACK {
            self.core.handle_applied(applied);
            self.core.compact(applied, keep);
        }
    }

    fn finish(&mut self) -> Result<(), FatalError> {
        if let Some(state) = self.unsaved_state.take() {
            self.log.append(Some(&state), &[]).map_err(FatalError::Log)?;
        }
        self.log.sync().map_err(FatalError::Log)?;
        let _ = self.to_apply.send(ToApply::Stop);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use raft::eraftpb::{ConfState, HardState};

    use super::*;
    use crate::{core::CoreOptions, log_store::LogStore, world::Observer};

    struct NoLog;

    impl Log for NoLog {
        fn append(&mut self, _: Option<&raftpb::HardState>, _: &[raftpb::Entry]) -> Result<(), wal::Error> {
            Ok(())
        }

        fn sync(&mut self) -> Result<Duration, wal::Error> {
            Ok(Duration::ZERO)
        }

        fn save_snapshot(&mut self, _: &walpb::Snapshot) -> Result<(), wal::Error> {
            Ok(())
        }

        fn release_to(&mut self, _: u64) -> Result<(), wal::Error> {
            Ok(())
        }
    }

    /// Stands where the apply thread would: notes how many entries had been handed on when the leader became known.
    struct Look {
        entries: Mutex<Receiver<ToApply>>,
        early: Mutex<Option<usize>>,
    }

    impl Observer for Look {
        fn leader_changed(&self, leader: u64) {
            if leader != 0 {
                *self.early.lock() = Some(self.entries.lock().try_iter().count());
            }
        }
    }

    /// Otherwise the lessor of a new leader stays asleep: no lease ends, none can be renewed.
    #[test]
    fn a_leader_is_known_before_its_first_entry_is_handed_on() {
        let (to_apply, entries) = mpsc::channel();
        let look = Arc::new(Look { entries: Mutex::new(entries), early: Mutex::default() });
        let conf = ConfState { voters: vec![1], ..Default::default() };
        let store = LogStore::new((0, 0), HardState::default(), conf, Vec::new());
        let options = CoreOptions { id: 1, election_ticks: 10, pre_vote: true, applied: 0 };
        let core = Core::new(&options, store, &slog::Logger::root(slog::Discard, slog::o!())).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let backend = storage::Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
        let lessor = Lessor::load(&backend.view(), lease::Options::default()).unwrap();
        let shared = Arc::new(Shared::new(0, look.clone()));
        let (lessor, tick) = (Arc::new(Mutex::new(lessor)), Duration::from_millis(100));
        let (_inputs, inputs) = mpsc::channel();
        let mut raft = RaftLoop::new(core, NoLog, inputs, to_apply, shared.clone(), lessor, tick, 0);
        raft.work().unwrap();
        assert!(shared.status().is_leader);
        assert_eq!(*look.early.lock(), Some(0));
        assert_eq!(look.entries.lock().try_iter().count(), 1);
    }
}
