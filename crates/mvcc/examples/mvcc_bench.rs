//! How fast and how large the store is, without a server around it. `cargo run --release -p mvcc --example mvcc_bench [keys]`
//! Times are those of the processor, so that a busy machine matters less.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use mvcc::{Options, Store, WatchSpec};
use proto::etcdserverpb::{PutRequest, RangeRequest};
use storage::Backend;

fn main() {
    let keys: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).expect("a backend");
    let store = Store::open(backend.clone(), Options::default(), |_, _| {}).expect("opens");

    let before = resident_bytes();
    rate("put in order", keys, || {
        for i in 0..keys {
            put(&store, &backend, key(i), 100);
        }
    });
    let all = RangeRequest { key: key(0), range_end: "l".into(), count_only: true, ..Default::default() };
    let count = || {
        rate("count of all", 20, || {
            for _ in 0..20 {
                assert_eq!(store.range(&all).expect("reads").count, keys as i64);
            }
        });
    };
    count();
    rate("put over", keys / 4, || {
        for i in 0..keys / 4 {
            put(&store, &backend, key(i.wrapping_mul(7919) % keys), 100);
        }
    });
    println!("resident: {} bytes a key, with what the backend holds", (resident_bytes() - before) / keys);

    rate("get", 200_000, || {
        for i in 0..200_000u64 {
            let req = RangeRequest { key: key(i.wrapping_mul(104_729) % keys), ..Default::default() };
            assert_eq!(store.range(&req).expect("reads").count, 1);
        }
    });
    let page = RangeRequest { key: key(keys / 2), range_end: key(keys / 2 + 1000), ..Default::default() };
    rate("range of 1000", 1000, || {
        for _ in 0..1000 {
            assert_eq!(store.range(&page).expect("reads").kvs.len(), 1000.min(keys as usize / 2));
        }
    });
    count();
    fan_out(&store, &backend, 100);
    rate("hash", 1, || {
        store.hash_kv(0).expect("hashes");
    });
    compaction(&store, &backend);
    count();

    let index_before = resident_bytes();
    let begin = Instant::now();
    let again = Store::open(backend.clone(), Options::default(), |_, _| {}).expect("opens");
    println!("{:<24} {:>10.3?}", "open", begin.elapsed());
    println!("index: {} bytes a key", resident_bytes().saturating_sub(index_before) / keys);
    assert_eq!(again.stats().keys, keys);
}

fn key(i: u64) -> Bytes {
    Bytes::from(format!("key-{i:016}"))
}

fn put(store: &Store, backend: &Backend, key: Bytes, size: usize) {
    let req = PutRequest { key, value: Bytes::from(vec![b'v'; size]), ..Default::default() };
    let mut batch = backend.write();
    store.begin(&mut batch, &mut ()).put(&req).expect("puts");
}

fn fan_out(store: &Store, backend: &Backend, watchers: u64) {
    static WOKEN: AtomicU64 = AtomicU64::new(0);
    let stream = || {
        store.watch_stream(|| {
            WOKEN.fetch_add(1, Ordering::Relaxed);
        })
    };
    let streams: Vec<_> = (0..watchers).map(|_| stream()).collect();
    for stream in &streams {
        let spec = WatchSpec { key: "k".into(), range_end: "l".into(), ..Default::default() };
        stream.watch(spec).expect("watches");
    }
    let puts = 20_000;
    let mut pulling = Duration::ZERO;
    rate(&format!("put to {watchers} watchers"), puts, || {
        for i in 0..puts {
            put(store, backend, key(i), 100);
            if i % 100 == 99 {
                let begin = Instant::now();
                for stream in &streams {
                    let mut events = 0;
                    while let Some(item) = stream.next() {
                        events += item.events.len();
                    }
                    assert_eq!(events, 100);
                }
                pulling += begin.elapsed();
            }
        }
    });
    println!("{:<24} {:>10.0} ns a put", "  of it pulling", pulling.as_nanos() as f64 / puts as f64);
}

fn compaction(store: &Store, backend: &Backend) {
    let mut batch = backend.write();
    let mut job = store.compact(&mut batch, store.revision()).expect("compacts");
    drop(batch);
    let (begin, mut longest, mut steps) = (Instant::now(), Duration::ZERO, 0);
    loop {
        let step = Instant::now();
        let done = job.step(store, 1000).done;
        longest = longest.max(step.elapsed());
        steps += 1;
        if done {
            break;
        }
    }
    println!("{:<24} {:>10.3?} in {steps} steps, the longest {longest:.3?}", "compaction", begin.elapsed());
}

fn rate(what: &str, n: u64, f: impl FnOnce()) {
    let begin = Instant::now();
    f();
    let took = begin.elapsed();
    println!(
        "{what:<24} {:>10.0} /s {:>10.0} ns each",
        n as f64 / took.as_secs_f64(),
        took.as_nanos() as f64 / n as f64
    );
}

/// Time that this thread ran.
#[derive(Clone, Copy)]
struct Instant(Duration);

impl Instant {
    fn now() -> Self {
        let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let ran = stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        Instant(Duration::from_nanos(ran))
    }

    fn elapsed(self) -> Duration {
        Instant::now().0.saturating_sub(self.0)
    }
}

fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
