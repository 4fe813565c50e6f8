//! Where a member stands, by its two clocks.
//!
//! Raft's view (term, role, commit index, configuration) moves as soon as the log does. The applied state (keys,
//! leases, members, cluster version) follows: entries wait in the apply queue, and a received database takes its place
//! some time after raft has gone on from it. A question that concerns both clocks is answered here and nowhere else.

use crate::core::CoreStatus;

/// The last entry that the apply loop has applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AppliedTo {
    pub index: u64,
    /// The term of the newest applied entry.
    pub term: u64,
}

/// The term of a leader whose applied state is that of a leader: an entry of the term is applied, and so are all
/// entries that earlier leaders have committed. What only a leader may decide needs one, and [`Standing::decides_in`]
/// alone makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecidingTerm(u64);

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standing {
    raft: CoreStatus,
    applied: AppliedTo,
}

impl Standing {
    pub(crate) fn new(raft: CoreStatus, applied: AppliedTo) -> Standing {
        Standing { raft, applied }
    }

    /// Raft's view alone, for whoever reports it or talks to the core.
    pub(crate) fn raft(&self) -> &CoreStatus {
        &self.raft
    }

    /// The term in which raft leads. The applied state may be of any earlier time.
    pub(crate) fn leads_in(&self) -> Option<u64> {
        self.raft.is_leader.then_some(self.raft.term)
    }

    /// The term in which this member leads and may decide from its applied state.
    pub(crate) fn decides_in(&self) -> Option<DecidingTerm> {
        self.leads_in().filter(|term| self.applied.term == *term).map(DecidingTerm)
    }

    /// Whether linearizable reads may rely on this member alone: it decides, there is no other member, and what others
    /// may have applied before they were removed is applied here too.
    pub(crate) fn may_read_alone(&self) -> bool {
        self.raft.alone_from.is_some_and(|from| self.decides_in().is_some() && self.applied.index >= from)
    }

    /// Whether raft has gone on from a received database that is not in place yet. The applied state is then older than
    /// entries that are in no log any more.
    pub(crate) fn awaits_database(&self) -> bool {
        self.applied.index < self.raft.restored_to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader(term: u64, applied: (u64, u64)) -> Standing {
        let raft = CoreStatus { term, is_leader: true, commit: 57, alone_from: Some(57), ..Default::default() };
        Standing::new(raft, AppliedTo { index: applied.0, term: applied.1 })
    }

    #[test]
    fn a_leader_decides_after_an_entry_of_its_own_term() {
        assert_eq!(leader(7, (57, 6)).decides_in(), None);
        assert_eq!(leader(7, (57, 7)).decides_in(), Some(DecidingTerm(7)));
        let follower = CoreStatus { term: 7, ..Default::default() };
        assert_eq!(Standing::new(follower, AppliedTo { index: 57, term: 7 }).decides_in(), None);
    }

    /// A member that was removed may have applied and answered 57.
    #[test]
    fn reads_rely_on_a_lone_leader_after_all_that_others_may_have_answered() {
        assert!(!leader(7, (56, 7)).may_read_alone());
        assert!(!leader(7, (57, 6)).may_read_alone());
        assert!(leader(7, (57, 7)).may_read_alone());
        let raft = CoreStatus { alone_from: None, ..*leader(7, (57, 7)).raft() };
        assert!(!Standing::new(raft, AppliedTo { index: 57, term: 7 }).may_read_alone());
    }

    #[test]
    fn a_received_database_is_awaited_until_its_index_is_applied() {
        let raft = CoreStatus { restored_to: 50, ..Default::default() };
        assert!(Standing::new(raft, AppliedTo { index: 49, term: 1 }).awaits_database());
        assert!(!Standing::new(raft, AppliedTo { index: 50, term: 3 }).awaits_database());
    }
}
