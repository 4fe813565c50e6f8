//! What happens, and when: a queue in the order of virtual time.

use std::{cmp::Ordering, collections::BinaryHeap};

use proto::raftpb;

/// A machine, by number, as of one start. What is meant for an earlier start is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub machine: usize,
    pub incarnation: u64,
}

pub(crate) enum Event {
    /// The raft loop looks at its inputs and the clock.
    Pass(Place),
    /// The apply loop takes one piece of work.
    Apply(Place),
    /// The file is committed.
    Commit(Place),
    /// Leases are ended, segments purged.
    Chores(Place),
    Deliver {
        from: usize,
        to: usize,
        message: Box<raftpb::Message>,
    },
    /// The transfer of a database ends.
    TransferEnds(u64),
    SnapshotReport {
        place: Place,
        to: u64,
        sent: bool,
    },
    Unreachable {
        place: Place,
        to: u64,
    },
    /// A peer has said that this member is removed.
    Gone(Place),
    Start(usize),
    /// The power of the machine is cut.
    Crash(Place),
    /// A client does something next.
    Client(usize),
    /// A client has waited long enough.
    GiveUp {
        client: usize,
        operation: u64,
    },
    /// Something goes wrong.
    Fault,
    /// A machine loses its links, as a fault has planned.
    CutOff(usize),
    /// A fault ends.
    Mend(Mend),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Mend {
    Links,
    Disk(usize),
    Apply(usize),
    Weather,
}

struct Scheduled {
    at: u64,
    sequence: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    /// The heap gives the greatest first: the earliest is greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Scheduled>,
    sequence: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Scheduled { at, sequence: self.sequence, event });
    }

    /// The next event that is not after `until`.
    pub(crate) fn pop(&mut self, until: u64) -> Option<(u64, Event)> {
        if self.heap.peek().is_none_or(|next| next.at > until) {
            return None;
        }
        self.heap.pop().map(|next| (next.at, next.event))
    }
}
