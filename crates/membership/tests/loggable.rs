//! What may reach the log: one table of requests, and properties over made-up ones.

use bytes::Bytes;
use membership::{Change, MemberId, NotYet, Reason, harms_etcd, may_log, may_log_data, may_log_request};
use proptest::prelude::*;
use prost::Message;
use proto::{
    Version,
    etcdserverpb::{
        AlarmRequest, Compare, DeleteRangeRequest, DowngradeVersionTestRequest, InternalRaftRequest, PutRequest,
        RangeRequest, RequestHeader, RequestOp, TxnRequest, request_op::Request,
    },
    membershippb::{ClusterMemberAttrSetRequest, ClusterVersionSetRequest, DowngradeInfoSetRequest},
    raftpb::{Entry, EntryType},
};
use test_case::test_case;

const V3_7: Option<Version> = Some(Version::new(3, 7));
const V3_8: Option<Version> = Some(Version::new(3, 8));

fn put(key: &'static str, ignore: bool) -> RequestOp {
    let put = PutRequest { key: key.into(), ignore_value: ignore, ..Default::default() };
    RequestOp { request: Some(Request::RequestPut(put)) }
}

fn delete(key: &'static str, range_end: &'static str) -> RequestOp {
    let delete = DeleteRangeRequest { key: key.into(), range_end: range_end.into(), ..Default::default() };
    RequestOp { request: Some(Request::RequestDeleteRange(delete)) }
}

fn txn(success: Vec<RequestOp>, failure: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { compare: Vec::new(), success, failure }
}

fn nested(txn: TxnRequest) -> RequestOp {
    RequestOp { request: Some(Request::RequestTxn(txn)) }
}

fn request() -> InternalRaftRequest {
    InternalRaftRequest { header: Some(RequestHeader { id: 7, ..Default::default() }), ..Default::default() }
}

fn of_txn(txn: TxnRequest) -> InternalRaftRequest {
    InternalRaftRequest { txn: Some(txn), ..request() }
}

fn set_version(ver: &str) -> InternalRaftRequest {
    let set = ClusterVersionSetRequest { ver: ver.into(), feature_gates: None };
    InternalRaftRequest { cluster_version_set: Some(set), ..request() }
}

fn downgrade_to(ver: &str) -> InternalRaftRequest {
    let set = DowngradeInfoSetRequest { enabled: true, ver: ver.into() };
    InternalRaftRequest { downgrade_info_set: Some(set), ..request() }
}

fn test_of(ver: &str) -> InternalRaftRequest {
    let test = DowngradeVersionTestRequest { ver: ver.into() };
    InternalRaftRequest { downgrade_version_test: Some(test), ..request() }
}

fn attributes(given: bool) -> InternalRaftRequest {
    let member_attributes = given.then(Default::default);
    let set = ClusterMemberAttrSetRequest { member_id: 0xa, member_attributes };
    InternalRaftRequest { cluster_member_attr_set: Some(set), ..request() }
}

fn bad_sort() -> TxnRequest {
    let range = RangeRequest { key: "k".into(), sort_target: 9, ..Default::default() };
    txn(vec![RequestOp { request: Some(Request::RequestRange(range)) }], vec![])
}

fn requiring(mut request: InternalRaftRequest) -> InternalRaftRequest {
    request.header.get_or_insert_default().required_features.push("F".into());
    request
}

fn text(result: Result<(), NotYet>) -> String {
    result.map_or_else(|e| e.to_string(), |()| "ok".into())
}

const AT_3_5: &str = "the log may not hold this entry at cluster version 3.5: ";
const AT_3_7: &str = "the log may not hold this entry at cluster version 3.7: ";

#[test_case(of_txn(txn(vec![put("a", true)], vec![])), V3_7, "ok"; "a transaction")]
#[test_case(set_version("3.8.0"), None, "ok"; "the first version, before there is one")]
#[test_case(set_version("3.0.0"), Some(Version::new(3, 0)), "ok"; "a version under the fallback")]
#[test_case(attributes(true), None, "ok"; "attributes before there is a version")]
#[test_case(downgrade_to("3.7.0"), V3_8, "ok"; "a downgrade")]
#[test_case(test_of("3.7.0"), V3_7, "ok"; "a test at its version")]
#[test_case(test_of("3.8.0"), V3_7, "{3.7}downgrade_version_test needs 3.8"; "a test above its version")]
#[test_case(test_of("3.5.0"), None, "{3.5}downgrade_version_test needs 3.6"; "no version counts as 3.5")]
#[test_case(test_of("3.5.0"), Some(Version::new(3, 0)), "{3.5}downgrade_version_test needs 3.6"; "3.0 counts as 3.5")]
#[test_case(requiring(of_txn(txn(vec![put("a", true)], vec![]))), V3_7, "{3.7}txn needs 3.8"; "a required feature below the gates")]
#[test_case(requiring(of_txn(txn(vec![put("a", true)], vec![]))), V3_8, "ok"; "a required feature")]
#[test_case(request(), V3_7, "{3.7}it asks for nothing that is known"; "nothing")]
#[test_case(InternalRaftRequest { put: Some(PutRequest::default()), ..Default::default() }, V3_7, "{3.7}it has neither an id nor a header"; "no id")]
#[test_case(set_version("3.8"), V3_7, "{3.7}\"3.8\" is no cluster version; the right form is X.Y.Z"; "a short version")]
#[test_case(downgrade_to("x"), V3_7, "{3.7}\"x\" is no version to downgrade to; the right form is X.Y.Z"; "a bad target")]
#[test_case(attributes(false), V3_7, "{3.7}it sets the attributes of member a to nothing"; "no attributes")]
#[test_case(of_txn(txn(vec![RequestOp::default()], vec![])), V3_7, "{3.7}its transaction holds an empty operation"; "an empty operation")]
#[test_case(of_txn(bad_sort()), V3_7, "ok"; "an unknown enum value")]
#[test_case(InternalRaftRequest { alarm: Some(AlarmRequest { action: 9, ..Default::default() }), ..request() }, V3_7, "ok"; "an unknown action")]
fn table(request: InternalRaftRequest, version: Option<Version>, want: &str) {
    let want = want.replace("{3.7}", AT_3_7).replace("{3.5}", AT_3_5);
    assert_eq!(text(may_log_request(&request, version)), want);
    assert_eq!(text(may_log_data(&request.encode_to_vec().into(), version)), want);
}

#[test_case(vec![delete("a", "\0"), put("b", true)], vec![] => true; "from a key on")]
#[test_case(vec![delete("a", "\0"), put("a", true)], vec![] => true; "from this very key on")]
#[test_case(vec![delete("a", "c"), put("b", true)], vec![] => true; "a range")]
#[test_case(vec![delete("a", ""), put("a", true)], vec![] => true; "one key")]
#[test_case(vec![delete("b", "\0"), put("a", true)], vec![] => false; "a key before it")]
#[test_case(vec![delete("a", "c"), put("c", true)], vec![] => false; "the end of the range")]
#[test_case(vec![delete("c", "a"), put("b", true)], vec![] => false; "an empty range")]
#[test_case(vec![delete("a", "\0"), put("b", false)], vec![] => false; "a put of its own value")]
#[test_case(vec![put("b", true), delete("a", "\0")], vec![] => false; "the put comes first")]
#[test_case(vec![delete("a", "\0")], vec![put("b", true)] => false; "only one branch runs")]
#[test_case(vec![], vec![delete("a", "\0"), put("b", true)] => true; "the other branch")]
#[test_case(vec![nested(txn(vec![delete("a", "\0")], vec![])), put("b", true)], vec![] => true; "deleted further in")]
#[test_case(vec![nested(txn(vec![], vec![delete("a", "\0")])), put("b", true)], vec![] => true; "deleted in the branch further in")]
#[test_case(vec![delete("a", "\0"), nested(txn(vec![], vec![put("b", true)]))], vec![] => true; "put further in")]
#[test_case(vec![nested(txn(vec![delete("a", "\0")], vec![put("b", true)]))], vec![] => false; "two branches further in")]
#[test_case(vec![nested(txn(vec![delete("a", "b")], vec![])), nested(txn(vec![put("a", true)], vec![]))], vec![] => true; "one after the other")]
fn harm(success: Vec<RequestOp>, failure: Vec<RequestOp>) -> bool {
    let txn = txn(success, failure);
    let harms = harms_etcd(&txn).is_some();
    assert_eq!(may_log_request(&of_txn(txn.clone()), V3_7).is_err(), harms);
    assert_eq!(may_log_data(&of_txn(txn.clone()).encode_to_vec().into(), V3_7).is_err(), harms);
    // From 3.8 on all members are ours, and ours have no such trouble.
    assert_eq!(may_log_request(&of_txn(txn.clone()), V3_8), Ok(()));
    assert_eq!(may_log_data(&of_txn(txn).encode_to_vec().into(), V3_8), Ok(()));
    harms
}

#[test]
fn entries() {
    let entry = |kind: i32, data: Vec<u8>| Entry { r#type: Some(kind), data: Some(data.into()), ..Default::default() };
    let log = |entry: &Entry| text(may_log(entry, V3_7));
    assert_eq!(log(&Entry::default()), "ok");
    assert_eq!(log(&entry(0, Vec::new())), "ok");
    assert_eq!(
        log(&entry(EntryType::EntryConfChange as i32, Change::Remove(MemberId(1)).encode(1).encode_to_vec())),
        "ok"
    );
    let refused = |entry: &Entry, why: &str| assert_eq!(log(entry), format!("{AT_3_7}{why}"));
    refused(
        &entry(EntryType::EntryConfChangeV2 as i32, Vec::new()),
        "this binary does not know the use of joint configuration changes",
    );
    refused(&entry(9, Vec::new()), "this binary does not know raftpb.Entry.Type=9");
    assert!(log(&entry(1, Vec::new())).contains("holds no member that can be read"));
    assert!(log(&entry(0, vec![0xff])).contains("it cannot be read"));
    // Field 12 of the union is nobody's yet.
    let unknown = [request().encode_to_vec(), vec![0x62, 0]].concat();
    refused(&entry(0, unknown), "this binary does not know etcdserverpb.InternalRaftRequest.12");
}

/// The walk over ranges is bounded: a transaction made to be slow is refused instead.
#[test]
fn a_transaction_made_to_be_slow_is_refused() {
    let ops = |n: usize, op: fn() -> RequestOp| (0..n).map(move |_| op()).collect::<Vec<_>>();
    let slow = [ops(30_000, || delete("a", "b")), ops(30_000, || put("z", true))].concat();
    assert!(harms_etcd(&txn(slow, vec![])).is_some());
}

fn any_key() -> impl Strategy<Value = Bytes> {
    prop::sample::select(vec!["", "a", "b", "c", "\0"]).prop_map(Bytes::from)
}

fn any_op() -> impl Strategy<Value = RequestOp> {
    let leaf = prop_oneof![
        Just(None),
        (any_key(), any::<bool>(), any::<bool>(), any::<i64>()).prop_map(|(key, ignore_value, ignore_lease, lease)| {
            Some(Request::RequestPut(PutRequest { key, lease, ignore_value, ignore_lease, ..Default::default() }))
        }),
        (any_key(), any_key()).prop_map(|(key, range_end)| {
            Some(Request::RequestDeleteRange(DeleteRangeRequest { key, range_end, ..Default::default() }))
        }),
        (any_key(), -1..7, any::<i64>()).prop_map(|(key, sort_target, min_mod_revision)| {
            Some(Request::RequestRange(RangeRequest { key, sort_target, min_mod_revision, ..Default::default() }))
        }),
    ];
    let leaf = leaf.prop_map(|request| RequestOp { request });
    leaf.prop_recursive(3, 24, 4, |op| {
        (prop::collection::vec(op.clone(), 0..4), prop::collection::vec(op, 0..4), -1..7).prop_map(|(s, f, result)| {
            let compare = vec![Compare { result, ..Default::default() }];
            nested(TxnRequest { compare, success: s, failure: f })
        })
    })
}

fn any_request() -> impl Strategy<Value = InternalRaftRequest> {
    let txn = prop::collection::vec(any_op(), 0..5).prop_map(|success| of_txn(txn(success, vec![])));
    let writes = (any_key(), any::<bool>(), any::<u64>()).prop_map(|(key, ignore_lease, id)| InternalRaftRequest {
        id,
        header: None,
        put: Some(PutRequest { key, ignore_lease, ..Default::default() }),
        ..Default::default()
    });
    let versions = prop::sample::select(vec!["3.6.0", "3.9.0", "3.9", ""]);
    let tests = (versions, 0..4).prop_map(|(version, kind)| match kind {
        0 => test_of(version),
        1 => set_version(version),
        2 => downgrade_to(version),
        _ => attributes(version.is_empty()),
    });
    // Two requests in one: the short way must not overlook the second.
    let both = (any_key(), prop::sample::select(vec!["3.6.0", "3.9.0"])).prop_map(|(key, version)| {
        InternalRaftRequest { put: Some(PutRequest { key, ..Default::default() }), ..test_of(version) }
    });
    let requests = prop_oneof![4 => txn, 2 => writes, 1 => tests, 1 => both];
    let required = prop::option::weighted(0.3, prop::collection::vec("[A-Z]?", 0..3));
    (requests, required).prop_map(|(mut request, required)| {
        if let Some(required) = required {
            request.header.get_or_insert_default().required_features = required.into_iter().map(Into::into).collect();
        }
        request
    })
}

fn any_version() -> impl Strategy<Value = Option<Version>> {
    prop::option::of((3u16..4, 0u16..11).prop_map(|(major, minor)| Version::new(major, minor)))
}

/// Found by `both_ways_agree`: at 3.8 the short way did not look at transactions.
#[test_case(V3_7)]
#[test_case(V3_8)]
fn an_empty_operation_is_never_logged(version: Option<Version>) {
    let empty = of_txn(txn(vec![nested(txn(vec![RequestOp { request: None }], Vec::new()))], Vec::new()));
    assert!(may_log_request(&empty, version).is_err());
    assert!(may_log_data(&empty.encode_to_vec().into(), version).is_err());
}

proptest! {
    /// The short way for a decoded request and the long one over its bytes give one answer.
    #[test]
    fn both_ways_agree(request in any_request(), version in any_version()) {
        prop_assert_eq!(may_log_request(&request, version), may_log_data(&request.encode_to_vec().into(), version));
    }

    /// What may be logged stays so at every later version.
    #[test]
    fn later_versions_take_more(request in any_request(), minor in 0u16..10) {
        let (older, newer) = (Some(Version::new(3, minor)), Some(Version::new(3, minor + 1)));
        if may_log_request(&request, older).is_ok() {
            prop_assert_eq!(may_log_request(&request, newer), Ok(()));
        }
    }

    /// What passes is understood at the version it passed at.
    #[test]
    fn what_passes_is_understood(request in any_request(), version in any_version()) {
        if may_log_request(&request, version).is_ok() {
            let needs = proto::min_version_of_request(&request.encode_to_vec());
            let have = version.unwrap_or(membership::LOG_VERSION_MIN).max(membership::LOG_VERSION_MIN);
            let understood = match needs {
                Ok(proto::MinVersion::Known(needs)) => needs <= have,
                // Only numbers that an enum does not have.
                Ok(proto::MinVersion::Newer { path }) => path.contains('='),
                Err(_) => false,
            };
            prop_assert!(understood);
        }
    }

    #[test]
    fn any_bytes_get_an_answer(data in prop::collection::vec(any::<u8>(), 0..64), version in any_version()) {
        let refused = may_log_data(&data.clone().into(), version).err();
        let readable = InternalRaftRequest::decode(data.as_slice()).is_ok();
        let malformed = matches!(refused, Some(NotYet { reason: Reason::Malformed(_), .. }));
        prop_assert!(readable || malformed);
    }
}
