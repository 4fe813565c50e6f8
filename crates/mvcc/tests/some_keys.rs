//! A store with some of the keys in its index: for those it is as a whole one, and it never takes the others for gone.

use std::ops::ControlFlow;

use bytes::Bytes;
use mvcc::{Leases, Options, Store, keys_of_leases};
use proto::etcdserverpb::{DeleteRangeRequest, PutRequest, RangeRequest};
use storage::{Backend, Bucket, Read};

/// Every lease that a put names.
struct AllThere;

impl Leases for AllThere {
    fn exists(&self, _id: i64) -> bool {
        true
    }
    fn attach(&mut self, _id: i64, _key: &Bytes) {}
    fn detach(&mut self, _id: i64, _key: &[u8]) {}
}

fn put(store: &Store, backend: &Backend, key: &'static str, lease: i64) {
    let mut batch = backend.write();
    let mut leases = AllThere;
    let mut txn = store.begin(&mut batch, &mut leases);
    txn.put(&PutRequest { key: key.into(), lease, ..Default::default() }).unwrap();
    txn.end();
}

fn delete(store: &Store, backend: &Backend, key: &'static str) {
    let mut batch = backend.write();
    let mut leases = AllThere;
    let mut txn = store.begin(&mut batch, &mut leases);
    txn.delete_range(&DeleteRangeRequest { key: key.into(), ..Default::default() }).unwrap();
    txn.end();
}

fn count(store: &Store, key: &'static str) -> usize {
    store.range(&RangeRequest { key: key.into(), ..Default::default() }).unwrap().into_response().kvs.len()
}

fn changes(backend: &Backend) -> usize {
    let mut count = 0;
    backend.view().scan(Bucket::Key, b"", b"", &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    });
    count
}

#[test]
fn what_is_left_out_stays_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
    let whole = Store::open(backend.clone(), Options::default(), |_, _| ()).unwrap();
    for key in ["a", "b", "b", "a", "b"] {
        put(&whole, &backend, key, 0);
    }
    drop(whole);
    let some = Store::open_some(backend.clone(), Options::default(), &|key| key == b"a", |_, _| ()).unwrap();
    assert_eq!((some.revision(), some.stats().keys), (6, 1));
    assert_eq!((count(&some, "a"), count(&some, "b")), (1, 0));
    put(&some, &backend, "a", 0);
    delete(&some, &backend, "a");
    let before = changes(&backend);
    let mut batch = backend.write();
    let mut job = some.compact(&mut batch, 7).unwrap();
    drop(batch);
    assert!(job.step(&some, 100).done, "it gives up at once");
    assert_eq!(changes(&backend), before);
    drop(some);
    let again = Store::open_some(backend.clone(), Options::default(), &|_| false, |_, _| ()).unwrap();
    assert!(again.pending_compaction().is_none());
    // A whole one finds the compaction, and all that it may and may not remove.
    let whole = Store::open(backend.clone(), Options::default(), |_, _| ()).unwrap();
    let mut job = whole.pending_compaction().unwrap();
    while !job.step(&whole, 100).done {}
    assert_eq!((count(&whole, "a"), count(&whole, "b")), (0, 1));
    assert!(changes(&backend) < before);
}

#[test]
fn keys_are_found_by_their_leases() {
    let dir = tempfile::tempdir().unwrap();
    let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
    let store = Store::open(backend.clone(), Options::default(), |_, _| ()).unwrap();
    for (key, lease) in [("a", 1), ("b", 2), ("c", 0), ("d", 1), ("d", 0)] {
        put(&store, &backend, key, lease);
    }
    let keys = keys_of_leases(&backend.view(), |lease| lease == 1).unwrap();
    assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["a", "d"]);
}
