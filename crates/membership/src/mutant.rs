//! Rules that can be broken on purpose, so that the model checker can be shown to find each of them broken.
//!
//! Nothing of this is compiled without the cargo feature `mutants`, which no program has.

use std::cell::Cell;

/// A rule of the gate protocol. Each is named where it stands, by the macro `rule!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A proposal or a decision counts only at the version that it was made for.
    MadeForThisVersion,
    /// Only members propose.
    ProposerIsMember,
    /// A proposal names the one it replaces.
    Predecessor,
    /// A proposal that ends the agreement turns off.
    OffAtProposal,
    /// A decision that was made before the last proposal is stale.
    ProposalIsRelevant,
    /// A stale decision changes nothing.
    Stale,
    /// A decision follows from the voters' proposals.
    DecisionFollows,
    /// Another cluster version empties the gate.
    VersionEmptiesGate,
    /// Another cluster version removes all proposals.
    VersionClearsProposals,
    /// A decision that was made before the last change of the version is stale.
    VersionIsRelevant,
    /// A proposal that was made before the last change of the version is void.
    VersionIsPredecessor,
    /// A version without a gate leaves nothing of it.
    NoGateBelow,
    /// A removed member's proposal goes with it.
    RemovalDropsProposal,
    /// A decision that was made before the last change of voters is stale.
    VotersAreRelevant,
    /// A voter that ends the agreement turns off.
    OffAtNewVoter,
    /// Learners do not count.
    OnlyVotersCount,
    /// Nothing is agreed on while a voter has not proposed.
    EveryVoterProposes,
    /// On is only what every voter wants on.
    EveryVoterSaysOn,
    /// A proposal for another version is as good as none.
    ProposalIsCurrent,
    /// A promotion that would turn something off is refused.
    PromotionIsChecked,
    /// A learner without a proposal is not promoted.
    PromotionNeedsProposal,
    /// A leader decides nothing if all is as it should be.
    NoNeedlessDecision,
    /// A member proposes nothing if its proposal is stored.
    NoNeedlessProposal,
    /// Nobody proposes while there is no gate.
    NoProposalBelow,
    /// A leader appends nothing that the cluster version does not allow.
    AppendIsChecked,
    /// Versions that are in the log and not applied count too.
    VersionsAheadCount,
    /// A stored gate that is ahead of the database is of another life.
    GateOfAnotherLife,
    /// So is one in a database that no leader ever wrote to.
    GateBeforeAnyLeader,
    /// So is a proposal that is ahead.
    ProposalOfAnotherLife,
    /// A stored proposal belongs to a member.
    ProposalOfNobody,
    /// A stored gate goes if the stored version has none.
    LoadBelow,
    /// A stored gate follows from voters and proposals.
    LoadFollows,
}

thread_local! {
    static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
}

/// Breaks this rule, and no other, on this thread.
pub fn break_rule(rule: Option<Rule>) {
    BROKEN.set(rule);
}

pub(crate) fn is_broken(rule: Rule) -> bool {
    BROKEN.get() == Some(rule)
}
