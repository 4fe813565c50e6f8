//! Units, views, commits, closing and opening.

use crate::common;

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use common::{all, check_units, manual, open, put_unit, range};
use storage::{Backend, Bucket, Failure, OpenError, Options, Read, RevisionKey, schema};

#[test]
fn a_new_file_has_every_bucket_and_nothing_in_them() {
    let dir = harness::tempdir();
    let backend = open(dir.path());
    for bucket in Bucket::ALL {
        assert!(all(&backend.view(), bucket).is_empty());
    }
    assert_eq!(schema::version::detect(&backend.view()), Ok(schema::version::Found::New));
    backend.close().unwrap();
    drop(backend);
    let tool = Backend::open_read_only(&dir.path().join("db"), Some(Duration::ZERO)).unwrap();
    assert!(tool.size() > 0 && tool.size_in_use() <= tool.size());
    // The hash of etcd over ten empty buckets is the checksum of their names.
    let names: String = Bucket::ALL.iter().map(|b| b.name()).collect();
    assert_eq!(tool.hash().unwrap(), crc32c::crc32c(names.as_bytes()));
}

/// Members that are founded while one of them is away have 3.0 until it comes, and must be able to restart meanwhile.
#[test]
fn the_version_for_want_of_answers_decides_nothing() {
    use schema::version::{Found, V3_5, Version, detect};
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), manual()).unwrap();
    let found_at = |version| {
        let mut batch = backend.write();
        schema::cluster::put_version(&mut batch, version);
        batch.set_consistent(4, 1);
        batch.commit().unwrap();
        detect(&backend.view())
    };
    assert_eq!(found_at(Version::new(3, 0)), Ok(Found::Undecided));
    assert_eq!(found_at(Version::new(3, 4)), Ok(Found::At(V3_5)));
    assert_eq!(found_at(Version::new(3, 7)), Ok(Found::At(Version::new(3, 7))));
}

#[test]
fn layers_hide_what_is_below_them() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), manual()).unwrap();
    let mut batch = backend.write();
    for (k, v) in [("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")] {
        batch.put(Bucket::AuthUsers, k, v);
    }
    batch.commit().unwrap();
    let old = backend.view();
    let mut batch = backend.write();
    batch.delete(Bucket::AuthUsers, b"b");
    batch.put(Bucket::AuthUsers, "c", "2");
    batch.put(Bucket::AuthUsers, "e", "2");
    batch.delete(Bucket::AuthUsers, b"never");
    let expected = [("a", "1"), ("c", "2"), ("d", "1"), ("e", "2")].map(|(k, v)| (k.into(), v.into()));
    assert_eq!(all(&batch, Bucket::AuthUsers), expected, "the batch sees its own changes");
    assert_eq!(batch.get(Bucket::AuthUsers, b"b"), None);
    drop(batch);
    assert_eq!(all(&backend.view(), Bucket::AuthUsers), expected, "before the commit");
    assert_eq!(range(&backend.view(), Bucket::AuthUsers, b"b", b"e"), expected[1..3]);
    backend.commit().unwrap();
    assert_eq!(all(&backend.view(), Bucket::AuthUsers), expected, "after the commit");
    assert_eq!(old.get(Bucket::AuthUsers, b"c").as_deref(), Some(&b"2"[..]), "units since are seen by an older view");
    let mut visited = 0;
    backend.view().scan(Bucket::AuthUsers, b"", b"", &mut |_, _| {
        visited += 1;
        if visited == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(visited, 2);
    backend.close().unwrap();
    drop((backend, old));
    let backend = open(dir.path());
    assert_eq!(all(&backend.view(), Bucket::AuthUsers), expected, "after opening again");
}

#[test]
fn a_view_stays_whole_over_commits() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), manual()).unwrap();
    (1..=30).for_each(|n| put_unit(&backend, n));
    backend.commit().unwrap();
    let view = backend.view();
    (31..=60).for_each(|n| put_unit(&backend, n));
    backend.commit().unwrap();
    (61..=90).for_each(|n| put_unit(&backend, n));
    assert_eq!(check_units(&view), 60, "its layer was frozen at 60");
    backend.commit().unwrap();
    assert_eq!(check_units(&view), 60);
    assert_eq!(check_units(&backend.view()), 90);
}

#[test]
fn dropping_without_close_is_a_crash() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), manual()).unwrap();
    (1..=10).for_each(|n| put_unit(&backend, n));
    backend.commit().unwrap();
    (11..=20).for_each(|n| put_unit(&backend, n));
    drop(backend);
    let backend = Backend::open(&dir.path().join("db"), manual()).unwrap();
    assert_eq!(check_units(&backend.view()), 10);
    put_unit(&backend, 11);
    backend.close().unwrap();
    assert!(matches!(backend.try_write().err(), Some(Failure::Closed)));
    assert!(matches!(backend.commit(), Err(Failure::Closed)));
    assert_eq!(check_units(&backend.view()), 11, "views outlive the close");
    drop(backend);
    assert_eq!(check_units(&open(dir.path()).view()), 11);
}

#[test]
fn commits_by_time_and_by_number() {
    let dir = harness::tempdir();
    for (name, interval, limit) in [("time", 20, 1_000_000), ("number", 3_600_000, 40)] {
        let path = dir.path().join(name);
        let options =
            Options { batch_interval: Duration::from_millis(interval), batch_limit: limit, ..Options::default() };
        let backend = Backend::open(&path, options).unwrap();
        let size = backend.size_in_use();
        (1..=20).for_each(|n| put_unit(&backend, n));
        harness::until(&format!("a batch is committed by its {name}"), || backend.size_in_use() != size);
        drop(backend);
        assert!(check_units(&open_at(&path).view()) > 0);
    }
}

fn open_at(path: &std::path::Path) -> Backend {
    Backend::open(path, Options::default()).unwrap()
}

#[test]
fn an_index_alone_is_committed_when_asked() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), manual()).unwrap();
    backend.write().set_consistent(0, 9);
    assert_eq!(schema::meta::consistent(&backend.view()), Ok((0, 0)), "zero is never recorded");
    backend.write().set_consistent(7, 3);
    assert_eq!(schema::meta::consistent(&backend.view()), Ok((7, 3)));
    backend.commit().unwrap();
    drop(backend);
    assert_eq!(schema::meta::consistent(&open(dir.path()).view()), Ok((7, 3)));
}

#[test]
fn a_full_buffer_makes_writers_wait_but_not_for_ever() {
    let dir = harness::tempdir();
    let options =
        Options { batch_limit: 10, ops_max: 40, batch_interval: Duration::from_secs(3600), ..Options::default() };
    let backend = Backend::open(&dir.path().join("db"), options).unwrap();
    (1..=2000).for_each(|n| put_unit(&backend, n));
    backend.close().unwrap();
    drop(backend);
    assert_eq!(check_units(&open(dir.path()).view()), 2000);
}

#[test]
fn a_callback_may_read_on() {
    let dir = harness::tempdir();
    let backend = open(dir.path());
    put_unit(&backend, 1);
    let view = backend.view();
    let key = RevisionKey::new(1, 0).encode();
    let found = view.get_with(Bucket::Key, &key, |_| {
        // A unit in between, and a read after it: neither may wait for this callback.
        put_unit(&backend, 2);
        view.get_with(Bucket::Key, &key, |v| v.len())
    });
    assert!(found.flatten().is_some_and(|len| len > 320));
}

#[test]
fn a_locked_file_is_named_with_the_way_out() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let _holder = open(dir.path());
    let options = Options { lock_timeout: Some(Duration::from_millis(50)), ..Options::default() };
    let error = Backend::open(&path, options).err().expect("locked");
    assert!(matches!(&error, OpenError::Locked { path: p, .. } if *p == path), "{error:?}");
    assert!(error.to_string().contains("stop the etcd or lockgate that runs on this data dir"), "{error}");
    assert!(matches!(Backend::open_read_only(&path, Some(Duration::ZERO)).err(), Some(OpenError::Locked { .. })));
}

#[test]
fn waits_for_the_lock() {
    let dir = harness::tempdir();
    let holder = open(dir.path());
    let (tell, told) = mpsc::channel();
    let path = dir.path().join("db");
    let waiter = std::thread::spawn(move || {
        tell.send(()).unwrap();
        Backend::open(&path, Options::default()).map(|_| ())
    });
    told.recv().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    holder.close().unwrap();
    drop(holder);
    waiter.join().unwrap().unwrap();
}

#[test]
fn a_file_put_in_place_by_defrag_is_locked_too() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let holder = open(dir.path());
    put_unit(&holder, 1);
    let waiter = std::thread::spawn(move || {
        let options = Options { lock_timeout: Some(Duration::from_millis(600)), ..Options::default() };
        Backend::open(&path, options).err()
    });
    while !waiter.is_finished() {
        holder.defrag().unwrap();
    }
    assert!(matches!(waiter.join().unwrap(), Some(OpenError::Locked { .. })));
}

#[test]
fn bad_files_are_refused_and_left_alone() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    for bytes in [&b"not a database"[..], &[0x5a; 64 * 1024]] {
        std::fs::write(&path, bytes).unwrap();
        let error = Backend::open(&path, Options::default()).err().expect("refused");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert!(Backend::open_read_only(&path, None).is_err());
    }
    let missing = dir.path().join("missing/db");
    assert!(matches!(Backend::open(&missing, Options::default()).err(), Some(OpenError::File { .. })));
    assert!(Backend::open_read_only(&dir.path().join("none"), None).is_err());
    assert!(!dir.path().join("none").exists(), "reading creates nothing");
}

#[test]
fn opening_an_existing_file_changes_nothing() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let backend = open(dir.path());
    (1..=50).for_each(|n| put_unit(&backend, n));
    backend.close().unwrap();
    drop(backend);
    let before = std::fs::read(&path).unwrap();
    drop(Backend::open(&path, manual()).unwrap());
    assert!(before == std::fs::read(&path).unwrap());
    Backend::open(&path, manual()).unwrap().close().unwrap();
    assert!(before == std::fs::read(&path).unwrap(), "closing without changes");
    drop(Backend::open_read_only(&path, None).unwrap());
    assert!(before == std::fs::read(&path).unwrap());
}

#[test]
fn buckets_that_are_missing_come_with_the_first_commit_and_strange_ones_stay() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let db = bolt::Db::open(&path, bolt::Options::default()).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.create_bucket_if_missing(b"key").unwrap();
    tx.create_bucket_if_missing(b"test").unwrap().put(b"a", b"1").unwrap();
    tx.commit().unwrap();
    drop(db);
    let before = std::fs::read(&path).unwrap();
    let backend = Backend::open(&path, manual()).unwrap();
    assert!(all(&backend.view(), Bucket::Lease).is_empty());
    assert!(before == std::fs::read(&path).unwrap(), "opening changed the file");
    put_unit(&backend, 1);
    backend.defrag().unwrap();
    assert_eq!(check_units(&backend.view()), 1);
    backend.close().unwrap();
    drop(backend);
    let read_only = bolt::Options { read_only: true, ..bolt::Options::default() };
    let tx = bolt::Db::open(&path, read_only).unwrap().begin_read();
    assert_eq!(tx.buckets().unwrap().len(), 11);
    assert_eq!(tx.bucket(b"test").unwrap().unwrap().get(b"a").unwrap(), Some(&b"1"[..]));
    assert!(tx.check().is_empty());
}

#[test]
fn closing_ends_a_defragmentation_without_harm() {
    let dir = harness::tempdir();
    let backend = open(dir.path());
    (1..=3000).for_each(|n| put_unit(&backend, n));
    std::thread::scope(|scope| {
        let defrag = scope.spawn(|| backend.defrag());
        std::thread::sleep(Duration::from_millis(3));
        backend.close().unwrap();
        let ended = defrag.join().unwrap();
        assert!(matches!(ended, Ok(_) | Err(storage::DefragError::Backend(Failure::Closed))), "{ended:?}");
    });
    drop(backend);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "the copy is gone");
    assert_eq!(check_units(&open(dir.path()).view()), 3000);
}

#[test]
fn snapshots_stream_one_commit() {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), manual()).unwrap();
    (1..=300).for_each(|n| put_unit(&backend, n));
    let mut snapshot = backend.snapshot().unwrap();
    (301..=600).for_each(|n| put_unit(&backend, n));
    backend.commit().unwrap();
    let mut copy = Vec::new();
    while let Some(chunk) = snapshot.next_chunk(32 * 1024).unwrap() {
        copy.extend_from_slice(&chunk);
    }
    assert_eq!((copy.len() as u64, snapshot.remaining()), (snapshot.size(), 0));
    let path = dir.path().join("copy");
    std::fs::write(&path, copy).unwrap();
    let tool = Backend::open_read_only(&path, None).unwrap();
    assert_eq!(check_units(&tool.view()), 300);
    assert_eq!(check_units(&snapshot.view()), 300);
    assert_eq!(check_units(&backend.view()), 600);
}

#[test]
fn observers_are_told() {
    struct Told(AtomicBool);
    impl storage::Observer for Told {
        fn committed(&self, times: &storage::CommitTimes) {
            assert!(times.total >= times.sync && times.ops > 0);
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let told = Arc::new(Told(AtomicBool::new(false)));
    let dir = harness::tempdir();
    let options = Options { observer: Some(told.clone()), ..manual() };
    let backend = Backend::open(&dir.path().join("db"), options).unwrap();
    put_unit(&backend, 1);
    backend.commit().unwrap();
    assert!(told.0.load(Ordering::SeqCst));
}
