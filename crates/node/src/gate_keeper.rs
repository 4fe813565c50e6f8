//! Publishes this member's proposal for the cluster gate and, while it leads, decides for the cluster.
//!
//! Both are conditions and no events: they are looked at after every apply that touches the gate, and every half second
//! besides, and what was sent in vain is sent again, ever more seldom.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use membership::Cluster;
use parking_lot::{Mutex, RwLock};
use proto::{
    Version,
    etcdserverpb::InternalRaftRequest,
    membershippb::{Attributes, ClusterMemberAttrSetRequest, ClusterVersionSetRequest},
};

use crate::{proposer::Proposer, shared::Shared, standing::DecidingTerm, world::Time};

/// A member's own values for the cluster features it knows, at a cluster version.
pub type OwnFeatures = Arc<dyn Fn(Version) -> BTreeMap<String, bool> + Send + Sync>;

/// What a member's operator asked for, as far as cluster features go.
#[derive(Clone)]
pub struct FeatureFlags {
    pub own: OwnFeatures,
    /// Judges the flags at the cluster version of the data dir, before anything in it is changed.
    pub check: Arc<dyn Fn(Option<Version>) -> Result<(), String> + Send + Sync>,
}

impl FeatureFlags {
    /// For a member that knows no cluster feature.
    pub fn none() -> FeatureFlags {
        FeatureFlags { own: Arc::new(|_| BTreeMap::new()), check: Arc::new(|_| Ok(())) }
    }
}

const AGAIN_FIRST: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(8);

pub(crate) struct GateKeeper {
    pub cluster: Arc<RwLock<Cluster>>,
    pub shared: Arc<Shared>,
    pub proposer: Proposer,
    pub time: Time,
    pub own: OwnFeatures,
    pub name: String,
    pub client_urls: Vec<String>,
    /// Proposing begins when the member has caught up once since its start: what it has applied until then may be an older
    /// version's.
    begun: AtomicBool,
    sent: Mutex<Sent>,
}

#[derive(Default)]
struct Sent {
    /// By version, predecessor and values.
    proposal: Option<(Version, u64, BTreeMap<String, bool>)>,
    proposal_again: Again,
    /// By term and what it was decided from.
    decision: Option<(DecidingTerm, u64)>,
    decision_again: Again,
}

/// When to send the same once more.
#[derive(Default)]
struct Again {
    at: Option<Instant>,
    wait: Duration,
}

impl Again {
    /// Whether it is time, for what was not sent before (`is_new`) or was sent and has had no effect.
    fn is_due(&mut self, now: Instant, is_new: bool) -> bool {
        if !is_new && self.at.is_some_and(|at| now < at) {
            return false;
        }
        self.wait = if is_new { AGAIN_FIRST } else { (self.wait * 2).min(AGAIN_MAX) };
        self.at = Some(now + self.wait);
        true
    }
}

impl GateKeeper {
    pub(crate) fn new(
        (cluster, shared): (Arc<RwLock<Cluster>>, Arc<Shared>),
        (proposer, time): (Proposer, Time),
        own: OwnFeatures,
        (name, client_urls): (String, Vec<String>),
    ) -> GateKeeper {
        let (begun, sent) = (AtomicBool::new(false), Mutex::default());
        GateKeeper { cluster, shared, proposer, time, own, name, client_urls, begun, sent }
    }

    /// This member has caught up, and may propose from here on.
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::Release);
        self.tend();
    }

    /// Sends what is missing.
    pub(crate) fn tend(&self) {
        let cluster = self.cluster.read();
        let Some(version) = cluster.version().filter(|_| cluster.has_gate()) else { return };
        if self.begun.load(Ordering::Acquire) {
            self.publish(&cluster, version);
        }
        self.decide(&cluster, version);
    }

    /// Whether this member's proposal is still to be stored.
    pub(crate) fn is_proposal_due(&self) -> bool {
        let cluster = self.cluster.read();
        cluster.version().is_some_and(|version| cluster.plan_proposal(&(self.own)(version)).is_some())
    }

    fn publish(&self, cluster: &Cluster, version: Version) {
        let own = (self.own)(version);
        let Some(proposal) = cluster.plan_proposal(&own) else { return };
        let mut sent = self.sent.lock();
        let this = Some((version, proposal.replaces, own));
        let is_new = sent.proposal != this;
        if !sent.proposal_again.is_due(self.time.now(), is_new) {
            return;
        }
        sent.proposal = this;
        let attributes = Attributes {
            name: self.name.clone(),
            client_urls: self.client_urls.clone(),
            proposed_feature_gates: Some(proposal),
        };
        let request = ClusterMemberAttrSetRequest { member_id: cluster.local.0, member_attributes: Some(attributes) };
        self.proposer
            .send_request(InternalRaftRequest { cluster_member_attr_set: Some(request), ..Default::default() });
    }

    fn decide(&self, cluster: &Cluster, version: Version) {
        // An older state may have another cluster version, and a decision made from it be newer than the cluster.
        let Some(term) = self.shared.standing().decides_in() else { return };
        let Some(decision) = cluster.decide_gate() else { return };
        let mut sent = self.sent.lock();
        let this = Some((term, decision.decided_from));
        let is_new = sent.decision != this;
        if !sent.decision_again.is_due(self.time.now(), is_new) {
            return;
        }
        sent.decision = this;
        let request = ClusterVersionSetRequest { ver: version.stored(), feature_gates: Some(decision) };
        let request = InternalRaftRequest { cluster_version_set: Some(request), ..Default::default() };
        self.proposer.send_as_leader(term, request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Clock, SystemClock};

    #[test]
    fn what_has_no_effect_is_sent_ever_more_seldom() {
        let (mut again, mut now) = (Again::default(), SystemClock.now());
        assert!(again.is_due(now, true));
        let mut waits = Vec::new();
        for _ in 0..6 {
            let begin = now;
            while !again.is_due(now, false) {
                now += Duration::from_millis(100);
            }
            waits.push((now - begin).as_millis());
        }
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000]);
        assert!(again.is_due(now, true), "what is new need not wait");
    }
}
