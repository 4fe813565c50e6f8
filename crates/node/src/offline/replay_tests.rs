//! A tail of the log comes to the same bytes as in a member that has all keys in its index.

use std::ops::ControlFlow;

use bytes::Bytes;
use proto::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest, RangeRequest,
    RequestHeader, RequestOp,
    compare::{CompareResult, CompareTarget, TargetUnion},
    request_op::Request,
};
use random::Random;
use storage::{Bucket, Read};

use super::*;

const MEMBER: (ClusterId, MemberId) = (ClusterId(1), MemberId(7));
const KEYS: u64 = 300;

/// Everything in a file, in order.
fn contents(backend: &Backend) -> Vec<(Bucket, Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for bucket in Bucket::ALL {
        backend.view().scan(bucket, b"", b"", &mut |key, value| {
            all.push((bucket, key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        });
    }
    all
}

fn key(random: &mut Random) -> Bytes {
    format!("k{:03}", random.below(KEYS)).into()
}

fn key_and_end(random: &mut Random) -> (Bytes, Bytes) {
    match random.below(8) {
        0 => (key(random), Bytes::from_static(b"\0")),
        1 => ("k".into(), "l".into()),
        2 | 3 => (key(random), key(random)),
        _ => (key(random), Bytes::new()),
    }
}

fn random_compare(random: &mut Random, index: u64) -> Compare {
    let (key, range_end) = key_and_end(random);
    let number = |random: &mut Random| random.below(index) as i64;
    let (target, union) = match random.below(5) {
        0 => (CompareTarget::Value, TargetUnion::Value(random.below(3).to_string().into())),
        1 => (CompareTarget::Create, TargetUnion::CreateRevision(number(random))),
        2 => (CompareTarget::Mod, TargetUnion::ModRevision(number(random))),
        3 => (CompareTarget::Version, TargetUnion::Version(random.below(3) as i64)),
        _ => (CompareTarget::Lease, TargetUnion::Lease(random.below(3) as i64)),
    };
    let mut compare = Compare { key, range_end, target_union: Some(union), ..Default::default() };
    compare.set_target(target);
    let results = [CompareResult::Greater, CompareResult::Less, CompareResult::NotEqual, CompareResult::Equal];
    compare.set_result(results[random.below(4) as usize]);
    compare
}

fn random_put(random: &mut Random) -> PutRequest {
    let lease = if random.below(3) == 0 { 1 + random.below(6) as i64 } else { 0 };
    let (ignore_value, ignore_lease) = (random.below(8) == 0, lease == 0 && random.below(8) == 0);
    let value = if ignore_value { Bytes::new() } else { random.below(3).to_string().into() };
    PutRequest { key: key(random), value, lease, prev_kv: random.below(4) == 0, ignore_value, ignore_lease }
}

fn random_delete(random: &mut Random) -> DeleteRangeRequest {
    // Ranges are rare, or nothing would be left.
    let (key, range_end) = if random.below(4) == 0 { key_and_end(random) } else { (key(random), Bytes::new()) };
    DeleteRangeRequest { key, range_end, prev_kv: random.below(4) == 0 }
}

/// At a revision that may be compacted, there, or yet to come.
fn random_range(random: &mut Random, index: u64) -> RangeRequest {
    let (key, range_end) = key_and_end(random);
    let revision = if random.below(3) == 0 { random.below(index + 2) as i64 } else { 0 };
    RangeRequest { key, range_end, revision, ..Default::default() }
}

fn random_txn(random: &mut Random, index: u64, depth: u32) -> TxnRequest {
    let ops = |random: &mut Random| -> Vec<_> {
        (0..1 + random.below(3))
            .map(|_| RequestOp { request: Some(random_request(random, index, depth + 1)) })
            .collect()
    };
    let compare = (0..random.below(3)).map(|_| random_compare(random, index)).collect();
    TxnRequest { compare, success: ops(random), failure: ops(random) }
}

fn random_request(random: &mut Random, index: u64, depth: u32) -> Request {
    match random.below(if depth < 2 { 10 } else { 7 }) {
        0..4 => Request::RequestPut(random_put(random)),
        4 | 5 => Request::RequestDeleteRange(random_delete(random)),
        6 => Request::RequestRange(random_range(random, index)),
        _ => Request::RequestTxn(random_txn(random, index, depth)),
    }
}

fn random_entry(random: &mut Random, index: u64) -> Entry {
    let mut r = InternalRaftRequest {
        header: Some(RequestHeader { id: index, ..Default::default() }),
        ..InternalRaftRequest::default()
    };
    let id = 1 + random.below(6) as i64;
    match random.below(20) {
        0 | 1 => r.lease_grant = Some(LeaseGrantRequest { id, ttl: 1000 }),
        2 => r.lease_revoke = Some(LeaseRevokeRequest { id }),
        3 => r.compaction = Some(CompactionRequest { revision: index as i64 / 2, ..Default::default() }),
        _ => match random_request(random, index, 0) {
            Request::RequestPut(put) => r.put = Some(put),
            Request::RequestDeleteRange(delete) => r.delete_range = Some(delete),
            Request::RequestTxn(txn) => r.txn = Some(txn),
            Request::RequestRange(range) => r.range = Some(range),
        },
    }
    let data = Some(r.encode_to_vec().into());
    Entry { index: Some(index), term: Some(2), data, ..Default::default() }
}

/// With all keys in an index in memory, as a member starts.
fn load_whole(backend: &Backend) -> Offline {
    let mut offline = Offline::load(backend.clone(), MEMBER, Version::new(3, 8), Touched::all()).unwrap();
    let mut lessor = offline.state.lessor.lock();
    let attach = |id, key: &Bytes| lessor.attach(id, key);
    let store = mvcc::Store::open(backend.clone(), mvcc::Options::default(), attach).unwrap();
    drop(lessor);
    offline.state.store = Arc::new(store);
    offline
}

fn load_within(backend: &Backend, touched: Touched, replay_bytes_max: usize) -> Offline {
    let options = mvcc::Options { replay_bytes_max, ..Default::default() };
    Offline::load_with(backend.clone(), MEMBER, Version::new(3, 8), touched, options).unwrap()
}

fn open(path: &std::path::Path) -> Backend {
    Backend::open(path, storage::Options::default()).unwrap()
}

fn new_file(path: &std::path::Path, entries: u64, random: &mut Random) -> Backend {
    let backend = open(path);
    schema::member::put(&mut backend.write(), &schema::MemberRecord { id: 7, ..Default::default() });
    let mut offline = load_whole(&backend);
    (1..=entries - KEYS).for_each(|index| offline.apply(&random_entry(random, index)).unwrap());
    // Those delete about as much as they put.
    for (index, number) in (entries - KEYS + 1..).zip(0..KEYS) {
        let lease = if number % 3 == 0 { 1 + (number % 6) as i64 } else { 0 };
        let put =
            Some(PutRequest { key: format!("k{number:03}").into(), value: "0".into(), lease, ..Default::default() });
        let header = Some(RequestHeader { id: index, ..Default::default() });
        let data = Some(InternalRaftRequest { header, put, ..Default::default() }.encode_to_vec().into());
        offline.apply(&Entry { index: Some(index), term: Some(2), data, ..Default::default() }).unwrap();
    }
    backend.commit().unwrap();
    backend
}

/// With the touched keys alone, in memory or nearly all on disk, every byte comes out as with all of them in an index.
#[test]
fn a_tail_comes_to_the_same_bytes() {
    let (mut fewer, mut changed) = (0, 0);
    for seed in 0..40 {
        let (dir, mut random) = (harness::tempdir(), Random::new(seed));
        let path = |name: &str| dir.path().join(name);
        let whole = new_file(&path("whole"), 700, &mut random);
        let before = contents(&whole);
        let [in_memory, on_disk, all_on_disk] = ["a", "b", "c"].map(|name| {
            std::fs::copy(path("whole"), path(name)).unwrap();
            open(&path(name))
        });
        let tail: Vec<_> = (701..704 + seed % 20).map(|index| random_entry(&mut random, index)).collect();
        let touched = || {
            let mut touched = Touched::default();
            tail.iter().for_each(|entry| touched.note(entry));
            touched
        };
        let keys = (0..KEYS).filter(|i| touched().has(format!("k{i:03}").as_bytes())).count();
        let run = |mut offline: Offline| {
            tail.iter().for_each(|entry| offline.apply(entry).unwrap());
            offline.finish().unwrap();
        };
        run(load_whole(&whole));
        run(load_within(&in_memory, touched(), 16 << 20));
        run(load_within(&on_disk, touched(), 2000));
        run(load_within(&all_on_disk, Touched::all(), 4000));
        let want = contents(&whole);
        for (file, what) in [(&in_memory, "in memory"), (&on_disk, "on disk"), (&all_on_disk, "all on disk")] {
            assert!(want == contents(file), "seed {seed}: {what}");
        }
        let hash = |file: &Backend| mvcc::hash_file(&file.view(), 0, &mut |_| ()).unwrap();
        assert_eq!(hash(&whole), hash(&on_disk));
        fewer += u32::from(keys < KEYS as usize / 2);
        changed += u32::from(want.len() > before.len() + 100);
    }
    assert!(fewer > 5, "only {fewer} tails left half of the keys out");
    assert!(changed > 3, "only {changed} tails changed much");
}
