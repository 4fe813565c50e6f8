//! Shapes of trees and files: overflow, inline buckets, merging, page reuse, limits, copies, compaction, locks.

use crate::common;

use std::{collections::BTreeMap, fs, time::Duration};

use bolt::{Db, Error, KEY_BYTES_MAX, OpenError, Options};
use common::{assert_sound, contents, go_check, open, options};
use random::Random;

fn key(i: u64) -> Vec<u8> {
    format!("key-{i:08}").into_bytes()
}

fn fill(db: &Db, bucket: &[u8], keys: std::ops::Range<u64>, value: &[u8]) {
    let mut tx = db.begin_write().expect("begin");
    let mut bucket = tx.create_bucket_if_missing(bucket).expect("create");
    keys.for_each(|i| bucket.put(&key(i), value).expect("put"));
    tx.commit().expect("commit");
}

#[test]
fn large_keys_and_values_take_overflow_pages() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let (db, mut rng) = (open(&path), Random::new(3));
    let mut model = BTreeMap::new();
    for len in [1, 4080, 4096, 5000, 70_000, 1 << 20, 3 << 20] {
        let (key, value) = (rng.bytes(1 + len % KEY_BYTES_MAX), rng.bytes(len));
        let mut tx = db.begin_write().expect("begin");
        tx.create_bucket_if_missing(b"large").expect("create").put(&key, &value).expect("put");
        model.insert(key, value);
        tx.commit().expect("commit");
    }
    for i in 0..20 {
        let mut tx = db.begin_write().expect("begin");
        let key = rng.bytes(KEY_BYTES_MAX - i);
        tx.put(b"large", &key, b"long key").expect("put");
        model.insert(key, b"long key".to_vec());
        tx.commit().expect("commit");
    }
    assert!(contents(&db.begin_read())[&b"large"[..]] == model);
    assert_sound(&db.begin_read());
    drop(db);
    go_check(&path);
    let db = open(&path);
    assert!(contents(&db.begin_read())[&b"large"[..]] == model);
}

#[test]
fn limits_are_refused_and_leave_the_transaction_usable() {
    let dir = harness::tempdir();
    let db = open(&dir.path().join("db"));
    let mut tx = db.begin_write().expect("begin");
    assert!(matches!(tx.create_bucket_if_missing(b"").err(), Some(Error::EmptyKey)));
    tx.create_bucket_if_missing(b"b").expect("create");
    assert!(matches!(tx.put(b"b", b"", b"v"), Err(Error::EmptyKey)));
    assert!(matches!(tx.put(b"b", &vec![1; KEY_BYTES_MAX + 1], b"v"), Err(Error::KeyTooLong { len: 32769 })));
    assert!(matches!(tx.put(b"none", b"k", b"v"), Err(Error::NoBucket { .. })));
    assert!(matches!(tx.get(b"none", b"k"), Err(Error::NoBucket { .. })));
    assert!(!tx.delete_bucket(b"none").expect("delete"));
    tx.put(b"b", &vec![1; KEY_BYTES_MAX], b"v").expect("put");
    tx.commit().expect("commit");
    assert_eq!(db.begin_read().bucket(b"b").expect("read").expect("b").iter().count(), 1);
}

#[test]
fn small_buckets_live_in_their_parent_and_move_out_and_in() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let db = open(&path);
    fill(&db, b"b", 0..1, b"v");
    // Two metas, one leaf with the bucket inside, and what the first commit freed.
    let used = |db: &Db| {
        db.begin_write().expect("begin").commit().expect("commit");
        db.stats().pages - db.stats().free_pages - db.stats().pending_pages
    };
    assert_eq!(used(&db), 3);
    fill(&db, b"b", 0..200, b"value");
    assert!(used(&db) > 4);
    let mut tx = db.begin_write().expect("begin");
    for i in 3..200 {
        assert!(tx.delete(b"b", &key(i)).expect("delete"));
    }
    tx.commit().expect("commit");
    assert_eq!(used(&db), 3);
    assert_eq!(contents(&db.begin_read())[&b"b"[..]].len(), 3);
    assert_sound(&db.begin_read());
    drop(db);
    go_check(&path);
}

#[test]
fn deleting_everything_gives_all_pages_back() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let db = open(&path);
    for order in 0..3 {
        fill(&db, b"b", 0..5000, &[7; 100]);
        let mut keys: Vec<u64> = (0..5000).collect();
        match order {
            0 => keys.reverse(),
            1 => keys.sort_by_key(|i| i * 7919 % 5000),
            _ => {}
        }
        for part in keys.chunks(700) {
            let mut tx = db.begin_write().expect("begin");
            part.iter().for_each(|i| assert!(tx.delete(b"b", &key(*i)).expect("delete")));
            tx.commit().expect("commit");
            assert_sound(&db.begin_read());
        }
        assert!(contents(&db.begin_read())[&b"b"[..]].is_empty());
        drop(db.begin_write().expect("begin"));
        assert_eq!(db.stats().pages - db.stats().free_pages, 3, "order {order}");
    }
    drop(db);
    go_check(&path);
}

#[test]
fn rising_keys_fill_pages_as_told() {
    let dir = harness::tempdir();
    let size = |fill: f32, name: &str| {
        let db = open(&dir.path().join(name));
        for commit in 0..20u64 {
            let mut tx = db.begin_write().expect("begin");
            let mut bucket = tx.create_bucket_if_missing(b"b").expect("create");
            bucket.set_fill(fill);
            (0..1000).for_each(|i| bucket.put(&key(commit * 1000 + i), &[1; 100]).expect("put"));
            tx.commit().expect("commit");
        }
        drop(db.begin_write().expect("begin"));
        db.stats().pages - db.stats().free_pages
    };
    let payload = 20_000 * (16 + 12 + 100) / 4096;
    let (full, half) = (size(0.9, "full"), size(0.5, "half"));
    assert!((payload..payload * 125 / 100).contains(&full), "{full} pages for {payload}");
    assert!((payload * 18 / 10..payload * 23 / 10).contains(&half), "{half} pages for {payload}");
}

#[test]
fn freed_pages_are_reused_and_a_long_view_costs_only_what_it_sees() {
    let dir = harness::tempdir();
    let db = open(&dir.path().join("db"));
    fill(&db, b"b", 0..2000, &[1; 200]);
    let churn = || {
        for round in 0..50u8 {
            let mut tx = db.begin_write().expect("begin");
            (0..2000).step_by(10).for_each(|i| tx.put(b"b", &key(i), &[round; 200]).expect("put"));
            tx.commit().expect("commit");
        }
        db.stats().pages
    };
    let settled = churn();
    assert_eq!(churn(), settled, "the file stops growing");
    let view = db.begin_read();
    let before = contents(&view);
    let held = churn();
    assert!(held < settled * 3, "{settled} pages before, {held} with a view held over 50 rewrites");
    assert!(contents(&view) == before);
    drop(view);
    assert_eq!(churn(), held, "and the pages come back");
}

#[test]
fn many_buckets() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let db = open(&path);
    let name = |i: u64| format!("bucket {i:04}").into_bytes();
    let mut tx = db.begin_write().expect("begin");
    for i in 0..500 {
        let mut bucket = tx.create_bucket_if_missing(&name(i)).expect("create");
        (0..i % 40).for_each(|k| bucket.put(&key(k), b"a value").expect("put"));
        bucket.set_sequence(i);
    }
    tx.commit().expect("commit");
    let mut tx = db.begin_write().expect("begin");
    (0..500).step_by(3).for_each(|i| assert!(tx.delete_bucket(&name(i)).expect("delete")));
    tx.commit().expect("commit");
    drop(db);
    go_check(&path);
    let view = open(&path).begin_read();
    let names: Vec<_> = (0..500).filter(|i| i % 3 != 0).map(name).collect();
    assert_eq!(view.buckets().expect("names"), names);
    let bucket = view.bucket(&name(499)).expect("read").expect("exists");
    assert_eq!((bucket.sequence(), bucket.iter().count()), (499, 19));
    assert_sound(&view);
}

#[test]
fn a_hot_copy_is_the_state_of_its_view() {
    let dir = harness::tempdir();
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let db = open(&path);
    fill(&db, b"b", 0..3000, &[1; 50]);
    let view = db.begin_read();
    let before = contents(&view);
    let mut stream = view.copy();
    assert_eq!(stream.remaining(), view.size());
    let mut bytes = vec![0; 10_000];
    std::io::Read::read_exact(&mut stream, &mut bytes).expect("read");
    // The database goes on changing while the copy is pulled.
    fill(&db, b"b", 1000..9000, &[2; 80]);
    std::io::Read::read_to_end(&mut stream, &mut bytes).expect("read");
    assert_eq!((bytes.len() as u64, stream.remaining()), (view.size(), 0));
    fs::write(&copy, &bytes).expect("write");
    go_check(&copy);
    let copied = open(&copy);
    assert_eq!(copied.begin_read().txid(), view.txid());
    assert!(contents(&copied.begin_read()) == before);
    fill(&copied, b"b", 5000..5100, b"the copy takes writes");
    assert_sound(&copied.begin_read());
}

#[test]
fn compaction_keeps_the_contents_and_drops_the_rest() {
    let dir = harness::tempdir();
    let (path, to) = (dir.path().join("db"), dir.path().join("compact"));
    let db = open(&path);
    fill(&db, b"a", 0..10_000, &[1; 100]);
    fill(&db, b"b", 0..5, b"x");
    let mut tx = db.begin_write().expect("begin");
    tx.create_bucket_if_missing(b"empty").expect("create").set_sequence(42);
    (0..10_000).filter(|i| i % 10 != 0).for_each(|i| assert!(tx.delete(b"a", &key(i)).expect("delete")));
    tx.commit().expect("commit");
    let (view, mut told) = (db.begin_read(), Vec::new());
    bolt::compact(&view, &to, options(), 20_000, &mut |done| told.push(done)).expect("compact");
    assert!(told.len() > 5 && told.is_sorted() && told.last() == Some(&(1000 * 112 + 5 * 13)), "{told:?}");
    go_check(&to);
    let compacted = open(&to);
    assert!(contents(&compacted.begin_read()) == contents(&view));
    assert_eq!(compacted.begin_read().bucket(b"empty").expect("read").expect("empty").sequence(), 42);
    assert!(compacted.size() < db.size() / 5);
    let again = bolt::compact(&view, &to, options(), 20_000, &mut |_| {});
    assert!(matches!(again, Err(Error::DestinationExists { .. })));
}

#[test]
fn one_process_writes_or_many_read() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let read_only = Options { read_only: true, ..options() };
    assert!(matches!(Db::open(&path, read_only.clone()), Err(OpenError::Io { .. })));
    let db = open(&path);
    assert!(matches!(Db::open(&path, options()), Err(OpenError::Locked { .. })));
    let begin = std::time::Instant::now();
    let wait = Options { lock_timeout: Some(Duration::from_millis(120)), ..options() };
    assert!(matches!(Db::open(&path, wait), Err(OpenError::Locked { .. })));
    assert!(begin.elapsed() >= Duration::from_millis(120));
    drop(db);
    let (one, two) = (Db::open(&path, read_only.clone()).expect("open"), Db::open(&path, read_only).expect("open"));
    assert!(matches!(one.begin_write().err(), Some(Error::ReadOnly)));
    assert!(matches!(Db::open(&path, options()), Err(OpenError::Locked { .. })));
    let view = two.begin_read();
    drop((one, two));
    assert!(matches!(Db::open(&path, options()), Err(OpenError::Locked { .. })), "a view keeps the file open");
    drop(view);
    open(&path);
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).expect("stat").permissions()) & 0o777,
        0o600
    );
}

#[test]
fn growing_beyond_the_reservation_leaves_old_views_alone() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let small = Options { mmap_bytes: 64 << 10, ..options() };
    let db = Db::open(&path, small).expect("open");
    fill(&db, b"b", 0..10, b"before");
    let view = db.begin_read();
    let before = contents(&view);
    for round in 0..30 {
        fill(&db, b"b", round * 1000..round * 1000 + 1000, &[1; 300]);
    }
    assert!(db.size() > 8 << 20);
    assert!(contents(&view) == before);
    assert_eq!(contents(&db.begin_read())[&b"b"[..]].len(), 30_000);
}

#[test]
fn commits_alternate_meta_pages_by_their_number_and_store_no_free_list() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let db = open(&path);
    let word = |at: usize| u64::from_le_bytes(fs::read(&path).expect("read")[at..at + 8].try_into().expect("8 bytes"));
    for txid in 2..6u64 {
        fill(&db, b"b", txid..txid + 1, b"v");
        let meta = (txid % 2) as usize * 4096 + 16;
        assert_eq!((word(meta + 48), word(meta + 32)), (txid, u64::MAX));
    }
    let same = db.begin_write().expect("begin").commit().expect("commit");
    assert_eq!((same.txid, same.pages), (5, 0), "nothing to write, nothing written");
}

#[test]
fn a_stored_free_list_stays_until_the_first_commit_is_done() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let db = open(&path);
    // bbolt stores an empty list in page 2 of a new file; the first state would be lost to Go without it.
    let is_list = || fs::read(&path).expect("read")[2 * 4096 + 8] == 0x10;
    assert!(is_list());
    fill(&db, b"b", 0..500, &[1; 100]);
    assert!(is_list());
    fill(&db, b"b", 0..500, &[2; 100]);
    assert!(!is_list(), "the page is free after that");
}

#[test]
fn page_sizes() {
    let dir = harness::tempdir();
    for page_size in [4096, 8192, 16384, 32768, 65536] {
        let path = dir.path().join(page_size.to_string());
        let db = Db::open(&path, Options { page_size: Some(page_size), ..options() }).expect("open");
        fill(&db, b"b", 0..3000, &[1; 100]);
        drop(db);
        go_check(&path);
        // The file's own size counts, also when only the second meta page is left to tell it.
        let mut image = fs::read(&path).expect("read");
        image[20] ^= 1;
        fs::write(&path, image).expect("write");
        let db = open(&path);
        assert_eq!(db.stats().page_size, page_size as u64);
    }
    for page_size in [0, 512, 2048, 5000, 131072] {
        let made = Db::open(&dir.path().join("bad"), Options { page_size: Some(page_size), ..options() });
        assert!(matches!(made, Err(OpenError::PageSize { .. })), "{page_size}");
    }
}

#[test]
fn transactions_may_move_between_threads() {
    fn send<T: Send + 'static>() {}
    fn sync<T: Sync + 'static>() {}
    send::<Db>();
    sync::<Db>();
    send::<bolt::ReadTx>();
    sync::<bolt::ReadTx>();
    send::<bolt::WriteTx>();
    send::<bolt::Copy>();
    send::<bolt::Bucket<'static>>();
    send::<bolt::Cursor<'static>>();
}

#[test]
fn memory_can_be_locked_and_let_go() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let db = Db::open(&path, Options { mlock: true, ..options() }).expect("open");
    fill(&db, b"b", 0..1500, &[3; 100]);
    drop(db);
    let db = open(&path);
    let before = contents(&db.begin_read());
    db.release_memory();
    assert!(contents(&db.begin_read()) == before);
}

#[test]
fn nothing_is_created_unasked() {
    let dir = harness::tempdir();
    let (path, existing) = (dir.path().join("db"), Options { create: false, ..options() });
    assert!(matches!(Db::open(&path, existing.clone()), Err(OpenError::Io { .. })));
    assert!(!path.exists());
    fs::write(&path, b"").expect("write");
    assert!(matches!(Db::open(&path, existing), Err(OpenError::NotBolt { .. })));
    assert_eq!(fs::metadata(&path).expect("stat").len(), 0);
}
