//! Readers and writers at the same time, on several threads.

use crate::common;

use std::sync::atomic::{AtomicBool, Ordering};

use bolt::{Db, ReadTx};
use common::{contents, open};
use random::Random;

const KEYS: u64 = 400;

fn key(i: u64) -> Vec<u8> {
    format!("key-{i:08}").into_bytes()
}

#[test]
fn a_writer_waits_for_the_one_before() {
    let dir = harness::tempdir();
    let db = open(&dir.path().join("db"));
    let mut tx = db.begin_write().expect("begin");
    tx.create_bucket_if_missing(b"n").expect("create").put(&key(0), &0u64.to_le_bytes()).expect("put");
    tx.commit().expect("commit");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let mut tx = db.begin_write().expect("begin");
                    let n = u64::from_le_bytes(tx.get(b"n", &key(0)).expect("get").expect("n").try_into().expect("8"));
                    tx.put(b"n", &key(0), &(n + 1).to_le_bytes()).expect("put");
                    tx.commit().expect("commit");
                }
            });
        }
        scope.spawn(|| {
            let mut last = 0;
            for _ in 0..2000 {
                let view = db.begin_read();
                let n = view.bucket(b"n").expect("read").expect("n").get(&key(0)).expect("get").expect("n");
                let n = u64::from_le_bytes(n.try_into().expect("8"));
                assert!(n >= last);
                last = n;
            }
        });
    });
    assert_eq!(contents(&db.begin_read())[&b"n"[..]][&key(0)], 200u64.to_le_bytes());
    assert_eq!(db.stats().open_readers, 0);
}

/// Writes `generation` into every key that exists, and lets some come and go.
fn rewrite(db: &Db, generation: u64, rng: &mut Random) {
    let mut tx = db.begin_write().expect("begin");
    for name in [b"one", b"two"] {
        let mut bucket = tx.create_bucket_if_missing(name).expect("create");
        for i in 0..KEYS {
            if rng.one_in(8) {
                bucket.delete(&key(i)).expect("delete");
            } else {
                let len = if rng.one_in(50) { 700 } else { 8 };
                bucket.put(&key(i), &generation.to_le_bytes().repeat(len / 8)).expect("put");
            }
        }
    }
    tx.commit().expect("commit");
}

/// Every value of a view was written by the same commit.
fn assert_one_generation(view: &ReadTx) -> u64 {
    let mut generations: Vec<u64> = Vec::new();
    for pairs in contents(view).values() {
        for value in pairs.values() {
            generations.extend(value.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))));
        }
    }
    let first = generations.first().copied().unwrap_or(0);
    assert!(generations.iter().all(|generation| *generation == first), "a mixture of states");
    first
}

#[test]
fn views_stay_whole_while_pages_are_reused() {
    let dir = harness::tempdir();
    let (db, done) = (open(&dir.path().join("db")), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                let (mut held, mut rng) = (Vec::new(), Random::new(reader));
                while !done.load(Ordering::Relaxed) {
                    let view = db.begin_read();
                    held.push((assert_one_generation(&view), view));
                    if held.len() > reader as usize * 2 {
                        let (generation, view) = held.swap_remove(rng.below(held.len() as u64) as usize);
                        assert_eq!(assert_one_generation(&view), generation);
                    }
                }
            });
        }
        let mut rng = Random::new(99);
        (1..250).for_each(|generation| rewrite(&db, generation, &mut rng));
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(db.begin_read().check(), []);
    assert!(db.stats().pages < 1500, "{:?}: freed pages are not reused", db.stats());
}
