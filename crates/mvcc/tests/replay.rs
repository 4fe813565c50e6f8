//! A store that entries are replayed into, with some of the keys: it never takes the others for gone.

use std::ops::ControlFlow;

use bytes::Bytes;
use mvcc::{Leases, Options, Store, each_leased};
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
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
    let whole = Store::open(backend.clone(), Options::default(), |_, _| ()).unwrap();
    for key in ["a", "b", "b", "a", "b"] {
        put(&whole, &backend, key, 0);
    }
    drop(whole);
    let some = Store::open_replay(backend.clone(), Options::default(), &|key| key == b"a", &|_| false).unwrap();
    assert_eq!(some.revision(), 6);
    put(&some, &backend, "a", 0);
    delete(&some, &backend, "a");
    assert_eq!(some.revision(), 8);
    let before = changes(&backend);
    let mut batch = backend.write();
    let mut job = some.compact(&mut batch, 7).unwrap();
    drop(batch);
    assert!(job.step(&some, 100).done, "it gives up at once");
    assert_eq!(changes(&backend), before);
    drop(some);
    let again = Store::open_replay(backend.clone(), Options::default(), &|_| false, &|_| false).unwrap();
    assert_eq!((again.revision(), again.compact_revision()), (8, 7));
    assert!(again.pending_compaction().is_none());
    // A whole one finds the compaction, and all that it may and may not remove.
    let whole = Store::open(backend.clone(), Options::default(), |_, _| ()).unwrap();
    let mut job = whole.pending_compaction().unwrap();
    while !job.step(&whole, 100).done {}
    assert_eq!((count(&whole, "a"), count(&whole, "b")), (0, 1));
    assert!(changes(&backend) < before);
}

/// The store knows them, and follows as they change.
#[test]
fn keys_hang_on_leases() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
    let whole = Store::open(backend.clone(), Options::default(), |_, _| ()).unwrap();
    for (key, lease) in [("a", 1), ("b", 2), ("c", 0), ("d", 1), ("d", 0), ("e", 1), ("f", 1)] {
        put(&whole, &backend, key, lease);
    }
    let mut leased = Vec::new();
    each_leased(&backend.view(), |key, lease| leased.push((key[0], lease))).unwrap();
    assert_eq!(leased, [(b'a', 1), (b'b', 2), (b'd', 1), (b'e', 1), (b'f', 1)]);
    let store = Store::open_replay(backend.clone(), Options::default(), &|_| true, &|id| id == 1).unwrap();
    let keys = |lease| {
        let mut keys = String::new();
        store.each_key_of(lease, &mut |key| {
            keys.push(char::from(key[0]));
            true
        });
        keys
    };
    assert_eq!((keys(1), keys(2)), ("aef".into(), String::new()), "2 will not be asked for");
    put(&store, &backend, "c", 1);
    put(&store, &backend, "e", 3);
    delete(&store, &backend, "f");
    assert_eq!((keys(1), keys(3)), ("ac".into(), "e".into()));
    let (mut batch, mut leases) = (backend.write(), AllThere);
    let mut txn = store.begin(&mut batch, &mut leases);
    txn.delete_leased(1, Vec::new()).unwrap();
    assert_eq!(txn.end(), 12);
    drop(batch);
    assert_eq!(keys(1), "");
    let whole = Store::open(backend.clone(), Options::default(), |_, _| ()).unwrap();
    assert_eq!(["a", "b", "c", "d", "e", "f"].map(|key| count(&whole, key)), [0, 1, 0, 1, 1, 0]);
}
