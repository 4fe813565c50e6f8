//! The cluster gate: which features are on for the whole cluster, at every log index.
//!
//! Each member proposes a value for every cluster feature it knows. A feature is on only while every voter's proposal
//! for the current cluster version says so.
//!
//! - Going **off** is derived: the entry that breaks the agreement clears what no longer holds, where it is applied.
//! - Going **on** is the leader's decision ([`Cluster::decide_gate`]), which names the state it was made from; where
//!   that is no longer the state, applying it changes nothing.
//!
//! **Invariant:** a feature in the gate is on in the proposal, made for the current cluster version, of every voter
//! ([`Cluster::check_gate`]). Equal index, equal [`GateState`].
//!
//! Everything here depends on replicated state and the entry alone: the very code that runs is model-checked.

mod change;
mod load;
mod propose;
mod reason;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use proto::{Version, membershippb::ClusterFeatureGateSetRequest};

pub use self::{
    change::{Cause, GateChange, GateRefusal},
    load::{GateFinding, UnknownFeature},
    propose::learner_differences,
    reason::HeldOff,
};
use crate::{Cluster, MemberId};

/// From this cluster version on there is a gate. Below it every cluster feature is off and nothing of this is logged.
pub const GATE_SINCE: Version = Version::new(3, 8);

/// Changes that are remembered.
pub const HISTORY_MAX: usize = 1000;

/// A member's values for the cluster features it knows, as they were applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposal {
    /// The cluster version that it was made for.
    pub version: Version,
    /// The entry that brought it.
    pub index: u64,
    pub features: BTreeMap<String, bool>,
}

impl Proposal {
    pub fn says_on(&self, feature: &str) -> bool {
        self.features.get(feature).copied().unwrap_or(false)
    }

    /// The features that it says on for.
    fn on(&self) -> impl Iterator<Item = &String> {
        self.features.iter().filter(|(_, on)| **on).map(|(name, _)| name)
    }
}

/// Gate, proposals and their indices: replicated state, changed by apply alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GateState {
    /// The features that are on.
    pub enabled: BTreeSet<String>,
    /// The entry that last changed `enabled`.
    pub index: u64,
    /// The entry that last changed voters, proposals or version.
    pub relevant_index: u64,
    /// The entry that brought the cluster version.
    pub version_index: u64,
    pub proposals: BTreeMap<MemberId, Proposal>,
    /// Shared, because it is long and seldom changes. Oldest first.
    pub history: Arc<VecDeque<GateChange>>,
}

/// What an entry did to the gate, for the caller to write down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateEffect {
    /// Anything of the state has changed.
    pub changed: bool,
    /// All of it must go from the file: the cluster version has none.
    pub cleared: bool,
    /// Members whose proposals came, changed or went.
    pub proposals: BTreeSet<MemberId>,
    /// What to remember, if features went on or off.
    pub change: Option<GateChange>,
    /// Indices of changes that are no longer remembered.
    pub forgotten: Vec<u64>,
}

impl Cluster {
    pub fn gate(&self) -> &GateState {
        &self.gate
    }

    /// Whether there is a gate at all.
    pub fn has_gate(&self) -> bool {
        self.version().is_some_and(|version| version >= GATE_SINCE)
    }

    /// What the leader must have logged, if the voters agree on more than is on.
    pub fn decide_gate(&self) -> Option<ClusterFeatureGateSetRequest> {
        let agreed = self.agreed()?;
        if rule!(NoNeedlessDecision, agreed == self.gate.enabled, false) {
            return None;
        }
        let named = self.voter_proposals().flatten().flat_map(|proposal| proposal.features.keys());
        let named: BTreeSet<_> = named.collect();
        let feature_gates = named
            .into_iter()
            .map(|name| proto::membershippb::Feature { name: name.clone(), enabled: agreed.contains(name) })
            .collect();
        Some(ClusterFeatureGateSetRequest { feature_gates, decided_from: self.gate.relevant_index })
    }

    /// Why the gate does not follow from voters and proposals. `Ok` at every index, or something is broken.
    pub fn check_gate(&self) -> Result<(), String> {
        if self.gate.enabled.is_empty() {
            return Ok(());
        }
        let Some(agreed) = self.agreed() else {
            return Err(format!("{:?} are on, but not every voter has proposed", self.gate.enabled));
        };
        match self.gate.enabled.difference(&agreed).next() {
            Some(feature) => Err(format!("{feature} is on, but not every voter's proposal says so")),
            None => Ok(()),
        }
    }

    /// The features that every voter wants on; `None` if there is no gate, or a voter has not proposed for this version.
    pub(crate) fn agreed(&self) -> Option<BTreeSet<String>> {
        if !self.has_gate() {
            return None;
        }
        let mut agreed: Option<BTreeSet<_>> = None;
        for proposal in self.voter_proposals() {
            let proposal = rule!(EveryVoterProposes, proposal?, if let Some(p) = proposal { p } else { continue });
            match &mut agreed {
                None => agreed = Some(proposal.on().cloned().collect()),
                Some(agreed) => agreed.retain(|name| rule!(EveryVoterSaysOn, proposal.says_on(name), true)),
            }
        }
        agreed
    }

    /// Each voter's proposal for the current version.
    fn voter_proposals(&self) -> impl Iterator<Item = Option<&Proposal>> {
        let voters = self.members().filter(|member| rule!(OnlyVotersCount, !member.is_learner, true));
        voters.map(|voter| self.current_proposal(voter.id))
    }

    /// What a member's next proposal must say it replaces. The first one replaces the entry that brought the version: that
    /// version may have been there before, and a proposal of that time may still be on its way.
    pub(crate) fn predecessor(&self, id: MemberId) -> u64 {
        self.gate.proposals.get(&id).map_or(self.gate.version_index, |stored| stored.index)
    }

    /// A member's proposal, if it was made for the current version.
    pub fn current_proposal(&self, id: MemberId) -> Option<&Proposal> {
        self.gate
            .proposals
            .get(&id)
            .filter(|proposal| rule!(ProposalIsCurrent, Some(proposal.version) == self.version(), true))
    }
}
