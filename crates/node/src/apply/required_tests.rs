//! Entries that require a feature, or belong to one, are judged at their own index: what was proposed while it was on and
//! is applied after it went off changes nothing, and every member says the same of it.

use std::collections::BTreeMap;

use harness::TempDir;
use proto::{
    etcdserverpb::{
        AlarmRequest, AlarmType, CompactionRequest, DeleteRangeRequest, IncrementRequest, LeaseGrantRequest,
        LeaseRevokeRequest, PutRequest, RequestHeader, RequestOp, TxnRequest, alarm_request::AlarmAction, request_op,
    },
    membershippb::{Attributes, ClusterMemberAttrSetRequest, ClusterVersionSetRequest},
};

use super::*;

const FEATURE: &str = "AtomicIncrement";

/// A member that applies what it is given.
pub(super) struct Applier {
    pub(super) state: State,
    index: u64,
    _dir: TempDir,
}

impl Applier {
    pub(super) fn at(version: &str) -> Applier {
        let dir = harness::tempdir();
        let state = test_state::state(dir.path());
        let mut applier = Applier { state, index: 0, _dir: dir };
        let set = ClusterVersionSetRequest { ver: version.into(), feature_gates: None };
        applier.apply(InternalRaftRequest { cluster_version_set: Some(set), ..Default::default() }).expect("version");
        applier
    }

    pub(super) fn apply(&mut self, mut request: InternalRaftRequest) -> Result<Response, ApplyError> {
        self.index += 1;
        request.header.get_or_insert_default().id = self.index;
        let data = Some(request.encode_to_vec().into());
        let entry = raftpb::Entry { index: Some(self.index), term: Some(1), data, ..Default::default() };
        let outcome = self.state.apply(&entry).expect("the member goes on");
        assert_eq!(outcome.request_id, self.index, "whoever waits is answered");
        outcome.result
    }

    /// The only voter proposes; where it says on, it decides so.
    fn switch(&mut self, on: bool) {
        let wanted = BTreeMap::from([(FEATURE.to_owned(), on)]);
        let proposal = self.state.cluster.read().plan_proposal(&wanted).expect("another proposal than the stored one");
        let attributes = Attributes { name: "a".into(), proposed_feature_gates: Some(proposal), ..Default::default() };
        let set = ClusterMemberAttrSetRequest { member_id: 1, member_attributes: Some(attributes) };
        self.apply(InternalRaftRequest { cluster_member_attr_set: Some(set), ..Default::default() }).expect("proposal");
        let decision = self.state.cluster.read().decide_gate();
        if let Some(decision) = decision {
            let set = ClusterVersionSetRequest { ver: "3.8.0".into(), feature_gates: Some(decision) };
            self.apply(InternalRaftRequest { cluster_version_set: Some(set), ..Default::default() }).expect("decision");
        }
        assert_eq!(self.state.gates.has(ATOMIC_INCREMENT), on);
    }

    /// What clients can see.
    fn visible(&self) -> (i64, i64, Vec<i64>, bool) {
        let stats = self.state.store.stats();
        (stats.revision, stats.compact_revision, self.state.lessor.lock().ids(), self.state.alarms.no_space())
    }
}

fn put() -> PutRequest {
    PutRequest { key: "k".into(), value: "1".into(), ..Default::default() }
}

/// One of each kind that a client's call can bring.
fn writes() -> Vec<(&'static str, InternalRaftRequest)> {
    let op = RequestOp { request: Some(request_op::Request::RequestPut(put())) };
    let none = InternalRaftRequest::default;
    let alarm = AlarmRequest { action: AlarmAction::Activate as i32, member_id: 1, alarm: AlarmType::Nospace as i32 };
    vec![
        ("put", InternalRaftRequest { put: Some(put()), ..none() }),
        ("txn", InternalRaftRequest { txn: Some(TxnRequest { success: vec![op], ..Default::default() }), ..none() }),
        (
            "delete",
            InternalRaftRequest {
                delete_range: Some(DeleteRangeRequest { key: "k".into(), ..Default::default() }),
                ..none()
            },
        ),
        (
            "compact",
            InternalRaftRequest { compaction: Some(CompactionRequest { revision: 2, physical: false }), ..none() },
        ),
        (
            "increment",
            InternalRaftRequest {
                increment: Some(IncrementRequest { key: "n".into(), delta: 1, ..Default::default() }),
                ..none()
            },
        ),
        ("grant", InternalRaftRequest { lease_grant: Some(LeaseGrantRequest { ttl: 60, id: 8 }), ..none() }),
        ("revoke", InternalRaftRequest { lease_revoke: Some(LeaseRevokeRequest { id: 7 }), ..none() }),
        ("alarm", InternalRaftRequest { alarm: Some(alarm), ..none() }),
    ]
}

fn requiring(mut request: InternalRaftRequest, names: &[&str]) -> InternalRaftRequest {
    let required_features = names.iter().map(|name| name.as_bytes().to_vec().into()).collect();
    request.header = Some(RequestHeader { required_features, ..Default::default() });
    request
}

fn with_a_key_and_a_lease(version: &str) -> Applier {
    let mut applier = Applier::at(version);
    applier.apply(InternalRaftRequest { put: Some(put()), ..Default::default() }).expect("put");
    let grant = LeaseGrantRequest { ttl: 60, id: 7 };
    applier.apply(InternalRaftRequest { lease_grant: Some(grant), ..Default::default() }).expect("grant");
    applier
}

#[test]
fn proposed_while_on_and_applied_after_it_went_off() {
    let mut applier = with_a_key_and_a_lease("3.8.0");
    applier.switch(true);
    applier.switch(false);
    let before = applier.visible();
    for (kind, request) in writes() {
        let refused = applier.apply(requiring(request, &[FEATURE])).expect_err(kind);
        assert!(matches!(&refused, ApplyError::FeatureOff(name) if name == FEATURE), "{kind}: {refused}");
        assert_eq!(applier.visible(), before, "{kind}");
    }
    let increment = writes().swap_remove(4).1;
    let refused = applier.apply(increment).expect_err("it belongs to the feature");
    assert!(matches!(&refused, ApplyError::FeatureOff(name) if name == FEATURE), "{refused}");
    assert_eq!(applier.visible(), before);
}

#[test]
fn applied_while_on() {
    for (kind, request) in writes() {
        let mut applier = with_a_key_and_a_lease("3.8.0");
        applier.switch(true);
        let before = applier.visible();
        applier.apply(requiring(request, &[FEATURE])).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_ne!(applier.visible(), before, "{kind}");
    }
}

#[test]
fn each_of_several_must_be_on() {
    let mut applier = with_a_key_and_a_lease("3.8.0");
    applier.switch(true);
    let put = || InternalRaftRequest { put: Some(put()), ..Default::default() };
    for off in ["PersistedLeaseCheckpoints", "NoSuchFeature", "LeaseCheckpoint", ""] {
        let refused = applier.apply(requiring(put(), &[FEATURE, off])).expect_err(off);
        assert!(matches!(&refused, ApplyError::FeatureOff(name) if name == off), "{off:?}: {refused}");
    }
}

#[test]
fn below_the_gates_version() {
    let mut applier = with_a_key_and_a_lease("3.7.0");
    let before = applier.visible();
    for (kind, request) in writes() {
        let refused = applier.apply(requiring(request, &[FEATURE])).expect_err(kind);
        assert!(matches!(refused, ApplyError::NotYet(_)), "{kind}: {refused}");
        assert_eq!(applier.visible(), before, "{kind}");
    }
}

#[test]
fn increments_keep_to_quota_and_alarm() {
    let mut applier = with_a_key_and_a_lease("3.8.0");
    applier.switch(true);
    let increment = || writes().swap_remove(4).1;
    applier.state.quota = Quota::new(Some(1));
    // As with a put: the one that first goes over the quota is kept, and its sender is told.
    let before = applier.visible().0;
    assert!(matches!(applier.apply(increment()), Err(ApplyError::NoSpace)));
    assert_eq!(applier.visible().0, before + 1);
    applier.apply(writes().swap_remove(7).1).expect("alarm");
    assert!(matches!(applier.apply(increment()), Err(ApplyError::NoSpace)));
    assert_eq!(applier.visible().0, before + 1, "with the alarm nothing is written");
}
