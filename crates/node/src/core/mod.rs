//! Consensus as data in, work out: the `raft` crate behind a small face. No I/O, no clock, no threads.
//!
//! The order in which work is carried out is the contract of this file:
//! 1. `committed` entries are handed to whoever applies, in order, and `reads` are answered when their index is
//!    applied; if a configuration change is among them, [`Core::state_for_log`] is written and synced before;
//! 2. `messages` are sent at once: a leader's do not wait for its own disk;
//! 3. a `snapshot` is recorded in the log, then `entries` and `hard_state` are written, and synced if `must_sync`;
//! 4. `messages_after_sync` are sent: a follower's say what is on its disk, a candidate's whom it voted for;
//! 5. [`Core::handle_persisted`] is told, and returns what has become committed, and more messages.
//!
//! A received database is taken over by whoever applies, after step 3 and before the entries that follow it.

mod confirm;
#[cfg(test)]
mod hostile;
mod inbound;
mod outbound;
#[cfg(test)]
mod scenarios;

use bytes::Bytes;
use proto::raftpb;
use raft::{
    Config, INVALID_ID, RawNode, ReadOnlyOption, SnapshotStatus, StateRole,
    eraftpb::{ConfChange, ConfState, Message, MessageType},
};
use random::Random;
use slog::Logger;

pub(crate) use self::inbound::Refused;
use crate::{convert, log_store::LogStore};

/// As etcd's: bytes of entries in one message, and messages on their way to one member.
pub(crate) const MESSAGE_BYTES_MAX: u64 = 1024 * 1024;
const INFLIGHT_MESSAGES_MAX: usize = 512;
/// The context of a removed leader's last heartbeats. Answers repeat it.
const FAREWELL: &[u8] = b"farewell";

#[derive(Debug, Clone)]
pub(crate) struct CoreOptions {
    pub id: u64,
    pub election_ticks: usize,
    pub pre_vote: bool,
    /// Entries up to here are in the file and do not come out again.
    pub applied: u64,
    /// Election timeouts are drawn from it.
    pub seed: u64,
}

/// What to do next. See the order at the top of this file.
pub(crate) struct Work {
    /// Committed before this work was made.
    pub committed: Vec<raftpb::Entry>,
    /// Answers to [`Core::handle_read_index`]: the context and the index that must be applied.
    pub reads: Vec<(u64, u64)>,
    pub messages: Vec<raftpb::Message>,
    /// The log goes on after this one, whose database has been received.
    pub snapshot: Option<raftpb::SnapshotMetadata>,
    pub entries: Vec<raftpb::Entry>,
    pub hard_state: Option<raftpb::HardState>,
    pub must_sync: bool,
    pub messages_after_sync: Vec<raftpb::Message>,
    ready: raft::Ready,
}

/// What follows from work that is on disk.
#[derive(Default)]
pub(crate) struct Persisted {
    pub committed: Vec<raftpb::Entry>,
    /// Only its commit index moved, so it need not be synced.
    pub hard_state: Option<raftpb::HardState>,
    pub messages: Vec<raftpb::Message>,
}

/// The core's answer to a configuration change that was applied.
#[derive(Debug, PartialEq)]
pub(crate) enum Followed {
    /// This configuration follows.
    Now(raftpb::ConfState),
    /// Nothing: the core has the later configuration of a received snapshot.
    Superseded,
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
    /// This member leads, and there is no other member: nobody else can have applied an entry behind this index. `None`
    /// otherwise, also next to a learner, which may have applied and answered what the only voter has not applied yet.
    pub alone_from: Option<u64>,
    /// See [`Core::restored_to`].
    pub restored_to: u64,
}

pub(crate) struct Core {
    raw: RawNode<LogStore>,
    random: Random,
    /// Term and role for which the election timeout was drawn.
    drawn_for: (u64, StateRole),
    /// Prefix of the next read context of another member.
    next_context: u64,
    /// Reads that wait at this leader: for its first commit, or for the round of heartbeats that is under way.
    waiting_reads: Vec<Message>,
    /// The last heartbeats of a leader that was removed, to members that have not answered one.
    farewell: Vec<Message>,
    /// The only voter that was left when this leader was removed.
    heir: u64,
    /// The commit index when the configuration last changed: members that were removed know of no later commit.
    reconfigured_at: u64,
    /// The index of the newest received snapshot that is in the log.
    restored_to: u64,
}

impl Core {
    pub(crate) fn new(options: &CoreOptions, mut store: LogStore, logger: &Logger) -> raft::Result<Core> {
        store.set_applied(options.applied);
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
            // `outbound` joins appends: the crate would do it without a limit.
            batch_append: false,
            ..Config::default()
        };
        let mut core = Core {
            raw: RawNode::new(&config, store, logger)?,
            random: Random::new(options.seed),
            drawn_for: (u64::MAX, StateRole::Follower),
            next_context: 0,
            waiting_reads: Vec::new(),
            farewell: Vec::new(),
            heir: INVALID_ID,
            reconfigured_at: 0,
            restored_to: 0,
        };
        core.draw_timeout();
        core.lead_if_alone();
        Ok(core)
    }

    /// A member that alone decides need not wait for an election timeout, once it has applied who decides. The crate
    /// panics if a member is elected before its log is on disk.
    pub(crate) fn lead_if_alone(&mut self) {
        let raft = &self.raw.raft;
        let leads = raft.state == StateRole::Leader;
        let log = &raft.raft_log;
        let is_settled = log.applied() == log.committed && log.persisted == log.last_index();
        if !leads && raft.promotable() && raft.prs().is_singleton() && is_settled {
            // Refused only for reasons that an election timeout later may be gone.
            let _ = self.raw.campaign();
            self.draw_timeout();
        }
    }

    pub(crate) fn handle_tick(&mut self) {
        self.raw.tick();
        self.draw_timeout();
        self.say_farewell();
    }

    /// Proposes entries, all or none. Without a leader they are refused; a follower sends them to the leader.
    pub(crate) fn handle_proposals(&mut self, data: Vec<Bytes>) -> raft::Result<()> {
        self.propose(data.into_iter().map(convert::proposal).collect())
    }

    pub(crate) fn handle_conf_change_proposal(&mut self, change: Bytes) -> raft::Result<()> {
        self.propose(vec![convert::conf_change_proposal(change)])
    }

    fn propose(&mut self, entries: Vec<raft::eraftpb::Entry>) -> raft::Result<()> {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgPropose);
        message.from = self.raw.raft.id;
        message.set_entries(entries.into());
        self.raw.raft.step(message)
    }

    /// Whether a configuration change may still be under way: the crate would make nothing of another one.
    pub(crate) fn awaits_conf_change(&self) -> bool {
        self.raw.raft.state == StateRole::Leader && self.raw.raft.has_pending_conf()
    }

    pub(crate) fn handle_applied(&mut self, index: u64) {
        if index > self.raw.raft.raft_log.applied() {
            self.raw.advance_apply_to(index);
            self.raw.mut_store().set_applied(index);
        }
    }

    /// The index of the newest snapshot that the core has received: its log and configuration go on from there, while
    /// older entries may still wait to be applied.
    fn restored_to(&self) -> u64 {
        // The core takes the configuration with the message, before the snapshot is in the log.
        let arrived = self.raw.snap().map_or(0, |snapshot| snapshot.get_metadata().index);
        arrived.max(self.restored_to)
    }

    /// The configuration change at `index` is applied.
    pub(crate) fn handle_conf_change(&mut self, index: u64, change: &ConfChange) -> raft::Result<Followed> {
        if index <= self.restored_to() {
            return Ok(Followed::Superseded);
        }
        let state: ConfState = self.raw.apply_conf_change(change)?;
        let out = convert::conf_state_from_core(&state);
        self.raw.mut_store().set_conf_state(state);
        self.reconfigured_at = self.raw.raft.raft_log.committed;
        self.step_down_if_removed();
        Ok(Followed::Now(out))
    }

    /// A leader that is no longer a voter would count itself among those who acknowledge, which the crate does not survive.
    /// The others elect a new one; if only one is left, it must know that it is, so it is told for as long as this member
    /// is there.
    fn step_down_if_removed(&mut self) {
        let raft = &mut self.raw.raft;
        if raft.state != StateRole::Leader || raft.promotable() {
            return;
        }
        let (id, term, committed) = (raft.id, raft.term, raft.raft_log.committed);
        let beat = |(to, progress): (&u64, &raft::Progress)| {
            let mut message = Message { to: *to, from: id, term, ..Default::default() };
            message.commit = progress.matched.min(committed);
            message.context = FAREWELL.into();
            message.set_msg_type(MessageType::MsgHeartbeat);
            message
        };
        self.farewell = raft.prs().iter().filter(|(to, _)| **to != id).map(beat).collect();
        if let [heir] = raft.prs().conf().to_conf_state().voters[..] {
            self.heir = heir;
        }
        raft.become_follower(term, INVALID_ID);
        self.draw_timeout();
        self.say_farewell();
    }

    fn say_farewell(&mut self) {
        let raft = &mut self.raw.raft;
        self.farewell.retain(|message| message.term == raft.term);
        raft.msgs.extend(self.farewell.iter().cloned());
    }

    /// A member has answered a farewell, and so knows of its commit index.
    fn note_farewell(&mut self, answer: &Message) {
        if answer.get_msg_type() == MessageType::MsgHeartbeatResponse && answer.context == FAREWELL {
            self.farewell.retain(|sent| sent.to != answer.from || sent.term != answer.term);
        }
    }

    /// Whether the only voter that is left may not know that this leader's removal is committed. It would then wait for
    /// this member's vote without end.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.farewell.iter().any(|message| message.to == self.heir && message.term == self.raw.raft.term)
    }

    pub(crate) fn handle_unreachable(&mut self, id: u64) {
        self.raw.report_unreachable(id);
    }

    pub(crate) fn handle_snapshot_sent(&mut self, id: u64, sent: bool) {
        self.raw.report_snapshot(id, if sent { SnapshotStatus::Finish } else { SnapshotStatus::Failure });
    }

    pub(crate) fn handle_transfer(&mut self, to: u64) {
        self.raw.transfer_leader(to);
    }

    pub(crate) fn take_work(&mut self) -> Option<Work> {
        self.begin_reads();
        if !self.raw.has_ready() {
            return None;
        }
        let mut ready = self.raw.ready();
        let reads = ready
            .take_read_states()
            .into_iter()
            .filter_map(|r| Some((u64::from_be_bytes(r.request_ctx.try_into().ok()?), r.index)))
            .collect();
        let snapshot = ready.snapshot();
        Some(Work {
            entries: ready.entries().iter().map(convert::entry_from_core).collect(),
            hard_state: ready.hs().map(convert::hard_state_from_core),
            must_sync: ready.must_sync(),
            snapshot: (!snapshot.is_empty()).then(|| convert::snapshot_from_core(snapshot).metadata).flatten(),
            committed: ready.take_committed_entries().iter().map(convert::entry_from_core).collect(),
            reads,
            messages: outbound::outgoing(ready.take_messages()),
            messages_after_sync: outbound::outgoing(ready.take_persisted_messages()),
            ready,
        })
    }

    /// The work is on disk.
    pub(crate) fn handle_persisted(&mut self, mut work: Work) -> Persisted {
        if let Some(state) = work.ready.hs().cloned() {
            self.raw.mut_store().set_hard_state(state);
        }
        let snapshot = work.snapshot.as_ref().map(|_| work.ready.snapshot().get_metadata().clone());
        if let Some(metadata) = &snapshot {
            self.raw.mut_store().apply_snapshot(metadata);
        }
        let entries = work.ready.take_entries();
        self.raw.mut_store().append(entries);
        let mut light = self.raw.advance_append(work.ready);
        if let Some(metadata) = &snapshot {
            // Its configuration counts from now on, and the entries before it are gone. Should this member stand for election
            // before the database is in place, the core must not look for them.
            self.raw.advance_apply_to(metadata.index);
            self.restored_to = metadata.index;
        }
        let hard_state = light.commit_index().map(|_| {
            let state = self.raw.raft.hard_state();
            self.raw.mut_store().set_hard_state(state.clone());
            convert::hard_state_from_core(&state)
        });
        Persisted {
            committed: light.take_committed_entries().iter().map(convert::entry_from_core).collect(),
            hard_state,
            messages: outbound::outgoing(light.take_messages()),
        }
    }

    /// The state as the log may have it now: committed entries that are not on disk yet do not count. Its commit index
    /// is never below that of an earlier state.
    pub(crate) fn state_for_log(&self) -> raftpb::HardState {
        let log = &self.raw.raft.raft_log;
        let commit = Some(log.committed.min(log.persisted));
        raftpb::HardState { commit, ..convert::hard_state_from_core(&self.raw.raft.hard_state()) }
    }

    /// Forgets log entries up to `index`, keeping `keep` of them for members that lag.
    pub(crate) fn compact(&mut self, index: u64, keep: u64) {
        self.raw.mut_store().compact(index.saturating_sub(keep));
    }

    /// What is in the log after `index`.
    pub(crate) fn entries_after(&self, index: u64) -> impl Iterator<Item = raftpb::Entry> + '_ {
        self.raw.store().entries_after(index).map(convert::entry_from_core)
    }

    pub(crate) fn log_len(&self) -> usize {
        self.raw.store().len()
    }

    pub(crate) fn has_other_members(&self) -> bool {
        self.raw.raft.prs().iter().any(|(id, _)| *id != self.raw.raft.id)
    }

    /// How far each member's log is known to match the leader's. Empty on others.
    pub(crate) fn progress(&self) -> Vec<(u64, u64)> {
        let raft = &self.raw.raft;
        if raft.state != StateRole::Leader {
            return Vec::new();
        }
        raft.prs().iter().map(|(id, progress)| (*id, progress.matched)).collect()
    }

    pub(crate) fn status(&self) -> CoreStatus {
        let raft = &self.raw.raft;
        let is_leader = raft.state == StateRole::Leader;
        CoreStatus {
            term: raft.term,
            leader: if raft.leader_id == INVALID_ID { 0 } else { raft.leader_id },
            is_leader,
            commit: raft.raft_log.committed,
            last: raft.raft_log.last_index(),
            alone_from: (is_leader && !self.has_other_members()).then_some(self.reconfigured_at),
            restored_to: self.restored_to(),
        }
    }

    /// The crate draws election timeouts from a random source of its own; ours replaces them, so that a run can be
    /// repeated from its seed.
    fn draw_timeout(&mut self) {
        let now = (self.raw.raft.term, self.raw.raft.state);
        if now != self.drawn_for {
            self.drawn_for = now;
            let ticks = self.raw.raft.election_timeout();
            let timeout = ticks + self.random.below(ticks as u64) as usize;
            self.raw.raft.set_randomized_election_timeout(timeout);
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
        let options = CoreOptions { id: 1, election_ticks: 10, pre_vote: true, applied: 0, seed: 1 };
        Core::new(&options, store, &Logger::root(slog::Discard, slog::o!())).unwrap()
    }

    fn run(core: &mut Core) -> Vec<raftpb::Entry> {
        let mut out = Vec::new();
        while let Some(mut work) = core.take_work() {
            out.append(&mut work.committed);
            out.extend(core.handle_persisted(work).committed);
        }
        out
    }

    #[test]
    fn a_sole_voter_leads_at_once() {
        let mut core = core();
        let committed = run(&mut core);
        assert_eq!(committed.len(), 1);
        assert!(committed[0].data.is_none(), "a new leader's first entry is empty");
        assert_eq!(core.status().alone_from, Some(0));
    }

    #[test]
    fn proposals_commit_only_when_persisted() {
        let mut core = core();
        run(&mut core);
        core.handle_proposals(vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")]).unwrap();
        let work = core.take_work().unwrap();
        assert_eq!((work.entries.len(), work.committed.len(), work.must_sync), (2, 0, true));
        let done = core.handle_persisted(work);
        assert_eq!(done.committed.iter().map(|e| e.index()).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(done.hard_state.unwrap().commit(), 3);
    }

    /// A learner may have applied and answered what the only voter has committed and not applied.
    #[test]
    fn with_a_learner_nobody_is_alone() {
        let mut core = core();
        run(&mut core);
        let mut change = ConfChange::default();
        change.set_change_type(raft::eraftpb::ConfChangeType::AddLearnerNode);
        change.node_id = 2;
        core.handle_conf_change(2, &change).unwrap();
        assert!(core.status().is_leader);
        assert_eq!(core.status().alone_from, None);
    }

    #[test]
    fn reads_are_answered_with_the_commit_index() {
        let mut core = core();
        run(&mut core);
        core.handle_read_index(77);
        assert_eq!(core.take_work().unwrap().reads, [(77, 1)]);
    }
}
