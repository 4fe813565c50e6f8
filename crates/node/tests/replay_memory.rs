//! What waits in the log takes no memory for the keys that are there: also if it deletes, compares or reads all of them.
//!
//! Alone in its process, whose memory it looks at.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

use std::ops::ControlFlow;

use bytes::Bytes;
use membership::{ClusterId, MemberId};
use node::offline::{Offline, Touched};
use prost::Message;
use proto::{
    Version,
    etcdserverpb::{
        Compare, DeleteRangeRequest, InternalRaftRequest, LeaseRevokeRequest, PutRequest, RangeRequest, RequestHeader,
        RequestOp, TxnRequest,
        compare::{CompareResult, CompareTarget, TargetUnion},
        request_op::Request,
    },
    mvccpb::KeyValue,
    raftpb::Entry,
};
use storage::{
    Backend, Bucket, Read, RevisionKey,
    schema::{self, MemberRecord},
};

const FEW: i64 = 100_000;
const MANY: i64 = 300_000;
/// The index of a member takes 75 bytes for a small key at the least, and one who deletes it 100 more: over 35 MB for the
/// difference.
const GROWTH_MAX_KB: u64 = 18 << 10;
const LEASE: i64 = 7;

/// Forgets the most memory so far.
fn begin_anew() {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
}

/// The most memory this process has had since, mapped files included.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Every second key hangs on a lease.
fn fill(backend: &Backend, keys: i64) {
    schema::member::put(&mut backend.write(), &MemberRecord { id: 7, ..Default::default() });
    schema::lease::put(&mut backend.write(), &proto::leasepb::Lease { id: LEASE, ttl: 1000, ..Default::default() });
    for i in 0..keys {
        let revision = i + 2;
        let kv = KeyValue {
            // In no order.
            key: format!("key-{:016}", i * 61_807 % keys).into(),
            create_revision: revision,
            mod_revision: revision,
            version: 1,
            value: "value".into(),
            lease: if i % 2 == 0 { LEASE } else { 0 },
        };
        backend.write().put_revision(RevisionKey::new(revision, 0), kv.encode_to_vec());
    }
    backend.commit().unwrap();
    backend.release_memory();
}

fn all_keys() -> (Bytes, Bytes) {
    (Bytes::from_static(b"\0"), Bytes::from_static(b"\0"))
}

fn compare_all(target: CompareTarget, union: TargetUnion) -> Compare {
    let (key, range_end) = all_keys();
    let mut compare = Compare { key, range_end, target_union: Some(union), ..Default::default() };
    compare.set_target(target);
    compare.set_result(CompareResult::Equal);
    compare
}

/// Compares and reads all keys, ends a lease that half of them hang on, and deletes all.
fn tail() -> Vec<Entry> {
    let (key, range_end) = all_keys();
    let compare = vec![
        compare_all(CompareTarget::Value, TargetUnion::Value("value".into())),
        compare_all(CompareTarget::Version, TargetUnion::Version(1)),
    ];
    let range = RangeRequest { key: key.clone(), range_end: range_end.clone(), ..Default::default() };
    let put = PutRequest { key: "new".into(), value: "new".into(), ..Default::default() };
    let ops = [Request::RequestRange(range), Request::RequestPut(put)];
    let success = ops.map(|request| RequestOp { request: Some(request) }).to_vec();
    let delete = DeleteRangeRequest { key, range_end, prev_kv: true };
    let requests = [
        InternalRaftRequest { txn: Some(TxnRequest { compare, success, failure: Vec::new() }), ..Default::default() },
        InternalRaftRequest { lease_revoke: Some(LeaseRevokeRequest { id: LEASE }), ..Default::default() },
        InternalRaftRequest { delete_range: Some(delete), ..Default::default() },
    ];
    let entry = |(index, request): (u64, InternalRaftRequest)| {
        let header = Some(RequestHeader { id: index, ..Default::default() });
        let data = Some(InternalRaftRequest { header, ..request }.encode_to_vec().into());
        Entry { index: Some(index), term: Some(2), data, ..Default::default() }
    };
    (1..).zip(requests).map(entry).collect()
}

/// Gives the memory that was needed at most.
fn replay(keys: i64) -> u64 {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
    fill(&backend, keys);
    begin_anew();
    let mut touched = Touched::default();
    tail().iter().for_each(|entry| touched.note(entry));
    let member = (ClusterId(1), MemberId(7));
    let mut offline = Offline::load(backend.clone(), member, Version::new(3, 8), touched).unwrap();
    tail().iter().for_each(|entry| offline.apply(entry).unwrap());
    offline.finish().unwrap();
    let peak = peak_kb();
    let (mut last, mut tombstones) = (0, 0);
    backend.view().scan(Bucket::Key, b"", b"", &mut |key, _| {
        let at = RevisionKey::decode(key).unwrap();
        (last, tombstones) = (at.main, tombstones + i64::from(at.tombstone));
        ControlFlow::Continue(())
    });
    // The put makes a revision, the end of the lease one, and the deletion one.
    assert_eq!((last, tombstones), (keys + 4, keys + 1));
    backend.release_memory();
    peak
}

#[test]
fn does_not_grow_with_the_number_of_keys() {
    let few = replay(FEW);
    let many = replay(MANY);
    eprintln!("{few} kB with {FEW} keys, {many} kB with {MANY}");
    assert!(many.saturating_sub(few) < GROWTH_MAX_KB, "{few} kB with {FEW} keys, {many} kB with {MANY}");
}
