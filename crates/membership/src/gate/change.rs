//! Applying what touches the gate: proposals, decisions, changes of voters and of the cluster version.

use std::{collections::BTreeSet, sync::Arc};

use proto::{
    Version,
    membershippb::{ClusterFeatureGateSetRequest, FeatureGateCause, FeatureGateProposal},
};

use super::{GateEffect, HISTORY_MAX, Proposal};
use crate::{Cluster, MemberId};

/// Features went on or off.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GateChange {
    pub index: u64,
    pub cause: Cause,
    /// The cluster version from here on.
    pub version: Version,
    pub before: BTreeSet<String>,
    pub after: BTreeSet<String>,
}

/// Why features went on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    Agreed,
    Proposal(MemberId),
    VoterAdded(MemberId),
    VoterPromoted(MemberId),
    Version,
}

impl Cause {
    pub fn to_proto(self) -> (FeatureGateCause, u64) {
        match self {
            Cause::Agreed => (FeatureGateCause::Agreed, 0),
            Cause::Proposal(id) => (FeatureGateCause::Proposal, id.0),
            Cause::VoterAdded(id) => (FeatureGateCause::VoterAdded, id.0),
            Cause::VoterPromoted(id) => (FeatureGateCause::VoterPromoted, id.0),
            Cause::Version => (FeatureGateCause::Version, 0),
        }
    }

    /// `None` for a cause that this binary does not know.
    pub fn from_proto(cause: FeatureGateCause, member: u64) -> Option<Cause> {
        let id = MemberId(member);
        match cause {
            FeatureGateCause::Unknown => None,
            FeatureGateCause::Agreed => Some(Cause::Agreed),
            FeatureGateCause::Proposal => Some(Cause::Proposal(id)),
            FeatureGateCause::VoterAdded => Some(Cause::VoterAdded(id)),
            FeatureGateCause::VoterPromoted => Some(Cause::VoterPromoted(id)),
            FeatureGateCause::Version => Some(Cause::Version),
        }
    }
}

/// Why an entry left the gate as it is. None of these is an error: the sender looks again and sends anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateRefusal {
    #[error("member {0} is not in the cluster")]
    NoMember(MemberId),
    #[error("it was made for version {made_for}, the cluster is at {}", at.map_or("none".into(), |v| v.to_string()))]
    OtherVersion { made_for: String, at: Option<Version> },
    #[error("it replaces what was stored at index {replaces}, but it must replace what was stored at index {stored}")]
    OtherPredecessor { replaces: u64, stored: u64 },
    #[error("it was decided from the state of index {decided_from}, which last changed at index {relevant}")]
    Stale { decided_from: u64, relevant: u64 },
    #[error("it does not follow from the voters' proposals")]
    NotAgreed,
}

impl Cluster {
    /// A member's proposal. A late or doubled one cannot bring old values back: it must be for the version of now and
    /// know the proposal it replaces.
    pub fn apply_proposal(
        &mut self,
        index: u64,
        id: MemberId,
        proposal: &FeatureGateProposal,
    ) -> Result<GateEffect, GateRefusal> {
        if rule!(ProposerIsMember, self.member(id).is_none(), false) {
            return Err(GateRefusal::NoMember(id));
        }
        let version = self.check_gate_version(&proposal.version)?;
        let stored = self.predecessor(id);
        if rule!(Predecessor, proposal.replaces != stored, false) {
            return Err(GateRefusal::OtherPredecessor { replaces: proposal.replaces, stored });
        }
        let features = proposal.features.iter().map(|f| (f.name.clone(), f.enabled)).collect();
        self.gate.proposals.insert(id, Proposal { version, index, features });
        self.gate.relevant_index = rule!(ProposalIsRelevant, index, self.gate.relevant_index);
        let mut effect = rule!(OffAtProposal, self.settle(index, Cause::Proposal(id)), GateEffect::default());
        effect.proposals.insert(id);
        effect.changed = true;
        Ok(effect)
    }

    /// The leader's decision, which rides in a version entry. That entry's version is what the decision is for; it
    /// moves nothing.
    pub fn apply_decision(
        &mut self,
        index: u64,
        version: &str,
        decision: &ClusterFeatureGateSetRequest,
    ) -> Result<GateEffect, GateRefusal> {
        self.check_gate_version(version)?;
        let relevant = self.gate.relevant_index;
        if rule!(Stale, decision.decided_from != relevant, false) {
            return Err(GateRefusal::Stale { decided_from: decision.decided_from, relevant });
        }
        let enabled = decision.feature_gates.iter().filter(|f| f.enabled).map(|f| f.name.clone());
        let enabled: BTreeSet<_> = enabled.collect();
        // The same state gives the same decision to everyone, so another one is from a leader that is broken.
        if rule!(DecisionFollows, self.agreed().as_ref() != Some(&enabled), false) {
            return Err(GateRefusal::NotAgreed);
        }
        Ok(self.switch_to(index, enabled, Cause::Agreed))
    }

    /// A different cluster version empties gate and proposals; the same one changes nothing. Below the first version
    /// that has a gate nothing of it is left.
    pub fn apply_version(&mut self, index: u64, version: Version) -> GateEffect {
        let had_gate = self.has_gate();
        if self.version() == Some(version) {
            return GateEffect::default();
        }
        self.set_version(version);
        let mut effect = GateEffect { changed: true, ..GateEffect::default() };
        if self.has_gate() {
            let emptied = rule!(VersionEmptiesGate, BTreeSet::new(), self.gate.enabled.clone());
            effect = self.switch_to(index, emptied, Cause::Version);
            let gone = rule!(VersionClearsProposals, std::mem::take(&mut self.gate.proposals), Default::default());
            effect.proposals.extend(gone.into_keys());
            self.gate.relevant_index = rule!(VersionIsRelevant, index, self.gate.relevant_index);
            self.gate.version_index = rule!(VersionIsPredecessor, index, 0);
            effect.changed = true;
        } else if had_gate || !self.gate.is_unused() {
            self.gate = rule!(NoGateBelow, Default::default(), std::mem::take(&mut self.gate));
            effect.cleared = true;
        }
        effect
    }

    /// After a change of the members that was applied at `index`. Only voters count.
    pub(crate) fn settle_members(
        &mut self,
        index: u64,
        cause: Option<Cause>,
        removed: Option<MemberId>,
        voters_changed: bool,
    ) -> GateEffect {
        if !self.has_gate() {
            return GateEffect::default();
        }
        let removed = removed.filter(|_| rule!(RemovalDropsProposal, true, false));
        let gone = removed.filter(|id| self.gate.proposals.remove(id).is_some());
        let mut effect = GateEffect::default();
        if voters_changed {
            self.gate.relevant_index = rule!(VotersAreRelevant, index, self.gate.relevant_index);
            // A removal can break no agreement, so its cause is never written down.
            let cause = cause.unwrap_or(Cause::Agreed);
            effect = rule!(OffAtNewVoter, self.settle(index, cause), GateEffect::default());
        }
        effect.changed |= voters_changed || gone.is_some();
        effect.proposals.extend(gone);
        effect
    }

    /// Off is immediate: whatever the voters no longer agree on.
    fn settle(&mut self, index: u64, cause: Cause) -> GateEffect {
        let agreed = self.agreed().unwrap_or_default();
        let still = self.gate.enabled.intersection(&agreed).cloned().collect();
        self.switch_to(index, still, cause)
    }

    fn switch_to(&mut self, index: u64, after: BTreeSet<String>, cause: Cause) -> GateEffect {
        if after == self.gate.enabled {
            return GateEffect::default();
        }
        let before = std::mem::replace(&mut self.gate.enabled, after.clone());
        self.gate.index = index;
        let version = self.version().unwrap_or(super::GATE_SINCE);
        let change = GateChange { index, cause, version, before, after };
        let history = Arc::make_mut(&mut self.gate.history);
        history.push_back(change.clone());
        let excess = history.len().saturating_sub(HISTORY_MAX);
        let forgotten = history.drain(..excess).map(|change| change.index).collect();
        GateEffect { changed: true, change: Some(change), forgotten, ..GateEffect::default() }
    }

    fn check_gate_version(&self, made_for: &str) -> Result<Version, GateRefusal> {
        let at = self.version();
        match at.filter(|at| self.has_gate() && rule!(MadeForThisVersion, made_for.parse() == Ok(*at), true)) {
            Some(version) => Ok(version),
            None => Err(GateRefusal::OtherVersion { made_for: made_for.to_owned(), at }),
        }
    }
}
