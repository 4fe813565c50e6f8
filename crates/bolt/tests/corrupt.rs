//! Damaged files give errors: no flipped, cut or foreign byte makes the engine panic or read out of bounds.

use crate::common;

use std::{path::Path, sync::Arc};

use bolt::{Db, Error, OpenError, Options};
use common::{contents, seeds};
use memdisk::FileDisk;
use random::Random;

fn open(image: &[u8], read_only: bool) -> Result<Db, OpenError> {
    let options = Options { page_size: Some(4096), mmap_bytes: 64 << 20, read_only, ..Options::default() };
    Db::open_disk(Arc::new(FileDisk::new(image)), Path::new("test disk"), options)
}

/// A file with a deep tree, an inline bucket, overflow pages and free pages.
fn sample() -> Vec<u8> {
    let disk = Arc::new(FileDisk::new(&[]));
    let options = Options { page_size: Some(4096), mmap_bytes: 64 << 20, ..Options::default() };
    let db = Db::open_disk(disk.clone(), Path::new("test disk"), options).expect("open");
    let mut rng = Random::new(9);
    for round in 0..6u64 {
        let mut tx = db.begin_write().expect("begin");
        tx.create_bucket_if_missing(b"small").expect("create").put(&[round as u8 + 1], b"value").expect("put");
        let mut deep = tx.create_bucket_if_missing(b"deep").expect("create");
        for i in 0..120u64 {
            let key = [&format!("{:05}", i * 7 + round).into_bytes()[..], &rng.bytes(300)].concat();
            deep.put(&key, &rng.bytes(20)).expect("put");
        }
        let mut large = tx.create_bucket_if_missing(b"large").expect("create");
        large.put(&[b'x', round as u8], &rng.bytes(9000)).expect("put");
        large.delete(&[b'x', round as u8 / 2]).expect("delete");
        tx.commit().expect("commit");
    }
    disk.image()
}

/// Does everything a file can be asked for, whatever comes of it.
fn exercise(image: &[u8], rng: &mut Random) {
    if let Ok(db) = open(image, true) {
        let view = db.begin_read();
        view.check();
        for name in view.buckets().unwrap_or_default() {
            let Ok(Some(bucket)) = view.bucket(&name) else { continue };
            // A damaged tree may have pages in common, so the walk is bounded.
            bucket.iter().take(5000).take_while(|pair| pair.is_ok()).for_each(drop);
            let mut cursor = bucket.cursor();
            let _ = cursor.last();
            (0..2000).take_while(|_| matches!(cursor.prev(), Ok(Some(_)))).for_each(drop);
            let _ = bucket.get(b"00010");
        }
    }
    let Ok(db) = open(image, false) else { return };
    for _ in 0..2 {
        let Ok(mut tx) = db.begin_write() else { return };
        for name in tx.buckets().unwrap_or_default() {
            let keys: Vec<Vec<u8>> = match tx.bucket(&name) {
                Ok(Some(bucket)) => bucket.iter().take(800).flatten().map(|(key, _)| key.to_vec()).collect(),
                _ => continue,
            };
            for key in keys.iter().filter(|_| rng.one_in(2)) {
                let _ = tx.delete(&name, key);
            }
            let _ = tx.put(&name, b"00020", &[7; 3000]);
        }
        if rng.one_in(3) {
            let _ = tx.delete_bucket(b"deep");
        }
        let _ = tx.commit();
    }
    db.begin_read().check();
}

#[test]
fn flipped_bytes_never_panic() {
    let image = sample();
    exercise(&image, &mut Random::new(1));
    for seed in seeds(250) {
        println!("SEED {seed}");
        let mut rng = Random::new(seed);
        let mut bad = image.clone();
        for _ in 0..1 + rng.below(6) {
            // Headers and the first elements steer everything, so half of the damage goes there.
            let page = rng.below(image.len() as u64 / 4096);
            let within = if rng.one_in(2) { rng.below(64) } else { rng.below(4096) };
            let at = (page * 4096 + within) as usize;
            bad[at] = if rng.one_in(2) { rng.next() as u8 } else { bad[at] ^ (1 << rng.below(8)) };
        }
        exercise(&bad, &mut rng);
    }
}

#[test]
fn swapped_and_repeated_pages_never_panic() {
    let image = sample();
    for seed in seeds(100) {
        println!("SEED {seed}");
        let mut rng = Random::new(seed);
        let mut bad = image.clone();
        let pages = image.len() as u64 / 4096 - 2;
        for _ in 0..1 + rng.below(3) {
            let (from, to) = (2 + rng.below(pages), 2 + rng.below(pages));
            bad.copy_within(from as usize * 4096..(from as usize + 1) * 4096, to as usize * 4096);
            if rng.one_in(2) {
                // With the right number on it the page passes for the other one: rings and shared pages.
                bad[to as usize * 4096..to as usize * 4096 + 8].copy_from_slice(&to.to_le_bytes());
            }
        }
        exercise(&bad, &mut rng);
    }
}

#[test]
fn meta_pages_with_right_checksums_and_wrong_contents_never_panic() {
    let image = sample();
    let pages = image.len() as u64 / 4096;
    for seed in seeds(150) {
        println!("SEED {seed}");
        let mut rng = Random::new(seed);
        let mut bad = image.clone();
        for meta in bad.chunks_mut(4096).take(2) {
            let meta = &mut meta[16..80];
            for _ in 0..1 + rng.below(2) {
                // Root, sequence, free list, high water mark, transaction id.
                let at = 16 + 8 * rng.below(5) as usize;
                let value = [0, 1, 2, 3, pages - 1, pages, u64::MAX - 1, u64::MAX, rng.below(pages), rng.next()];
                meta[at..at + 8].copy_from_slice(&value[rng.below(10) as usize].to_le_bytes());
            }
            set_checksum(meta);
        }
        exercise(&bad, &mut rng);
    }
}

#[test]
fn cut_files_are_refused_with_both_lengths() {
    let image = sample();
    let used = open(&image, true).expect("open").size();
    let error = open(&image[..used as usize - 1], true).err();
    assert!(
        matches!(error, Some(OpenError::Truncated { expected, found, .. }) if expected == used && found == used - 1)
    );
    for len in [0, 1, 79, 80, 4095, 4096, 8191, 8192, 12288, 16384] {
        assert!(open(&image[..len], true).is_err(), "{len} bytes");
    }
    assert!(open(&image[..used as usize], true).is_ok());
}

#[test]
fn a_damaged_page_is_named() {
    let mut image = sample();
    // Page numbers are the first word of a page.
    let meta = open(&image, true).expect("open").begin_read().txid() % 2;
    let root = u64::from_le_bytes(image[meta as usize * 4096 + 32..][..8].try_into().expect("8 bytes"));
    image[root as usize * 4096] ^= 0xFF;
    let error = open(&image, false).err();
    assert!(matches!(error, Some(OpenError::Walk { source: Error::Corrupt { page, .. }, .. }) if page == root));
    let db = open(&image, true).expect("a read-only file opens without a walk");
    assert!(matches!(db.begin_read().bucket(b"deep"), Err(Error::Corrupt { page, .. }) if page == root));
    assert_eq!(db.begin_read().check()[0].page, root);
}

#[test]
fn either_meta_page_will_do() {
    let image = sample();
    let newest = contents(&open(&image, true).expect("open").begin_read());
    let txid = open(&image, true).expect("open").begin_read().txid();
    for (slot, is_newest) in [(txid % 2, false), ((txid + 1) % 2, true)] {
        for damage in [16, 30, 60, 72] {
            let mut bad = image.clone();
            bad[slot as usize * 4096 + damage] ^= 0x10;
            let db = open(&bad, true).expect("one meta page is left");
            assert_eq!(db.begin_read().txid(), if is_newest { txid } else { txid - 1 });
            assert_eq!(contents(&db.begin_read()) == newest, is_newest);
            assert_eq!(db.begin_read().check(), []);
        }
    }
}

#[test]
fn foreign_files_are_refused_by_what_they_are() {
    let image = sample();
    let refused = |damage: &dyn Fn(&mut [u8])| {
        let mut bad = image.clone();
        for meta in bad.chunks_mut(4096).take(2) {
            damage(&mut meta[16..80]);
        }
        (open(&bad, false).err().expect("refused"), open(&bad, true).err().expect("refused")).0
    };
    assert!(matches!(refused(&|meta| meta[0] ^= 1), OpenError::NotBolt { .. }));
    assert!(matches!(refused(&|meta| meta[4] = 3), OpenError::Version { found: 3, .. }));
    assert!(matches!(refused(&|meta| meta[40] ^= 1), OpenError::BothMetasDamaged { .. }));
    let text = b"not a database, but long enough to be one ".repeat(1000);
    assert!(matches!(open(&text, false), Err(OpenError::NotBolt { .. })));
}

/// A small file in which each of `depth` branches names the next one twice, and the last one an empty leaf twice.
fn doubling(depth: u64) -> Vec<u8> {
    let disk = Arc::new(FileDisk::new(&[]));
    let options = Options { page_size: Some(4096), mmap_bytes: 64 << 20, ..Options::default() };
    drop(Db::open_disk(disk.clone(), Path::new("test disk"), options).expect("open"));
    let mut image = disk.image();
    for page in 4..4 + depth {
        let child = if page == 4 { 3 } else { page - 1 };
        let mut bytes = vec![0; 4096];
        bytes[..8].copy_from_slice(&page.to_le_bytes());
        (bytes[8], bytes[10]) = (1, 2);
        for (i, key) in [b'a', b'b'].into_iter().enumerate() {
            let element = 16 + 16 * i;
            let key_at = 48 + i;
            bytes[element..element + 4].copy_from_slice(&((key_at - element) as u32).to_le_bytes());
            bytes[element + 4] = 1;
            bytes[element + 8..element + 16].copy_from_slice(&child.to_le_bytes());
            bytes[key_at] = key;
        }
        image.extend(bytes);
    }
    for meta in image.chunks_mut(4096).take(2) {
        let meta = &mut meta[16..80];
        meta[16..24].copy_from_slice(&(3 + depth).to_le_bytes());
        meta[40..48].copy_from_slice(&(4 + depth).to_le_bytes());
        set_checksum(meta);
    }
    image
}

fn set_checksum(meta: &mut [u8]) {
    let fnv = |hash: u64, byte: &u8| (hash ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
    let sum = meta[..56].iter().fold(0xcbf2_9ce4_8422_2325, fnv);
    meta[56..].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_walk_over_pages_that_are_used_many_times_ends() {
    // A depth at which a walk without a limit ends as well, so that this test fails rather than hangs.
    let db = open(&doubling(16), true).expect("a read-only file opens without a walk");
    let view = db.begin_read();
    assert!(matches!(view.buckets(), Err(Error::Corrupt { .. })));
    let problems = view.check();
    assert!(!problems.is_empty() && problems.len() <= bolt::PROBLEMS_MAX);
    let image = doubling(1);
    let sound = |image: &[u8]| open(image, true).expect("open").begin_read().buckets();
    assert!(sound(&image).is_ok());
}

#[test]
fn a_check_reports_a_bounded_number_of_problems() {
    let mut image = sample();
    let roots = [0, 4096].map(|meta| image[meta + 32..meta + 40].to_vec());
    // Every element of the buckets' leaves becomes longer than its page.
    for page in image.chunks_mut(4096).skip(2).filter(|page| page[8] == 2 && !roots.contains(&page[..8].to_vec())) {
        let count = u16::from_le_bytes([page[10], page[11]]) as usize;
        for element in (0..count).map(|i| 16 + 16 * i) {
            page[element + 8..element + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        }
    }
    let problems = open(&image, true).expect("open").begin_read().check();
    assert_eq!(problems.len(), bolt::PROBLEMS_MAX);
}
