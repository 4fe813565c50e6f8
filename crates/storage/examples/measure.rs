//! Times of single operations: `cargo run --release -p storage --example measure [dir]`. What is given per operation is
//! processor time of the calling thread, so that a busy machine does not blur it.

use std::{
    hint::black_box,
    path::PathBuf,
    time::{Duration, Instant},
};

use bytes::Bytes;
use storage::{Backend, Bucket, Options, Read, RevisionKey};

const KEYS: i64 = 500_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = dir.join("storage-measure.db");
    let _ = std::fs::remove_file(&path);
    let backend = Backend::open(&path, Options::default())?;
    let value = Bytes::from(vec![7; 200]);

    // One unit per put, as an applied entry, while commits run beside it.
    let (mut slowest, begin) = (Duration::ZERO, Cpu::now());
    for main in 1..=KEYS {
        let unit = Instant::now();
        let mut batch = backend.write();
        batch.put_revision(RevisionKey::new(main, 0), value.clone());
        batch.set_consistent(main as u64, 1);
        drop(batch);
        slowest = slowest.max(unit.elapsed());
    }
    show("put, one a unit, with commits beside", begin.elapsed(), KEYS);
    println!("{:40} {slowest:>10.1?}", "slowest of them");
    backend.commit()?;

    let begin = Cpu::now();
    let few = 30_000;
    for main in 1..=few {
        let mut batch = backend.write();
        batch.put_revision(RevisionKey::new(KEYS + main, 0), value.clone());
        batch.set_consistent((KEYS + main) as u64, 1);
    }
    show("put into the buffer", begin.elapsed(), few);

    let view = backend.view();
    for (name, first, count) in [
        ("get from the file, all over it", 1, KEYS),
        ("get from the file, a part in cache", 1, few / 3),
        ("get from the buffer", KEYS + 1, few),
    ] {
        let (mut at, begin) = (0, Cpu::now());
        let rounds = KEYS;
        for _ in 0..rounds {
            at = (at + 7919) % count;
            let key = RevisionKey::new(first + at, 0).encode();
            black_box(view.get_with(Bucket::Key, &key, |v| v[0])).ok_or("not found")?;
        }
        show(name, begin.elapsed(), rounds);
    }

    let begin = Cpu::now();
    for _ in 0..KEYS {
        black_box(backend.view());
    }
    show("take a view", begin.elapsed(), KEYS);

    let (mut n, begin) = (0, Cpu::now());
    view.scan(Bucket::Key, b"", b"", &mut |_, v| {
        n += i64::from(v[0] == 7);
        std::ops::ControlFlow::Continue(())
    });
    show("scan", begin.elapsed(), n);
    drop(view);

    let begin = Instant::now();
    backend.commit()?;
    println!("{:40} {:>10.1?}", "commit of what is left", begin.elapsed());
    let report = backend.defrag()?;
    println!("{:40} {:>10.1?}, commits held {:.1?}", "defrag", report.took, report.held_commits);
    println!("{:40} {:>10}", "bytes before", report.size_before);
    println!("{:40} {:>10}", "bytes after", report.size_after);
    backend.close()?;
    std::fs::remove_file(&path)?;
    Ok(())
}

/// Processor time of this thread, as Linux counts it.
struct Cpu(Option<Duration>);

impl Cpu {
    fn now() -> Cpu {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        Cpu(text.split(' ').next().and_then(|n| n.parse().ok()).map(Duration::from_nanos))
    }

    fn elapsed(&self) -> Duration {
        let now = Cpu::now().0.unwrap_or_default();
        now.saturating_sub(self.0.unwrap_or_default())
    }
}

fn show(name: &str, took: Duration, n: i64) {
    println!("{name:40} {:>7} ns", took.as_nanos() / n.max(1) as u128);
}
