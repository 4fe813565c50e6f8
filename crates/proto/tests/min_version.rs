//! The lowest release that understands a message: etcd's own cases, and those in which we look closer.

use prost::{Message, Name};
use proto::{
    MinVersion::{self, Known, Newer},
    MinVersionError, Version, WireError,
    etcdserverpb::{
        Compare, DowngradeVersionTestRequest, InternalRaftRequest, PutRequest, RangeRequest, RequestHeader, RequestOp,
        TxnRequest, WatchCreateRequest, compare, request_op, watch_create_request,
    },
    membershippb::DowngradeInfoSetRequest,
    min_version, min_version_named, min_version_of_entry,
    raftpb::{ConfChange, ConfChangeTransition, ConfChangeType, ConfChangeV2, Entry, EntryType},
};
use test_case::test_case;

fn of<M: Message + Name>(message: &M) -> MinVersion {
    min_version::<M>(&message.encode_to_vec()).unwrap()
}

fn v(minor: u16) -> MinVersion {
    Known(Version::new(3, minor))
}

fn newer(path: &str) -> MinVersion {
    Newer { path: path.to_owned() }
}

/// The cases of `server/storage/wal/version_test.go`.
#[test]
fn messages_have_the_version_etcd_gives_them() {
    let header = |auth_revision, username: &str| RequestHeader {
        auth_revision,
        username: username.into(),
        ..Default::default()
    };
    assert_eq!(of(&header(0, "")), v(0));
    assert_eq!(of(&header(1, "")), v(1));
    assert_eq!(of(&header(0, "Alice")), v(0));
    assert_eq!(of(&header(1, "Alice")), v(1));
    assert_eq!(of(&InternalRaftRequest { header: Some(header(1, "")), ..Default::default() }), v(1));
    let info =
        InternalRaftRequest { downgrade_info_set: Some(DowngradeInfoSetRequest::default()), ..Default::default() };
    assert_eq!(of(&info), v(5));
    let compare = |result: compare::CompareResult, target_union| Compare {
        result: result.into(),
        target_union,
        ..Default::default()
    };
    assert_eq!(of(&compare(compare::CompareResult::Equal, None)), v(0));
    assert_eq!(of(&compare(compare::CompareResult::NotEqual, None)), v(1));
    assert_eq!(of(&compare(compare::CompareResult::Equal, Some(compare::TargetUnion::Version(0)))), v(0));
    assert_eq!(of(&compare(compare::CompareResult::Equal, Some(compare::TargetUnion::Lease(0)))), v(3));
}

fn entry(kind: EntryType, data: Vec<u8>) -> Entry {
    Entry { term: Some(1), index: Some(2), r#type: Some(kind.into()), data: Some(data.into()) }
}

fn test_request(version: &str) -> Vec<u8> {
    let test = DowngradeVersionTestRequest { ver: version.into() };
    InternalRaftRequest { downgrade_version_test: Some(test), ..Default::default() }.encode_to_vec()
}

#[test]
fn entries_have_the_version_etcd_gives_them() {
    let header = RequestHeader { auth_revision: 1, ..Default::default() };
    let request = InternalRaftRequest { header: Some(header), ..Default::default() };
    let learner = ConfChange { r#type: Some(ConfChangeType::ConfChangeAddLearnerNode.into()), ..Default::default() };
    let joint = ConfChangeV2 { transition: Some(ConfChangeTransition::JointExplicit.into()), ..Default::default() };
    let cases = [
        (entry(EntryType::EntryNormal, request.encode_to_vec()), v(1)),
        (entry(EntryType::EntryNormal, test_request("3.6.0")), v(6)),
        (entry(EntryType::EntryNormal, test_request("3.7.0")), v(7)),
        (entry(EntryType::EntryNormal, test_request("3.5.0")), v(6)),
        (entry(EntryType::EntryConfChange, learner.encode_to_vec()), v(0)),
        (entry(EntryType::EntryConfChangeV2, joint.encode_to_vec()), v(4)),
        (entry(EntryType::EntryNormal, Vec::new()), v(0)),
        (Entry { r#type: Some(7), ..Default::default() }, newer("raftpb.Entry.Type=7")),
        (Entry::default(), v(0)),
    ];
    for (entry, expected) in cases {
        assert_eq!(min_version_of_entry(&entry).unwrap(), expected, "{entry:?}");
    }
    let error = min_version_of_entry(&entry(EntryType::EntryNormal, test_request("three"))).unwrap_err();
    assert!(matches!(error, MinVersionError::TestVersion { .. }), "{error}");
}

fn success(op: request_op::Request) -> InternalRaftRequest {
    let txn = TxnRequest { success: vec![RequestOp { request: Some(op) }], ..Default::default() };
    InternalRaftRequest { txn: Some(txn), ..Default::default() }
}

#[test]
fn lists_are_entered() {
    let put = PutRequest { ignore_value: true, ..Default::default() };
    assert_eq!(of(&success(request_op::Request::RequestPut(put))), v(2));
    assert_eq!(of(&success(request_op::Request::RequestTxn(TxnRequest::default()))), v(3));
    let compare = Compare { range_end: "z".into(), ..Default::default() };
    assert_eq!(of(&TxnRequest { compare: vec![Compare::default(), compare], ..Default::default() }), v(3));
    let filters = vec![watch_create_request::FilterType::Noput.into()];
    assert_eq!(of(&WatchCreateRequest { filters, ..Default::default() }), v(1));
}

#[test]
fn what_is_unknown_is_newer_and_named() {
    let bytes = [4 << 3 | 2, 3, 0xf8, 0x06, 1]; // put, in it field 111
    assert_eq!(min_version::<InternalRaftRequest>(&bytes).unwrap(), newer("etcdserverpb.InternalRaftRequest.put.111"));
    let range = RangeRequest { sort_order: 9, ..Default::default() };
    assert_eq!(of(&range), newer("etcdserverpb.RangeRequest.sort_order=9"));
    assert_eq!(
        of(&success(request_op::Request::RequestRange(range))),
        newer("etcdserverpb.InternalRaftRequest.txn.success.request_range.sort_order=9")
    );
    assert_eq!(
        of(&WatchCreateRequest { filters: vec![0, 5], ..Default::default() }),
        newer("etcdserverpb.WatchCreateRequest.filters=5")
    );
}

/// A zero that proto3 cannot tell from nothing is nothing, however it is written.
#[test_case(&[5 << 3, 0] => v(0); "zero bool")]
#[test_case(&[5 << 3, 1] => v(2); "set bool")]
#[test_case(&[1 << 3 | 2, 0] => v(0); "empty bytes")]
fn zeros_are_not_set(bytes: &[u8]) -> MinVersion {
    min_version::<PutRequest>(bytes).unwrap()
}

#[test_case(&[0x22, 2, 0x0a], WireError::Truncated, "etcdserverpb.InternalRaftRequest"; "end in a length")]
#[test_case(&[0x22, 2, 0x0a, 9], WireError::Truncated, "etcdserverpb.InternalRaftRequest.put"; "end in a nested value")]
#[test_case(&[0x22, 1, 0x0b], WireError::Truncated, "etcdserverpb.InternalRaftRequest.put"; "group without an end")]
#[test_case(&[0x22, 1, 0x0c], WireError::WireType(4), "etcdserverpb.InternalRaftRequest.put"; "end without a group")]
#[test_case(&[0x22, 2, 0x0b, 0x0c], WireError::OtherWireType { found: 3, expected: 2 },
    "etcdserverpb.InternalRaftRequest.put.key"; "group for bytes")]
#[test_case(&[0x22, 1, 0x0f], WireError::WireType(7), "etcdserverpb.InternalRaftRequest.put"; "no such wire type")]
#[test_case(&[0], WireError::FieldNumber(0), "etcdserverpb.InternalRaftRequest"; "field zero")]
#[test_case(&[0x20, 1], WireError::OtherWireType { found: 0, expected: 2 },
    "etcdserverpb.InternalRaftRequest.put"; "number for a message")]
#[test_case(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], WireError::LongVarint,
    "etcdserverpb.InternalRaftRequest"; "long varint")]
#[test_case(&[0xa2, 0x06, 3, 0x12, 1, 0xff], WireError::NotUtf8,
    "etcdserverpb.InternalRaftRequest.header.username"; "text that is none")]
fn malformed_bytes_are_an_error_that_names_the_place(bytes: &[u8], source: WireError, path: &str) {
    let error = min_version::<InternalRaftRequest>(bytes).unwrap_err();
    assert_eq!(error, MinVersionError::Malformed { path: path.to_owned(), source });
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let mut bytes = Vec::new();
    for _ in 0..400 {
        bytes = TxnRequest { success: vec![RequestOp { request: None }], ..Default::default() }
            .encode_to_vec()
            .into_iter()
            .chain(field(2, &field(4, &bytes)))
            .collect();
    }
    let error = min_version::<TxnRequest>(&bytes).unwrap_err();
    assert!(matches!(error, MinVersionError::Malformed { source: WireError::TooDeep(_), .. }), "{error}");
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

#[test]
fn an_unknown_name_is_an_error() {
    let error = min_version_named("etcdserverpb.Nothing", b"").unwrap_err();
    assert_eq!(error, MinVersionError::UnknownMessage("etcdserverpb.Nothing".into()));
}

/// Logs and members of earlier builds have these names as strings, which are the same bytes.
#[test]
fn required_features_are_on_the_wire_as_strings_are() {
    let names = [("one", &b"\x8a\xe2\x09\x01A"[..]), ("two", b"\x8a\xe2\x09\x01A\x8a\xe2\x09\x02Bc")];
    for (what, names) in names {
        let wire = [b"\x08\x07", names].concat();
        let header = proto::etcdserverpb::RequestHeader::decode(&wire[..]).expect(what);
        assert!(header.required_features.iter().eq(["A", "Bc"].iter().take(header.required_features.len())), "{what}");
        assert_eq!(header.encode_to_vec(), wire, "{what}");
    }
}
