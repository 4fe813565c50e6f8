//! Why a feature is off, in words for people.

use proto::Version;

use super::GATE_SINCE;
use crate::{Cluster, Member};

/// One reason that holds a feature off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeldOff {
    #[error("the cluster version is not decided yet")]
    NoVersion,
    #[error("cluster version {at} < {GATE_SINCE}")]
    VersionTooLow { at: Version },
    #[error("held off by member {0}: flag says off")]
    SaysOff(String),
    #[error("held off by member {0}: it does not know the feature")]
    DoesNotKnow(String),
    #[error("member {0} has not proposed yet")]
    NotProposed(String),
    #[error("locked off at cluster version {0}")]
    Locked(Version),
    #[error("all members agree; the leader has not decided yet")]
    NotDecided,
}

impl Cluster {
    /// What holds `feature` off; empty if it is on.
    pub fn held_off(&self, feature: &str) -> Vec<HeldOff> {
        match self.version() {
            None => return vec![HeldOff::NoVersion],
            Some(at) if at < GATE_SINCE => return vec![HeldOff::VersionTooLow { at }],
            Some(_) if self.gate.enabled.contains(feature) => return Vec::new(),
            Some(_) => {}
        }
        let reason = |member: &Member| match self.current_proposal(member.id) {
            None => Some(HeldOff::NotProposed(label(member))),
            Some(proposal) => match proposal.features.get(feature) {
                None => Some(HeldOff::DoesNotKnow(label(member))),
                Some(false) => Some(HeldOff::SaysOff(label(member))),
                Some(true) => None,
            },
        };
        let reasons: Vec<_> = self.voting_members().filter_map(reason).collect();
        if reasons.is_empty() { vec![HeldOff::NotDecided] } else { reasons }
    }
}

/// A member that has not started yet has no name.
fn label(member: &Member) -> String {
    if member.name.is_empty() { member.id.to_string() } else { member.name.clone() }
}
