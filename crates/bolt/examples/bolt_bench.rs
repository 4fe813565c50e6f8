//! How fast the engine is here: `cargo run --release -p bolt --example bolt_bench [dir]`. Writes about 400 MB to `dir`.
//!
//! Keys are revisions as etcd writes them (17 bytes, rising), values 256 random bytes, every commit is synced.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bolt::{Db, Options};

const BUCKET: &[u8] = b"key";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let path = Path::new(&dir).join("bolt-bench.db");
    for (puts, commits) in [(10_000, 30), (100, 1000)] {
        let _ = std::fs::remove_file(&path);
        let db = Db::open(&path, Options::default())?;
        bench_puts(&db, puts, commits)?;
        bench_gets(&db, puts * commits)?;
    }
    bench_million(&path)?;
    std::fs::remove_file(&path)?;
    Ok(())
}

fn key(revision: u64) -> [u8; 17] {
    let mut key = [b'_'; 17];
    key[..8].copy_from_slice(&revision.to_be_bytes());
    key[9..].copy_from_slice(&0u64.to_be_bytes());
    key
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn bench_puts(db: &Db, puts: u64, commits: u64) -> Result<(), bolt::Error> {
    let (mut state, mut value, mut times) = (7, [0u8; 256], Vec::new());
    let start = Clock::start();
    for commit in 0..commits {
        let began = Instant::now();
        let mut tx = db.begin_write()?;
        let mut bucket = tx.create_bucket_if_missing(BUCKET)?;
        bucket.set_fill(0.9);
        for i in 0..puts {
            value[..8].copy_from_slice(&random(&mut state).to_le_bytes());
            bucket.put(&key(commit * puts + i), &value)?;
        }
        tx.commit()?;
        times.push(began.elapsed());
    }
    report(&format!("{puts} puts a commit"), puts * commits, start, &mut times);
    Ok(())
}

fn bench_gets(db: &Db, keys: u64) -> Result<(), bolt::Error> {
    let (mut state, view) = (11, db.begin_read());
    let Some(bucket) = view.bucket(BUCKET)? else { return Ok(()) };
    for round in ["cold", "hot"] {
        let (gets, start) = (1_000_000, Clock::start());
        let mut found = 0;
        for _ in 0..gets {
            found += bucket.get(&key(random(&mut state) % keys))?.map_or(0, |value| value.len());
        }
        assert_eq!(found, gets * 256);
        report(&format!("point gets of {keys} keys, {round}"), gets as u64, start, &mut Vec::new());
    }
    let (start, n) = (Clock::start(), bucket.iter().count() as u64);
    report("walk over all pairs", n, start, &mut Vec::new());
    Ok(())
}

fn bench_million(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let _ = std::fs::remove_file(path);
    let db = Db::open(path, Options::default())?;
    bench_puts(&db, 10_000, 100)?;
    drop(db);
    let start = Clock::start();
    let db = Db::open(path, Options::default())?;
    report(&format!("open 1M keys, {} MB", db.size() >> 20), 1, start, &mut Vec::new());
    let (mut state, mut times) = (13, Vec::new());
    let start = Clock::start();
    for _ in 0..100 {
        let began = Instant::now();
        let mut tx = db.begin_write()?;
        for _ in 0..100 {
            tx.delete(BUCKET, &key(random(&mut state) % 1_000_000))?;
        }
        tx.commit()?;
        times.push(began.elapsed());
    }
    report("100 random deletes a commit", 10_000, start, &mut times);
    Ok(())
}

/// Wall clock and processor time of this thread; the second says more on a busy machine.
struct Clock(Instant, u64);

impl Clock {
    fn start() -> Clock {
        Clock(Instant::now(), Clock::cpu_ns())
    }

    fn cpu_ns() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
    }
}

fn report(what: &str, n: u64, clock: Clock, times: &mut [Duration]) {
    let (took, cpu) = (clock.0.elapsed(), Clock::cpu_ns() - clock.1);
    let each = |ns: u128| ns as f64 / n as f64;
    print!("{what:34} {:>11.0}/s {:>9.0} ns each", n as f64 / took.as_secs_f64(), each(took.as_nanos()));
    print!(" {:>9.0} ns cpu", each(cpu.into()));
    times.sort();
    if let Some(last) = times.len().checked_sub(1) {
        print!("  p50 {:.2?} p99 {:.2?}", times[last / 2], times[last * 99 / 100]);
    }
    println!();
}
