//! What a database says of the gate is looked at before anything is applied to it.
//!
//! A database may come from another life: a restored snapshot has kept the gate of the cluster it was taken from, and
//! real etcd's tools do not know what they carry along.

use crate::{Cluster, MemberId};

use super::GateState;

/// What was wrong with a stored gate, and was put right. For the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateFinding {
    #[error("the stored gate is from index {index}, after the last applied entry {applied}: it is of another cluster")]
    GateOfAnotherLife { index: u64, applied: u64 },
    #[error("a gate is stored, from index {index}, and no leader was ever elected: it is of another cluster")]
    GateBeforeAnyLeader { index: u64 },
    #[error("the proposal of member {id} is from index {index}, after the last applied entry {applied}")]
    ProposalOfAnotherLife { id: MemberId, index: u64, applied: u64 },
    #[error("the stored proposal of {0} is of no member")]
    ProposalOfNobody(MemberId),
    #[error("the cluster version has no gate, yet one is stored")]
    NoGateAtThisVersion,
    #[error("the stored gate does not follow from voters and proposals: {0}")]
    DoesNotFollow(String),
}

/// The term of the entries that every log begins with, one for each member. Nobody leads in it, so nobody decides.
const FOUNDING_TERM: u64 = 1;

/// A feature is on of which this binary knows nothing: it could not apply what the others apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cluster feature {feature} is on, and this binary ({binary}) does not know it: start a binary that does, or turn the \
     feature off by restarting another member with --cluster-feature-gates={feature}=false"
)]
pub struct UnknownFeature {
    pub feature: String,
    pub binary: proto::Version,
}

impl GateState {
    /// Nothing was ever stored.
    pub fn is_unused(&self) -> bool {
        *self == GateState::default()
    }
}

impl Cluster {
    #[must_use]
    pub fn with_gate(mut self, gate: GateState) -> Cluster {
        self.gate = gate;
        self
    }

    /// Gate, proposals and history as of a cluster that has never had any.
    pub fn forget_gate(&mut self) {
        self.gate = GateState::default();
    }

    /// Puts a loaded gate right, as of the index and term of the database's last applied entry. What it returns is worth a
    /// line in the log, and if there is any the gate must be written back before anything is applied.
    pub fn mend_gate(&mut self, applied: u64, term: u64) -> Vec<GateFinding> {
        if self.gate.is_unused() {
            return Vec::new();
        }
        if rule!(LoadBelow, !self.has_gate(), false) {
            self.gate = GateState::default();
            return vec![GateFinding::NoGateAtThisVersion];
        }
        let newest = self.gate.history.back().map_or(0, |change| change.index);
        let index = self.gate.index.max(self.gate.relevant_index).max(self.gate.version_index).max(newest);
        if rule!(GateOfAnotherLife, index > applied, false) {
            self.gate = GateState::default();
            return vec![GateFinding::GateOfAnotherLife { index, applied }];
        }
        // The log of a restored cluster may be longer than the gate it carries along is old, if that was young.
        if rule!(GateBeforeAnyLeader, term <= FOUNDING_TERM, false) {
            self.gate = GateState::default();
            return vec![GateFinding::GateBeforeAnyLeader { index }];
        }
        let mut findings = self.drop_proposals(applied);
        if let Err(why) = rule!(LoadFollows, self.check_gate(), Ok(())) {
            self.gate.enabled.clear();
            findings.push(GateFinding::DoesNotFollow(why));
        }
        findings
    }

    /// A member must stop if it does not know a feature that is on.
    pub fn check_features_known(
        &self,
        binary: proto::Version,
        knows: impl Fn(&str) -> bool,
    ) -> Result<(), UnknownFeature> {
        match self.gate.enabled.iter().find(|name| !knows(name)) {
            Some(feature) => Err(UnknownFeature { feature: feature.clone(), binary }),
            None => Ok(()),
        }
    }

    fn drop_proposals(&mut self, applied: u64) -> Vec<GateFinding> {
        let finding = |(id, proposal): (&MemberId, &super::Proposal)| match self.member(*id) {
            None if rule!(ProposalOfNobody, true, false) => Some((*id, GateFinding::ProposalOfNobody(*id))),
            Some(_) if rule!(ProposalOfAnotherLife, proposal.index > applied, false) => {
                Some((*id, GateFinding::ProposalOfAnotherLife { id: *id, index: proposal.index, applied }))
            }
            _ => None,
        };
        let found: Vec<_> = self.gate.proposals.iter().filter_map(finding).collect();
        found.iter().for_each(|(id, _)| drop(self.gate.proposals.remove(id)));
        found.into_iter().map(|(_, finding)| finding).collect()
    }
}
