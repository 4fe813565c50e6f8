//! Readers, a writer and defragmentation at once.

use crate::common;

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use common::{check_units, eager, open, put_unit};
use storage::{Backend, Bucket, DefragError, Options, RevisionKey, schema};

#[test]
fn views_are_whole_while_a_writer_runs() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), eager()).unwrap();
    let stop = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = 0;
                while !stop.load(Ordering::Relaxed) {
                    let least = written.load(Ordering::SeqCst);
                    let view = backend.view();
                    // One scan sees whole units: the three changes of the last revision, and all revisions before.
                    let keys = common::all(&view, Bucket::Key);
                    let last = keys.last().map_or(0, |(k, _)| RevisionKey::decode(k).unwrap().main as u64);
                    assert!(last >= least.max(seen), "a view went back: {last} < {least} or {seen}");
                    if let Some((k, _)) = keys.last() {
                        assert!(RevisionKey::decode(k).unwrap().tombstone, "half a unit");
                    }
                    let leases = schema::lease::all(&view).unwrap();
                    assert!(leases.len() == 1 || last == 0, "half a unit");
                    seen = last;
                }
            });
        }
        for n in 1..=1500 {
            put_unit(&backend, n);
            written.store(n, Ordering::SeqCst);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(check_units(&backend.view()), 1500);
    backend.close().unwrap();
    drop(backend);
    assert_eq!(check_units(&open(dir.path()).view()), 1500);
}

#[test]
fn defrag_gives_space_back_and_keeps_everything() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let backend = Backend::open(&path, Options::default()).unwrap();
    fill_and_empty(&backend);
    put_unit(&backend, 1);
    let report = backend.defrag().unwrap();
    assert!(report.size_after < report.size_before / 2, "{report:?}");
    assert_eq!((backend.size(), backend.size_in_use()), (report.size_after, report.size_in_use_after));
    assert!(std::fs::metadata(&path).unwrap().len() < report.size_before, "the file itself is smaller");
    assert_eq!(check_units(&backend.view()), 1);
    put_unit(&backend, 2);
    backend.close().unwrap();
    drop(backend);
    assert_eq!(check_units(&open(dir.path()).view()), 2);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
}

/// Leaves a file that is mostly free pages.
fn fill_and_empty(backend: &Backend) {
    for round in 0..2 {
        for n in 0..2000_i64 {
            let key = (n | 1 << 40).to_be_bytes();
            let mut batch = backend.write();
            if round == 0 {
                batch.put(Bucket::AuthUsers, key.to_vec(), vec![7; 2000]);
            } else {
                batch.delete(Bucket::AuthUsers, &key);
            }
        }
        backend.commit().unwrap();
    }
}

#[test]
fn defrag_under_load_stops_neither_reads_nor_writes() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), eager()).unwrap();
    fill_and_empty(&backend);
    let stop = AtomicBool::new(false);
    let mut written = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let view = backend.view();
                assert!(schema::lease::all(&view).unwrap().len() <= 1);
                std::thread::yield_now();
            }
        });
        let defrags = scope.spawn(|| {
            for _ in 0..5 {
                backend.defrag().unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        while !defrags.is_finished() {
            written += 1;
            put_unit(&backend, written);
            if written % 10 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(check_units(&backend.view()), written);
    drop(backend);
    let after = open(dir.path());
    assert!(check_units(&after.view()) <= written);
}

#[test]
fn a_full_recording_holds_commits_until_the_copy_is_done() {
    let dir = harness::tempdir();
    let options = Options { defrag_bytes_max: 1, ops_max: 100, ..eager() };
    let backend = Backend::open(&dir.path().join("db"), options).unwrap();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let defrags = scope.spawn(|| (0..5).all(|_| backend.defrag().is_ok()));
        let mut n = 0;
        while !defrags.is_finished() {
            n += 1;
            put_unit(&backend, n);
        }
        assert!(begin.elapsed() < harness::wait_max(), "commits wait for a copy that never ends");
    });
    check_units(&backend.view());
}

#[test]
fn one_defrag_at_a_time_and_none_after_close() {
    let dir = harness::tempdir();
    let backend = open(dir.path());
    (1..=500).for_each(|n| put_unit(&backend, n));
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..4).map(|_| scope.spawn(|| backend.defrag())).collect();
        let results: Vec<_> = handles.into_iter().map(|h| h.join().unwrap()).collect();
        assert!(results.iter().any(Result::is_ok));
        assert!(results.iter().all(|r| matches!(r, Ok(_) | Err(DefragError::Running { .. }))), "{results:?}");
    });
    backend.close().unwrap();
    assert!(matches!(backend.defrag(), Err(DefragError::Backend(storage::Failure::Closed))));
}

#[test]
fn left_overs_of_a_defrag_are_removed_and_nothing_else() {
    let dir = harness::tempdir();
    for name in ["db.tmp.123", "db.tmp", "0000000000000001.snap", "db.other"] {
        std::fs::write(dir.path().join(name), b"x").unwrap();
    }
    let _backend = open(dir.path());
    let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["0000000000000001.snap", "db", "db.other"]);
}
