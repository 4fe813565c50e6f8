//! What the tests share.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use prost::Message;
use storage::{Backend, Bucket, Options, Read, RevisionKey, schema};

pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

pub(crate) fn open(dir: &Path) -> Backend {
    let options = Options { lock_timeout: Some(Duration::from_secs(5)), ..Options::default() };
    Backend::open(&dir.join("db"), options).expect("open")
}

/// Commits only when asked to.
pub(crate) fn manual() -> Options {
    Options { batch_interval: Duration::from_secs(3600), ..Options::default() }
}

/// Commits all the time.
pub(crate) fn eager() -> Options {
    Options { batch_interval: Duration::from_millis(1), batch_limit: 50, ..Options::default() }
}

pub(crate) fn all(read: &impl Read, bucket: Bucket) -> Pairs {
    range(read, bucket, b"", b"")
}

pub(crate) fn range(read: &impl Read, bucket: Bucket, from: &[u8], to: &[u8]) -> Pairs {
    let mut pairs = Vec::new();
    read.scan(bucket, from, to, &mut |k, v| {
        pairs.push((k.to_vec(), v.to_vec()));
        ControlFlow::Continue(())
    });
    pairs
}

/// A unit whose parts can be checked against each other: revision `n` in bucket `key` with three changes of which the
/// last is a tombstone, a lease that moves, a member of `meta` by name, and index `n`.
pub(crate) fn put_unit(backend: &Backend, n: u64) {
    let mut batch = backend.write();
    let main = n as i64;
    for sub in 0..2 {
        batch.put_revision(RevisionKey::new(main, sub), value_of(n, 40));
    }
    batch.put_revision(RevisionKey::tombstone(main, 2), value_of(n, 1));
    schema::lease::delete(&mut batch, main - 1);
    schema::lease::put(&mut batch, &proto::leasepb::Lease { id: main, ttl: main, remaining_ttl: 0 });
    // As compaction does, an old revision goes now and then.
    if n.is_multiple_of(7) {
        batch.delete(Bucket::Key, &RevisionKey::new(main / 2, 1).encode());
    }
    batch.set_consistent(n, 1 + n / 100);
}

/// A file as another member sends it: what the backend has, and units up to `until`.
pub(crate) fn received(backend: &Backend, dir: &Path, until: u64) -> PathBuf {
    let path = dir.join("1.snap.db");
    let mut snapshot = backend.snapshot().expect("snapshot");
    let mut file = std::fs::File::create(&path).expect("create");
    std::io::copy(&mut snapshot, &mut file).expect("copy");
    drop(file);
    let other = Backend::open(&path, manual()).expect("open");
    let (have, _) = schema::meta::consistent(&other.view()).expect("index");
    (have + 1..=until).for_each(|n| put_unit(&other, n));
    other.close().expect("close");
    path
}

fn value_of(n: u64, times: usize) -> Vec<u8> {
    let value = n.to_le_bytes().repeat(times).into();
    let kv = proto::mvccpb::KeyValue { key: "k".into(), mod_revision: n as i64, value, ..Default::default() };
    kv.encode_to_vec()
}

/// Checks that exactly the units up to the consistent index are there, and returns it.
pub(crate) fn check_units(read: &impl Read) -> u64 {
    let (index, term) = schema::meta::consistent(read).expect("index");
    if index == 0 {
        assert!(all(read, Bucket::Key).is_empty());
        return 0;
    }
    assert_eq!(term, 1 + index / 100);
    let leases = schema::lease::all(read).expect("leases");
    assert_eq!(leases.iter().map(|l| l.id as u64).collect::<Vec<_>>(), [index], "lease of the last unit");
    let mut expected: Vec<Vec<u8>> = Vec::new();
    for n in 1..=index as i64 {
        let gone = [2 * n, 2 * n + 1].iter().any(|m| m % 7 == 0 && *m <= index as i64);
        expected.push(RevisionKey::new(n, 0).encode().to_vec());
        if !gone {
            expected.push(RevisionKey::new(n, 1).encode().to_vec());
        }
        expected.push(RevisionKey::tombstone(n, 2).encode().to_vec());
    }
    let pairs = all(read, Bucket::Key);
    assert_eq!(pairs.len(), expected.len(), "at index {index}");
    for ((key, value), expected) in pairs.iter().zip(&expected) {
        assert_eq!(key, expected, "at index {index}");
        let main = RevisionKey::decode(key).expect("revision").main;
        assert_eq!(proto::mvccpb::KeyValue::decode(&value[..]).map(|kv| kv.mod_revision), Ok(main));
    }
    index
}
