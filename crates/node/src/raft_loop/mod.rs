//! The raft thread: takes inputs, asks the core, writes the log, sends messages, hands committed entries on.
//!
//! One pass takes everything that has arrived, so that one fsync covers all proposals that wait for it.

mod propose;
#[cfg(test)]
mod tests;
mod work;

use std::{
    borrow::Cow,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use lease::Lessor;
use membership::{Cluster, VersionsAhead};
use parking_lot::{Mutex, RwLock};
use proto::{Version, raftpb, walpb};
use tokio::sync::oneshot;

use crate::{
    apply_loop::ToApply,
    core::{Core, Followed, Refused},
    error::FatalError,
    reads::Reads,
    request_id::RequestIds,
    shared::Shared,
    standing::{DecidingTerm, Standing},
    world::{Log, Network, Time},
};

/// Inputs taken in one pass: enough to keep the disk busy, few enough to keep answers coming.
const INPUTS_PER_PASS_MAX: usize = 1024;
/// The in-memory log is compacted when it holds this many entries more than it must, or as many as it must keep.
const COMPACT_SLACK_MAX: u64 = 128;
/// As in etcd: more databases are not sent at once.
const SNAPSHOTS_IN_FLIGHT_MAX: usize = 16;

/// So that the answer to its own removal still goes out, as in etcd.
const REMOVED_DELAY: Duration = Duration::from_secs(1);

/// What the proposer has found out: whether the log may have a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    /// It may at any version, and the request sets none.
    Plain,
    /// It may at this cluster version, and the request sets none.
    At(Option<Version>),
    /// That is left to the raft thread.
    Not,
}

/// What may happen to the raft thread.
pub(crate) enum Input {
    Propose {
        id: u64,
        data: Bytes,
        judged: Judged,
    },
    ProposeConfChange {
        id: u64,
        change: Bytes,
    },
    /// Of this member alone, and only while it leads in this term.
    ProposeAsLeader {
        term: DecidingTerm,
        data: Bytes,
    },
    /// Reads wait in the queue.
    Reads,
    /// From another member.
    Message(Box<raftpb::Message>),
    /// A message to this member could not be delivered.
    Unreachable(u64),
    /// A database has arrived there, or has not.
    SnapshotSent {
        to: u64,
        sent: bool,
    },
    TransferLeader {
        to: u64,
    },
    /// So much of the first election timeout need not be waited for.
    SkipTicks(usize),
    /// How far the members' logs match.
    Progress {
        reply: oneshot::Sender<Vec<(u64, u64)>>,
    },
    /// A configuration change has been applied; the core must follow.
    ConfChange {
        index: u64,
        change: raft::eraftpb::ConfChange,
        done: Sender<Followed>,
    },
    /// This member has applied its own removal.
    Removed,
    /// Entries have been applied that others of the core's doings wait for.
    Applied,
    /// The file covers the log up to here.
    Snapshot {
        record: walpb::Snapshot,
    },
    /// As [`Input::Snapshot`], and what is before it is forgotten in memory too.
    CutLog {
        record: walpb::Snapshot,
        version: Version,
        done: Sender<Option<u64>>,
    },
    /// Writes down the commit index and ends the thread.
    Stop,
}

/// What a raft thread is made of.
pub(crate) struct RaftParts<L: Log> {
    pub core: Core,
    pub log: L,
    pub inputs: Receiver<Input>,
    pub to_apply: Sender<ToApply>,
    pub shared: Arc<Shared>,
    pub lessor: Arc<Mutex<Lessor>>,
    pub network: Arc<dyn Network>,
    pub cluster: Arc<RwLock<Cluster>>,
    pub ids: Arc<RequestIds>,
    pub time: Time,
    pub tick: Duration,
    pub catch_up_entries: u64,
    /// After this long nobody waits for a proposal any more.
    pub request_timeout: Duration,
}

pub(crate) struct RaftLoop<L: Log> {
    parts: RaftParts<L>,
    /// Proposals that wait for a leader, and since when.
    held: Vec<(Instant, Proposal)>,
    /// Other members' configuration changes that wait for one under way, and since when.
    waiting: Vec<(Instant, raftpb::Message)>,
    reads: Reads,
    /// A commit index that is not yet in the log; it goes with the next write.
    unsaved_state: Option<raftpb::HardState>,
    snapshots_in_flight: usize,
    /// Of the newest snapshot record in the log that this run has written.
    snapshot_index: u64,
    versions_ahead: VersionsAhead,
    /// When this member learnt that it is removed.
    removed: Option<Instant>,
    now: Instant,
    next_tick: Instant,
}

struct Proposal {
    id: u64,
    data: Bytes,
    is_conf_change: bool,
    judged: Judged,
}

impl<L: Log> RaftLoop<L> {
    pub(crate) fn new(parts: RaftParts<L>) -> RaftLoop<L> {
        let now = parts.time.now();
        RaftLoop {
            parts,
            held: Vec::new(),
            waiting: Vec::new(),
            reads: Reads::default(),
            unsaved_state: None,
            snapshots_in_flight: 0,
            snapshot_index: 0,
            versions_ahead: VersionsAhead::default(),
            removed: None,
            now,
            next_tick: now,
        }
    }

    /// Runs until stopped or until the log cannot be written.
    pub(crate) fn run(mut self) {
        if let Err(error) = self.serve() {
            self.parts.shared.fail(error);
        }
        self.parts.shared.close();
    }

    fn serve(&mut self) -> Result<(), FatalError> {
        self.begin(self.parts.time.now())?;
        loop {
            let wait = self.next_look().saturating_duration_since(self.parts.time.now());
            let first = match self.parts.inputs.recv_timeout(wait) {
                Ok(input) => Some(input),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Input::Stop),
            };
            if self.pass(first, self.parts.time.now())? {
                return Ok(());
            }
        }
    }

    /// When to look although nothing comes in.
    pub(crate) fn next_look(&self) -> Instant {
        self.reads.deadline().map_or(self.next_tick, |deadline| deadline.min(self.next_tick))
    }

    #[cfg(feature = "sim")]
    pub(crate) fn databases_under_way(&self) -> usize {
        self.snapshots_in_flight
    }

    /// Entries that the log holds at the start. Those that are not applied yet may change the cluster version.
    pub(crate) fn note_log(&mut self, entries: &[raftpb::Entry]) {
        self.versions_ahead.note(entries);
        self.versions_ahead.applied(self.parts.shared.applied.index());
    }

    /// The work that is there at the start.
    pub(crate) fn begin(&mut self, now: Instant) -> Result<(), FatalError> {
        self.now = now;
        self.next_tick = now + self.parts.tick;
        self.work()
    }

    /// One pass: `first` and all inputs that have arrived, the ticks that are due, and the work that follows. True when
    /// asked to stop, and done with that. Time is what it is told, so that a simulator can tell it.
    pub(crate) fn pass(&mut self, first: Option<Input>, now: Instant) -> Result<bool, FatalError> {
        self.now = now;
        self.parts.shared.ticked.at(now);
        let stop = self.take_inputs(first)?;
        while self.now >= self.next_tick {
            self.parts.core.handle_tick();
            self.next_tick += self.parts.tick;
            // After a long pause (a stopped process) ticks are not made up for.
            self.next_tick = self.next_tick.max(self.now - self.parts.tick);
        }
        self.work()?;
        if stop {
            self.finish()?;
        }
        let is_over = |since| now.saturating_duration_since(since) >= REMOVED_DELAY;
        if self.removed.is_some_and(is_over) && !self.parts.core.is_waited_for() {
            return Err(FatalError::Removed);
        }
        Ok(stop)
    }

    /// Takes all inputs there are. True if asked to stop.
    fn take_inputs(&mut self, first: Option<Input>) -> Result<bool, FatalError> {
        let mut proposals = self.take_held();
        let mut as_leader = Vec::new();
        let mut stop = false;
        let mut next = first.or_else(|| self.parts.inputs.try_recv().ok());
        let mut taken = 0;
        while let Some(input) = next {
            match input {
                Input::Propose { id, data, judged } => {
                    proposals.push((None, Proposal { id, data, is_conf_change: false, judged }));
                }
                Input::ProposeConfChange { id, change } => {
                    let proposal = Proposal { id, data: change, is_conf_change: true, judged: Judged::Plain };
                    proposals.push((None, proposal));
                }
                // After all messages that are there, which may tell of another leader.
                Input::ProposeAsLeader { term, data } => as_leader.push((term, data)),
                Input::Stop => stop = true,
                other => self.handle(other)?,
            }
            taken += 1;
            next = if taken < INPUTS_PER_PASS_MAX { self.parts.inputs.try_recv().ok() } else { None };
        }
        let applied = self.parts.shared.applied.index();
        self.parts.core.handle_applied(applied);
        self.versions_ahead.applied(applied);
        self.receive_waiting()?;
        if self.parts.core.status().leader == 0 {
            self.parts.core.lead_if_alone();
        }
        let deciding = self.standing().decides_in();
        as_leader.retain(|(term, _)| deciding == Some(*term));
        let own = |data| Proposal { id: 0, data, is_conf_change: false, judged: Judged::Not };
        proposals.extend(as_leader.into_iter().map(|(_, data)| (None, own(data))));
        self.propose(proposals);
        self.ask_reads();
        Ok(stop)
    }

    fn handle(&mut self, input: Input) -> Result<(), FatalError> {
        let core = &mut self.parts.core;
        match input {
            Input::Message(message) => {
                self.parts.shared.inbox.leave();
                return self.receive(&message);
            }
            Input::Unreachable(id) => core.handle_unreachable(id),
            Input::SnapshotSent { to, sent } => {
                core.handle_snapshot_sent(to, sent);
                self.snapshots_in_flight = self.snapshots_in_flight.saturating_sub(1);
            }
            Input::TransferLeader { to } => {
                core.handle_transfer(to);
                self.note_offer();
            }
            Input::SkipTicks(ticks) => (0..ticks).for_each(|_| core.handle_tick()),
            Input::Progress { reply } => drop(reply.send(core.progress())),
            Input::ConfChange { index, change, done } => {
                // The apply thread waits for this; if it has ended, its own failure is on record.
                let _ = done.send(self.conf_change(index, &change)?);
            }
            Input::Removed => self.removed = self.removed.or(Some(self.now)),
            Input::Snapshot { record } => return self.snapshot(&record),
            Input::CutLog { record, version, done } => {
                let _ = done.send(self.cut_log(&record, version)?);
            }
            Input::Propose { .. }
            | Input::ProposeConfChange { .. }
            | Input::ProposeAsLeader { .. }
            | Input::Reads
            | Input::Applied
            | Input::Stop => {}
        }
        Ok(())
    }

    /// Both clocks as of now.
    fn standing(&self) -> Standing {
        Standing::new(self.parts.core.status(), self.parts.shared.applied_to())
    }

    /// Another member may take the leadership, even long after this one has given the transfer up.
    fn note_offer(&self) {
        self.parts.shared.ticked.offered(self.parts.core.status().term);
    }

    fn receive(&mut self, message: &raftpb::Message) -> Result<(), FatalError> {
        let message = match message.r#type() {
            raftpb::MessageType::MsgProp => self.loggable(message),
            _ => Cow::Borrowed(message),
        };
        let message = match &message {
            Cow::Owned(rest) if rest.entries.is_empty() => return Ok(()),
            message => message.as_ref(),
        };
        if message.r#type() == raftpb::MessageType::MsgTransferLeader {
            self.note_offer();
        }
        if self.must_wait(message) {
            return Ok(());
        }
        match self.parts.core.handle_message(message) {
            Ok(()) => Ok(()),
            Err(lost @ Refused::LogLost { .. }) => Err(FatalError::Core(lost.to_string())),
            Err(why) => {
                tracing::warn!(remote_peer_id = format!("{:x}", message.from()), %why, "refused a raft message");
                Ok(())
            }
        }
    }

    /// One context serves all reads that have arrived while the last one was under way.
    fn ask_reads(&mut self) {
        let status = self.parts.core.status();
        let ids = &self.parts.ids;
        let (queue, leader) = (&self.parts.shared.reads, (status.term, status.leader));
        if let Some(context) = self.reads.next(queue, self.now, leader, || ids.next()) {
            self.parts.core.handle_read_index(context);
        }
    }
}
