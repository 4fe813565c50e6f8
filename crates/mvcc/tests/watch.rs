//! Random watchers on slow streams, against the list of all events.

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use mvcc::{Options, WatchSpec, WatchStream};
use proto::etcdserverpb::PutRequest;
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
