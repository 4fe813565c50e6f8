//! Consensus as data in, work out: the `raft` crate behind a small face. No I/O, no clock, no threads.
//!
//! The order in which work is carried out is the contract of this file:
//! 1. `messages` may be sent at once (a leader's do not wait for its own disk);
//! 2. `entries` and `hard_state` are written, and synced if `must_sync`;
//! 3. [`Core::handle_persisted`] is told, and returns what has become committed;
//! 4. committed entries are applied, in order, by whoever applies.

use bytes::Bytes;
use proto::raftpb;
use raft::{
    Config, INVALID_ID, RawNode, ReadOnlyOption, StateRole,
    eraftpb::{ConfChange, ConfState, Message, MessageType},
};
use slog::Logger;

use crate::{convert, log_store::LogStore};

/// As etcd's: bytes of entries in one message, and messages on their way to one member.
const MESSAGE_BYTES_MAX: u64 = 1024 * 1024;
const INFLIGHT_MESSAGES_MAX: usize = 512;

#[derive(Debug, Clone)]
pub(crate) struct CoreOptions {
    pub id: u64,
    pub election_ticks: usize,
    pub pre_vote: bool,
    /// Entries up to here are in the file and do not come out again.
    pub applied: u64,
}

/// What to do next. See the order at the top of this file.
pub(crate) struct Work {
    pub entries: Vec<raftpb::Entry>,
    pub hard_state: Option<raftpb::HardState>,
    pub must_sync: bool,
    /// Committed before this work was made.
    pub committed: Vec<raftpb::Entry>,
    /// Answers to [`Core::handle_read_index`]: the context and the index that must be applied.
    pub reads: Vec<(u64, u64)>,
    ready: raft::Ready,
}

/// Where the core stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CoreStatus {
    pub term: u64,
    /// 0 if there is none.
    pub leader: u64,
    pub is_leader: bool,
    pub commit: u64,
    pub last: u64,
    /// This member is the leader, alone decides, and has committed in its term.
    pub is_sole_leader: bool,
}

pub(crate) struct Core {
    raw: RawNode<LogStore>,
}

impl Core {
    pub fn new(options: &CoreOptions, store: LogStore, logger: &Logger) -> raft::Result<Core> {
        let config = Config {
            id: options.id,
            election_tick: options.election_ticks,
            heartbeat_tick: 1,
            applied: options.applied,
            max_size_per_msg: MESSAGE_BYTES_MAX,
            max_inflight_msgs: INFLIGHT_MESSAGES_MAX,
            check_quorum: true,
            pre_vote: options.pre_vote,
            read_only_option: ReadOnlyOption::Safe,
            max_committed_size_per_ready: MESSAGE_BYTES_MAX,
            ..Config::default()
        };
        let mut core = Core { raw: RawNode::new(&config, store, logger)? };
        core.lead_if_alone();
        Ok(core)
    }

    /// A member that alone decides need not wait for an election timeout, once it has applied who decides.
    pub fn lead_if_alone(&mut self) {
        let raft = &self.raw.raft;
        let leads = raft.state == StateRole::Leader;
        let log = &raft.raft_log;
        if !leads && raft.promotable() && raft.prs().is_singleton() && log.applied() == log.committed {
            // Refused only for reasons that an election timeout later may be gone.
            let _ = self.raw.campaign();
        }
    }

    pub fn handle_tick(&mut self) {
        self.raw.tick();
    }

    /// Proposes entries, all or none. Without a leader they are refused.
    pub fn handle_proposals(&mut self, data: Vec<Bytes>) -> raft::Result<()> {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgPropose);
        message.from = self.raw.raft.id;
        message.set_entries(data.into_iter().map(convert::proposal).collect::<Vec<_>>().into());
        self.raw.raft.step(message)
    }

    /// Asks for an index at which a read is linearizable. `context` must never be used twice: the core would take a
    /// late confirmation of the first for one of the second.
    pub fn handle_read_index(&mut self, context: u64) {
        self.raw.read_index(context.to_be_bytes().to_vec());
    }

    pub fn handle_applied(&mut self, index: u64) {
        if index > self.raw.raft.raft_log.applied() {
            self.raw.advance_apply_to(index);
        }
    }

    pub fn handle_conf_change(&mut self, change: &ConfChange) -> raft::Result<raftpb::ConfState> {
        let state: ConfState = self.raw.apply_conf_change(change)?;
        let out = convert::conf_state_from_core(&state);
        self.raw.mut_store().set_conf_state(state);
        Ok(out)
    }

    pub fn take_work(&mut self) -> Option<Work> {
        if !self.raw.has_ready() {
            return None;
        }
        let mut ready = self.raw.ready();
        let reads = ready
            .take_read_states()
            .into_iter()
            .filter_map(|r| Some((u64::from_be_bytes(r.request_ctx.try_into().ok()?), r.index)))
            .collect();
        Some(Work {
            entries: ready.entries().iter().map(convert::entry_from_core).collect(),
            hard_state: ready.hs().map(convert::hard_state_from_core),
            must_sync: ready.must_sync(),
            committed: ready.take_committed_entries().iter().map(convert::entry_from_core).collect(),
            reads,
            ready,
        })
    }

    /// The work is on disk. Returns what has become committed by it, and the hard state if only its commit index
    /// moved (it need not be synced).
    pub fn handle_persisted(&mut self, mut work: Work) -> (Vec<raftpb::Entry>, Option<raftpb::HardState>) {
        if let Some(state) = work.ready.hs().cloned() {
            self.raw.mut_store().set_hard_state(state);
        }
        let entries = work.ready.take_entries();
        self.raw.mut_store().append(entries);
        let mut light = self.raw.advance_append(work.ready);
        let state = light.commit_index().map(|_| {
            let state = self.raw.raft.hard_state();
            self.raw.mut_store().set_hard_state(state.clone());
            convert::hard_state_from_core(&state)
        });
        let committed = light.take_committed_entries().iter().map(convert::entry_from_core).collect();
        (committed, state)
    }

    /// Forgets log entries up to `index`, keeping `keep` of them for members that lag.
    pub fn compact(&mut self, index: u64, keep: u64) {
        self.raw.mut_store().compact(index.saturating_sub(keep));
    }

    pub fn log_len(&self) -> usize {
        self.raw.store().len()
    }

    pub fn has_other_members(&self) -> bool {
        self.raw.raft.prs().iter().any(|(id, _)| *id != self.raw.raft.id)
    }

    pub fn status(&self) -> CoreStatus {
        let raft = &self.raw.raft;
        let is_leader = raft.state == StateRole::Leader;
        CoreStatus {
            term: raft.term,
            leader: if raft.leader_id == INVALID_ID { 0 } else { raft.leader_id },
            is_leader,
            commit: raft.raft_log.committed,
            last: raft.raft_log.last_index(),
            is_sole_leader: is_leader && raft.prs().is_singleton() && raft.commit_to_current_term(),
        }
    }
}

#[cfg(test)]
mod tests {
    use raft::eraftpb::HardState;

    use super::*;

    fn core() -> Core {
        let conf = ConfState { voters: vec![1], ..Default::default() };
        let store = LogStore::new((0, 0), HardState::default(), conf, Vec::new());
        let options = CoreOptions { id: 1, election_ticks: 10, pre_vote: true, applied: 0 };
        Core::new(&options, store, &Logger::root(slog::Discard, slog::o!())).unwrap()
    }

    fn run(core: &mut Core) -> Vec<raftpb::Entry> {
        let mut out = Vec::new();
        while let Some(mut work) = core.take_work() {
            out.append(&mut work.committed);
            out.extend(core.handle_persisted(work).0);
        }
        out
    }

    #[test]
    fn a_sole_voter_leads_at_once() {
        let mut core = core();
        let committed = run(&mut core);
        assert_eq!(committed.len(), 1);
        assert!(committed[0].data.is_none(), "a new leader's first entry is empty");
        assert!(core.status().is_sole_leader);
    }

    #[test]
    fn proposals_commit_only_when_persisted() {
        let mut core = core();
        run(&mut core);
        core.handle_proposals(vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")]).unwrap();
        let work = core.take_work().unwrap();
        assert_eq!((work.entries.len(), work.committed.len(), work.must_sync), (2, 0, true));
        let (committed, state) = core.handle_persisted(work);
        assert_eq!(committed.iter().map(|e| e.index()).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(state.unwrap().commit(), 3);
    }

    #[test]
    fn reads_are_answered_with_the_commit_index() {
        let mut core = core();
        run(&mut core);
        core.handle_read_index(77);
        assert_eq!(core.take_work().unwrap().reads, [(77, 1)]);
    }
}
