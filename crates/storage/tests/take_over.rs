//! A file from another member in place of ours, under everyone who uses it.

use crate::common;

use std::{
    io::Read as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use common::{all, check_units, eager, manual, open, put_unit, received};
use storage::{Backend, Bucket, DefragError, Options, Read, RevisionKey, TakeOverError, schema};

#[test]
fn all_clones_go_on_with_the_received_file() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), manual()).unwrap();
    (1..=20).for_each(|n| put_unit(&backend, n));
    let received = received(&backend, dir.path(), 500);
    // One committed and one pending: both are superseded.
    put_unit(&backend, 21);
    backend.commit().unwrap();
    put_unit(&backend, 22);
    let (clone, old, size) = (backend.clone(), backend.view(), backend.size());
    assert!(backend.pending_bytes() > 0);

    backend.take_over(&received).unwrap();
    assert!(!received.exists());
    assert_eq!(check_units(&old), 22, "what was seen before stays readable");
    assert_eq!((old.generation(), clone.view().generation(), clone.write().generation()), (0, 1, 1));
    for backend in [&backend, &clone] {
        assert_eq!(check_units(&backend.view()), 500);
        assert_eq!(schema::meta::consistent(&backend.view()), Ok((500, 6)));
    }
    assert!(backend.size() > size && backend.size_in_use() <= backend.size());
    assert_eq!(backend.pending_bytes(), 0);

    put_unit(&clone, 501);
    assert_eq!(check_units(&backend.view()), 501);
    backend.close().unwrap();
    drop((backend, clone));
    assert_eq!(check_units(&old), 22);
    assert_eq!(check_units(&open(dir.path()).view()), 501);
}

#[test]
fn the_replaced_file_is_readable_until_forgotten() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), manual()).unwrap();
    (1..=5).for_each(|n| put_unit(&backend, n));
    for (generation, until) in [(1, 10), (2, 20)] {
        backend.take_over(&received(&backend, dir.path(), until)).unwrap();
        assert_eq!(check_units(&backend.view_of(generation).unwrap()), until);
        assert_eq!(check_units(&backend.view_of(0).unwrap()), 5);
        assert!(generation == 1 || backend.view_of(1).is_none());
        put_unit(&backend, until + 1);
        backend.commit().unwrap();
        assert_eq!(check_units(&backend.view_of(generation).unwrap()), until + 1);
        assert_eq!(check_units(&backend.view_of(0).unwrap()), 5);
    }
    backend.forget_replaced();
    assert!(backend.view_of(0).is_none() && backend.view_of(2).is_some());
    backend.take_over(&received(&backend, dir.path(), 30)).unwrap();
    assert_eq!(check_units(&backend.view_of(2).unwrap()), 21);
}

#[test]
fn the_file_that_was_taken_over_is_locked() {
    let dir = harness::tempdir();
    let backend = open(dir.path());
    put_unit(&backend, 1);
    backend.take_over(&received(&backend, dir.path(), 2)).unwrap();
    let options = Options { lock_timeout: Some(Duration::ZERO), ..Options::default() };
    assert!(Backend::open(&dir.path().join("db"), options).is_err());
}

#[test]
fn what_is_no_sound_database_is_refused_before_anything_changes() {
    let dir = harness::tempdir();
    let backend = open(dir.path());
    (1..=200).for_each(|n| put_unit(&backend, n));
    let good = std::fs::read(received(&backend, dir.path(), 300)).unwrap();
    let bad = dir.path().join("bad");
    let refused = |contents: &[u8]| {
        std::fs::write(&bad, contents).unwrap();
        let error = backend.take_over(&bad).expect_err("refused");
        assert_eq!(std::fs::read(&bad).unwrap(), contents, "left as it was");
        assert!(backend.failed().is_none());
        assert_eq!((check_units(&backend.view()), backend.view().generation()), (200, 0));
        error
    };
    assert!(matches!(refused(b""), TakeOverError::Open(_)));
    assert!(matches!(refused(b"not a database"), TakeOverError::Open(_)));
    assert!(matches!(refused(&good[..good.len() / 2]), TakeOverError::Open(_)));
    assert!(matches!(backend.take_over(&dir.path().join("absent")), Err(TakeOverError::Sync { .. })));
    let is_damage = |e| matches!(e, TakeOverError::Open(_) | TakeOverError::Damaged { .. });
    let mut found = 0;
    for page in 2..good.len() / 4096 {
        let mut torn = good.clone();
        torn[page * 4096..][..2048].fill(0xee);
        std::fs::write(&bad, &torn).unwrap();
        if storage::Backend::open_read_only(&bad, None).is_ok_and(|f| f.check().is_empty()) {
            continue; // A page that nothing uses.
        }
        found += 1;
        assert!(is_damage(refused(&torn)), "page {page}");
    }
    assert!(found > 10);
    // The damage was none of ours: it still works.
    std::fs::write(&bad, &good).unwrap();
    backend.take_over(&bad).unwrap();
    assert_eq!(check_units(&backend.view()), 300);
}

#[test]
fn a_bolt_file_of_another_program_is_refused() {
    let dir = harness::tempdir();
    let backend = open(dir.path());
    let other = dir.path().join("other");
    for (buckets, missing) in [(&[][..], "key"), (&["key"], "meta"), (&["meta", "images"], "key")] {
        write_buckets(&other, buckets);
        match backend.take_over(&other) {
            Err(TakeOverError::NotEtcd { bucket, .. }) => assert_eq!(bucket, missing),
            other => panic!("{other:?}"),
        }
    }
}

/// Older releases made fewer buckets: the others come with the first commit.
#[test]
fn missing_buckets_are_made() {
    let dir = harness::tempdir();
    let backend = open(dir.path());
    let other = dir.path().join("other");
    write_buckets(&other, &["key", "meta", "lease"]);
    backend.take_over(&other).unwrap();
    assert_eq!(schema::meta::consistent(&backend.view()), Ok((0, 0)));
    for bucket in Bucket::ALL {
        assert!(all(&backend.view(), bucket).is_empty());
        backend.write().put(bucket, &b"k"[..], &b"v"[..]);
    }
    backend.commit().unwrap();
    for bucket in Bucket::ALL {
        assert_eq!(backend.view().get(bucket, b"k").as_deref(), Some(&b"v"[..]));
    }
}

fn write_buckets(path: &Path, buckets: &[&str]) {
    let _ = std::fs::remove_file(path);
    let db = bolt::Db::open(path, bolt::Options::default()).unwrap();
    let mut tx = db.begin_write().unwrap();
    for bucket in buckets {
        tx.create_bucket_if_missing(bucket.as_bytes()).unwrap();
    }
    tx.commit().unwrap();
}

/// A defragmentation that was under way must not bring the old file back.
#[test]
fn a_running_defragmentation_is_given_up() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), eager()).unwrap();
    (1..=300).for_each(|n| put_unit(&backend, n));
    let (stop, mut given_up) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        let defrags = scope.spawn(|| {
            let mut given_up = 0;
            while !stop.load(Ordering::Relaxed) {
                match backend.defrag() {
                    Ok(_) => {}
                    Err(DefragError::Replaced { .. }) => given_up += 1,
                    Err(e) => panic!("{e}"),
                }
            }
            given_up
        });
        for n in 1..=60 {
            let until = 300 + n * 10;
            backend.take_over(&received(&backend, dir.path(), until)).unwrap();
            assert_eq!(check_units(&backend.view()), until);
        }
        stop.store(true, Ordering::Relaxed);
        given_up += defrags.join().unwrap();
    });
    assert!(given_up > 0, "none was under way");
    assert_eq!(check_units(&backend.view()), 900);
    backend.defrag().unwrap();
    backend.close().unwrap();
    drop(backend);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no copies are left");
    assert_eq!(check_units(&open(dir.path()).view()), 900);
}

/// Readers see one file or the other.
#[test]
fn readers_and_writers_beside_it_see_whole_files() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), eager()).unwrap();
    (1..=50).for_each(|n| put_unit(&backend, n));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while !stop.load(Ordering::Relaxed) {
                // One scan, since a view also shows what is written after it was taken.
                let keys = all(&backend.view(), Bucket::Key);
                let mut mains: Vec<_> = keys.iter().filter_map(|(k, _)| Some(RevisionKey::decode(k)?.main)).collect();
                mains.dedup();
                assert!(mains.iter().copied().eq(1..=mains.len() as i64), "{mains:?}");
                assert!(mains.len() >= last, "{} after {last}", mains.len());
                last = mains.len();
            }
        });
        for n in 1..=30 {
            backend.take_over(&received(&backend, dir.path(), 50 + n * 20)).unwrap();
            // What the received file has too: it is as if the entries came both ways.
            (51 + n * 20..60 + n * 20).for_each(|n| put_unit(&backend, n));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn none_after_close() {
    let dir = harness::tempdir();
    let backend = open(dir.path());
    put_unit(&backend, 1);
    let received = received(&backend, dir.path(), 2);
    backend.close().unwrap();
    assert!(matches!(backend.take_over(&received), Err(TakeOverError::Backend(storage::Failure::Closed))));
    assert!(received.exists());
}

#[test]
fn a_snapshot_tells_which_entry_it_is_of() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), eager()).unwrap();
    for n in (7..=280).step_by(7) {
        (n - 6..=n).for_each(|n| put_unit(&backend, n));
        let (mut snapshot, index, term) = backend.snapshot_now().unwrap();
        assert_eq!((index, term), (n, 1 + n / 100));
        // Read by another thread while commits go on.
        let stream = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            snapshot.read_to_end(&mut bytes).map(|_| (snapshot.size(), bytes))
        });
        if n % 70 == 0 {
            let (size, bytes) = stream.join().unwrap().unwrap();
            assert_eq!(bytes.len() as u64, size);
            let copy = dir.path().join("copy");
            std::fs::write(&copy, bytes).unwrap();
            assert_eq!(check_units(&Backend::open_read_only(&copy, None).unwrap().view()), n);
        }
    }
}
