//! What a member has to publish, and how a learner compares.

use std::collections::BTreeMap;

use proto::membershippb::{Feature, FeatureGateProposal};

use crate::Cluster;

impl Cluster {
    /// What this member must publish now, if the stored proposal is not `wanted`, its own values at the current
    /// version. Publishing is a condition and no event: it is asked again after every apply until there is nothing.
    pub fn plan_proposal(&self, wanted: &BTreeMap<String, bool>) -> Option<FeatureGateProposal> {
        let version = self.version().filter(|_| rule!(NoProposalBelow, self.has_gate(), true))?;
        self.member(self.local)?;
        let stored = self.gate.proposals.get(&self.local);
        let is_stored = stored.is_some_and(|stored| stored.version == version && stored.features == *wanted);
        if rule!(NoNeedlessProposal, is_stored, false) {
            return None;
        }
        let features = wanted.iter().map(|(name, on)| Feature { name: name.clone(), enabled: *on }).collect();
        Some(FeatureGateProposal { version: version.stored(), replaces: self.predecessor(self.local), features })
    }

    /// Whether a learner may become a voter without turning a feature off: it has proposed for this version, and says on
    /// for all that is on. Before the gate is first used there is nothing to turn off, and a cluster that is forced
    /// to begin anew may promote its only member.
    pub(crate) fn proposes_all_that_is_on(&self, id: crate::MemberId) -> bool {
        !self.has_gate()
            || self.gate.is_unused()
            || (rule!(PromotionNeedsProposal, self.current_proposal(id).is_some(), true)
                && self.held_off_by_promotion(id).is_empty())
    }

    /// The features that are on and that `id`, a learner, would turn off by becoming a voter.
    pub fn held_off_by_promotion(&self, id: crate::MemberId) -> Vec<String> {
        let proposal = self.current_proposal(id);
        let on = self.gate.enabled.iter();
        on.filter(|name| !proposal.is_some_and(|p| p.says_on(name))).cloned().collect()
    }
}

/// Where a learner's values differ from a gate in which something is on: name, the cluster's value, its own.
pub fn learner_differences(cluster: &Cluster, wanted: &BTreeMap<String, bool>) -> Vec<(String, bool, bool)> {
    let enabled = &cluster.gate().enabled;
    if enabled.is_empty() {
        return Vec::new();
    }
    let names: std::collections::BTreeSet<_> = enabled.iter().chain(wanted.keys()).collect();
    let values = names.into_iter().map(|name| {
        let own = wanted.get(name).copied().unwrap_or(false);
        (name.clone(), enabled.contains(name), own)
    });
    values.filter(|(_, cluster, own)| cluster != own).collect()
}
