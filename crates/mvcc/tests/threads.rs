//! One writer, with readers, watchers, compactions and hashes beside it.
#![expect(clippy::disallowed_methods, reason = "pauses vary how the threads race each other")]

use crate::support;

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use mvcc::{Error, Options, Store, WatchSpec};
use prost::Message;
use proto::{
    etcdserverpb::{PutRequest, RangeRequest, RequestOp, TxnRequest, request_op::Request},
    mvccpb::Event,
};
use support::store::backend;

const WRITES: i64 = 1500;
const KEYS: i64 = 20;

/// Each write puts the same number under all keys in one transaction, so whatever is read must be all alike.
fn write(store: &Store, backend: &storage::Backend, n: i64) {
    let put = |k: i64| RequestOp {
        request: Some(Request::RequestPut(PutRequest {
            key: format!("k{k:02}").into(),
            value: n.to_string().into(),
            ..Default::default()
        })),
    };
    let txn = TxnRequest { success: (0..KEYS).map(put).collect(), ..Default::default() };
    let mut batch = backend.write();
    let mut leases = ();
    let mut write = store.begin(&mut batch, &mut leases);
    write.txn(&txn).expect("writes");
    assert_eq!(write.end(), n + 1);
    drop(batch);
}

fn all(revision: i64) -> RangeRequest {
    RangeRequest { key: "k".into(), range_end: "l".into(), revision, ..Default::default() }
}

#[test]
fn readers_see_whole_revisions() {
    let backend = backend();
    let options = Options { watch_queue_items_max: 4, watch_catch_up_changes_max: 100, ..Options::default() };
    let store = Store::open(backend.clone(), options, |_, _| {}).expect("opens");
    write(&store, &backend, 1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for pause in [0, 3] {
            let store = store.clone();
            scope.spawn(move || watch(&store, pause));
        }
        for back in [0, 5] {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    read(store, back);
                }
            });
        }
        scope.spawn(|| compact(&store, &backend, &done));
        scope.spawn(|| watch_again(&store, &done));
        for n in 2..=WRITES {
            write(&store, &backend, n);
            if n % 16 == 0 {
                thread::sleep(Duration::from_micros(300));
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    let stats = store.stats();
    assert_eq!(stats.revision, WRITES + 1);
    assert_eq!((stats.slow_watchers, stats.watchers, stats.pending_events), (0, 0, 0));
    let reopened = Store::open(backend.clone(), Options::default(), |_, _| {}).expect("opens");
    assert_eq!(reopened.hash_kv(0), store.hash_kv(0));
}

/// Files of another store, which is further on, come in under readers, watchers and a compactor: what is read is
/// always of one file, and no write is missed.
#[test]
fn readers_see_whole_files() {
    let dir = harness::tempdir();
    let open = |name: &str| storage::Backend::open(&dir.path().join(name), storage::Options::default()).expect("opens");
    let backend = open("db");
    let options = Options { watch_queue_items_max: 4, watch_catch_up_changes_max: 100, ..Options::default() };
    let store = Store::open(backend.clone(), options, |_, _| {}).expect("opens");
    write(&store, &backend, 1);
    let done = AtomicBool::new(false);
    let (jobs, compactor) = std::sync::mpsc::channel::<mvcc::CompactionJob>();
    thread::scope(|scope| {
        for pause in [0, 3] {
            let store = store.clone();
            scope.spawn(move || watch(&store, pause));
        }
        for back in [0, 5] {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    read(store, back);
                }
            });
        }
        scope.spawn(|| watch_again(&store, &done));
        let running = store.clone();
        scope.spawn(move || {
            for mut job in compactor {
                while !job.step(&running, 50).done {
                    thread::yield_now();
                }
            }
        });
        let mut n = 1;
        while n < WRITES {
            for _ in 0..20 {
                n += 1;
                write(&store, &backend, n);
            }
            let mut batch = backend.write();
            let job = store.compact(&mut batch, n - 5).expect("compacts");
            jobs.send(job).expect("the compactor runs");
            drop(batch);
            let ahead = send(&backend, dir.path());
            n = go_on(&ahead, (n + 130).min(WRITES));
            backend.take_over(&ahead).expect("takes it over");
            store.reload(|_, _| {}).expect("reads it");
            assert_eq!(store.revision(), n + 1);
            if let Some(job) = store.pending_compaction() {
                jobs.send(job).expect("the compactor runs");
            }
        }
        done.store(true, Ordering::SeqCst);
        drop(jobs);
    });
    let stats = store.stats();
    assert_eq!((stats.slow_watchers, stats.watchers, stats.pending_events), (0, 0, 0));
    let reopened = Store::open(backend.clone(), Options::default(), |_, _| {}).expect("opens");
    assert_eq!(reopened.hash_kv(0), store.hash_kv(0));
}

fn send(backend: &storage::Backend, dir: &std::path::Path) -> std::path::PathBuf {
    let path = dir.join("1.snap.db");
    let mut file = std::fs::File::create(&path).expect("a file");
    std::io::copy(&mut backend.snapshot().expect("a snapshot"), &mut file).expect("copies");
    path
}

/// Writes into the file up to number `until`, and begins a compaction there.
fn go_on(path: &std::path::Path, until: i64) -> i64 {
    let backend = storage::Backend::open(path, storage::Options::default()).expect("opens");
    let store = Store::open(backend.clone(), Options::default(), |_, _| {}).expect("opens");
    for n in store.revision()..=until {
        write(&store, &backend, n);
    }
    let mut batch = backend.write();
    let mut job = store.compact(&mut batch, until - 10).expect("compacts");
    drop(batch);
    // Half of it, or all.
    for _ in 0..until % 30 {
        job.step(&store, 50);
    }
    backend.close().expect("closes");
    until
}

fn read(store: &Store, back: i64) {
    let newest = store.revision();
    let revision = if back == 0 { 0 } else { (newest - back).max(2) };
    let response = match store.range(&all(revision)) {
        Ok(result) => result.into_response(),
        Err(Error::Compacted { .. }) if revision > 0 => return,
        Err(e) => panic!("{e}"),
    };
    let at = response.header.expect("a header").revision;
    assert!(at >= newest);
    assert_eq!(response.kvs.len() as i64, KEYS);
    let mods = response.kvs.iter().map(|kv| kv.mod_revision);
    let want = if revision > 0 { revision } else { at };
    assert!(mods.clone().all(|m| m == want), "at {want}: {:?}", mods.collect::<Vec<_>>());
    match store.hash_kv(at) {
        Ok(hash) => assert_eq!(hash.hash_revision, at),
        Err(e) => assert!(matches!(e, Error::Compacted { .. }), "{e}"),
    }
}

fn compact(store: &Store, backend: &storage::Backend, done: &AtomicBool) {
    while !done.load(Ordering::SeqCst) {
        let revision = store.revision() - 60;
        if revision > store.compact_revision() && revision > 0 {
            let mut batch = backend.write();
            let mut job = store.compact(&mut batch, revision).expect("compacts");
            drop(batch);
            while !job.step(store, 100).done {
                thread::yield_now();
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Begins in the near past over and over: going from history to what is new, nothing is lost or told twice.
fn watch_again(store: &Store, done: &AtomicBool) {
    while !done.load(Ordering::SeqCst) {
        let stream = store.watch_stream(|| {});
        let start_revision = (store.revision() - 3).max(2);
        stream.watch(WatchSpec { key: "k00".into(), start_revision, ..Default::default() }).expect("watches");
        let mut next = start_revision;
        while next < start_revision + 20 && !done.load(Ordering::SeqCst) {
            let Some(item) = stream.next() else {
                thread::sleep(Duration::from_micros(20));
                continue;
            };
            if item.compact_revision != 0 {
                break;
            }
            for event in item.events.iter() {
                let event = Event::decode(&event[..]).expect("an event");
                assert_eq!(event.kv.map(|kv| kv.mod_revision), Some(next));
                next += 1;
            }
        }
    }
}

/// A response that announces a watcher carries the revision at which it was added: with a newer one, a client would take
/// events that come as history or as news for known. Here another thread publishes before `watch` has returned.
#[test]
fn a_watcher_is_created_at_the_revision_at_which_it_was_added() {
    let backend = backend();
    let store = Store::open(backend.clone(), Options::default(), |_, _| {}).expect("opens");
    write(&store, &backend, 1);
    let publisher = store.clone();
    let publish = move || {
        let (store, backend) = (publisher.clone(), backend.clone());
        // Called by `watch`, since this watcher has history to read.
        let published = thread::spawn(move || write(&store, &backend, store.revision()));
        published.join().expect("publishes while the watcher is being created");
    };
    let stream = store.watch_stream(publish);
    let spec = WatchSpec { key: "k00".into(), start_revision: 2, ..Default::default() };
    let created = stream.watch(spec).expect("watches");
    assert_eq!((created.revision, store.revision()), (2, 3));
}

/// Sees every write, in order, until it is told that it is too slow; then begins again.
fn watch(store: &Store, pause_ms: u64) {
    let woken = Arc::new((Mutex::new(false), Condvar::new()));
    let waker = woken.clone();
    let stream = store.watch_stream(move || {
        *waker.0.lock().expect("not poisoned") = true;
        waker.1.notify_one();
    });
    let spec = |start_revision| WatchSpec {
        key: "k".into(),
        range_end: "l".into(),
        start_revision,
        prev_kv: true,
        ..Default::default()
    };
    stream.watch(spec(2)).expect("watches");
    let mut last = 1;
    while last < WRITES + 1 {
        let Some(item) = stream.next() else {
            let guard = woken.0.lock().expect("not poisoned");
            let timeout = Duration::from_secs(20);
            let (mut guard, slow) = woken.1.wait_timeout_while(guard, timeout, |woken| !*woken).expect("not poisoned");
            assert!(!slow.timed_out(), "not woken, at {last}");
            *guard = false;
            continue;
        };
        if item.compact_revision != 0 {
            stream.watch(spec(item.compact_revision)).expect("watches");
            last = item.compact_revision - 1;
            continue;
        }
        assert_eq!(item.events.len() as i64 % KEYS, 0, "whole revisions");
        for event in item.events.iter() {
            let event = Event::decode(&event[..]).expect("an event");
            let kv = event.kv.expect("a key");
            if kv.key == "k00" {
                last += 1;
            }
            assert_eq!(kv.mod_revision, last);
            assert!(event.prev_kv.is_none_or(|prev| prev.mod_revision == last - 1));
        }
        thread::sleep(Duration::from_millis(pause_ms));
    }
}
