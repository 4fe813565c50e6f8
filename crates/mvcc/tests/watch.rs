//! Random watchers on slow streams, against the list of all events.

use crate::support;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use mvcc::{Options, WatchSpec, WatchStream};
use prost::Message;
use proto::{etcdserverpb::PutRequest, mvccpb};
use support::{random::Op, store::TestStore, watching::Run};

#[test]
fn every_event_once_and_in_order() {
    let seeds = match std::env::var("SEED").ok().and_then(|s| s.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60),
    };
    let mut lagged = 0;
    for seed in seeds {
        let mut run = Run::new(seed);
        for _ in 0..400 {
            run.step();
        }
        lagged += usize::from(run.lagged);
        run.finish();
    }
    assert!(lagged > 0 || std::env::var_os("SEED").is_some(), "no stream was ever full");
}

/// Revisions that wait share a response, up to the bound, and do not pass a progress.
#[test]
fn revisions_that_wait_are_merged() {
    let two_events = {
        let mut store = TestStore::with_options(Options::default());
        let stream = watch_k(&mut store, false);
        put_k(&mut store, 2);
        stream.next().map_or(0, |item| item.events.iter().map(Bytes::len).sum())
    };
    let options = Options { watch_merge_bytes_max: two_events, ..Options::default() };
    let mut store = TestStore::with_options(options);
    let stream = watch_k(&mut store, false);
    put_k(&mut store, 5);
    assert_eq!(sizes(&stream), [(2, 3), (2, 5), (1, 6)]);
    put_k(&mut store, 1);
    assert!(stream.progress_all());
    put_k(&mut store, 2);
    assert_eq!(sizes(&stream), [(1, 7), (0, 7), (2, 9)]);
    // Previous values may be large, and are not read yet.
    let stream = watch_k(&mut store, true);
    put_k(&mut store, 2);
    assert_eq!(sizes(&stream), [(1, 10), (1, 11)]);
}

/// Watchers of a stream that want the same share what is queued, and each gets what it would get alone.
#[test]
fn watchers_that_want_the_same() {
    let mut store = TestStore::with_options(Options::default());
    let stream = store.store.watch_stream(|| {});
    let watch = |start_revision| {
        stream.watch(WatchSpec { key: "k".into(), start_revision, ..Default::default() }).expect("watches").id
    };
    let (first, second) = (watch(0), watch(0));
    put_k(&mut store, 1);
    // Who comes later is not told what is queued, but what it asks for, and who waits is told from its start on.
    let (late, past, waiting) = (watch(0), watch(2), watch(4));
    put_k(&mut store, 2);
    let mut told = Vec::new();
    while let Some(item) = stream.next() {
        told.push((item.watch_id, item.revision, item.events.len()));
        // Ended in the middle of a round.
        if told.len() == 1 {
            stream.cancel(second).expect("is there");
        }
    }
    let of = |id| told.iter().filter(|(of, _, _)| *of == id).map(|(_, _, events)| events).sum::<usize>();
    assert_eq!([first, second, late, past, waiting].map(of), [3, 0, 2, 3, 1], "{told:?}");
    assert_eq!(store.store.stats().pending_events, 0);
    put_k(&mut store, 1);
    let ids: Vec<_> = std::iter::from_fn(|| stream.next()).map(|item| item.watch_id).collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
    drop(stream);
    assert_eq!((store.store.stats().watchers, store.store.stats().slow_watchers), (0, 0));
}

/// More than are told together, all of which fall behind when the queue is full, and catch up.
#[test]
fn many_watchers_that_want_the_same() {
    let options = Options { watch_queue_items_max: 3, watch_merge_bytes_max: 0, ..Options::default() };
    let mut store = TestStore::with_options(options);
    let stream = store.store.watch_stream(|| {});
    for _ in 0..300 {
        stream.watch(WatchSpec { key: "k".into(), ..Default::default() }).expect("watches");
    }
    put_k(&mut store, 1);
    assert_eq!(store.store.stats().slow_watchers, 0, "the queue has room for them all");
    put_k(&mut store, 1);
    assert_eq!(store.store.stats().slow_watchers, 300, "and for no more");
    let mut seen = vec![Vec::new(); 300];
    while let Some(item) = stream.next() {
        let revisions = item.events.iter().map(|event| mvccpb::Event::decode(&event[..]).expect("an event"));
        seen[item.watch_id as usize].extend(revisions.map(|event| event.kv.expect("a key").mod_revision));
    }
    assert_eq!(seen, vec![vec![2, 3]; 300]);
    assert_eq!(store.store.stats().slow_watchers, 0);
    put_k(&mut store, 1);
    assert_eq!(sizes(&stream), [(1, 4); 300]);
}

/// A stream that was hushed is left alone until much has gathered.
#[test]
fn a_hushed_stream_is_notified_when_half_full() {
    let options = Options { watch_queue_items_max: 6, watch_merge_bytes_max: 0, ..Options::default() };
    let mut store = TestStore::with_options(options);
    let notified = Arc::new(AtomicBool::new(false));
    let flag = notified.clone();
    let stream = store.store.watch_stream(move || flag.store(true, Ordering::SeqCst));
    stream.watch(WatchSpec { key: "k".into(), ..Default::default() }).expect("watches");
    for _ in 0..2 {
        assert!(stream.next().is_none());
        stream.hush();
        put_k(&mut store, 2);
        assert!(!stream.is_half_full() && !notified.load(Ordering::SeqCst));
        put_k(&mut store, 1);
        assert!(stream.is_half_full() && notified.swap(false, Ordering::SeqCst));
        // Once is enough.
        put_k(&mut store, 1);
        assert!(!notified.load(Ordering::SeqCst));
        assert_eq!(sizes(&stream).len(), 4);
        // Nothing is left: it is notified of the next one.
        put_k(&mut store, 1);
        assert!(notified.swap(false, Ordering::SeqCst));
        assert_eq!(sizes(&stream).len(), 1);
    }
}

fn watch_k(store: &mut TestStore, prev_kv: bool) -> WatchStream {
    let stream = store.store.watch_stream(|| {});
    stream.watch(WatchSpec { key: "k".into(), prev_kv, ..Default::default() }).expect("watches");
    stream
}

fn put_k(store: &mut TestStore, times: usize) {
    for _ in 0..times {
        let put = PutRequest { key: "k".into(), value: "v".into(), ..Default::default() };
        store.run(&Op::Put(put)).expect("puts");
    }
}

/// Number of events, and the revision of the header, of all that is left.
fn sizes(stream: &WatchStream) -> Vec<(usize, i64)> {
    std::iter::from_fn(|| stream.next()).map(|item| (item.events.len(), item.revision)).collect()
}
