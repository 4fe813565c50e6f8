//! Power cuts at every single operation of a commit: the file must show the state before or after it, never another.

use crate::common;

use std::{path::Path, sync::Arc};

use bolt::{Db, Error, Options};
use common::{Model, assert_sound, contents, seeds};
use memdisk::{FileDisk, Survives, crash};
use random::Random;

pub(crate) fn open(disk: Arc<FileDisk>) -> Result<Db, bolt::OpenError> {
    let options = Options { page_size: Some(4096), mmap_bytes: 64 << 20, ..Options::default() };
    Db::open_disk(disk, Path::new("test disk"), options)
}

/// One commit of random work; the model follows.
pub(crate) fn work(db: &Db, model: &mut Model, rng: &mut Random) -> Result<(), Error> {
    let mut next = model.clone();
    let mut tx = db.begin_write()?;
    for _ in 0..1 + rng.below(60) {
        let name = [b'a' + rng.below(3) as u8];
        let mut bucket = tx.create_bucket_if_missing(&name)?;
        let pairs = next.entry(name.to_vec()).or_default();
        let key = format!("{:03}", rng.below(250)).into_bytes();
        if rng.one_in(3) {
            bucket.delete(&key)?;
            pairs.remove(&key);
        } else {
            let len = if rng.one_in(20) { rng.below(12_000) } else { rng.below(200) };
            let value = rng.bytes(len as usize);
            bucket.put_shared(&key, &value.clone().into())?;
            pairs.insert(key, value);
        }
    }
    tx.commit()?;
    *model = next;
    Ok(())
}

fn assert_survives(image: &[u8], states: &[&Model], what: &str) {
    let disk = Arc::new(FileDisk::new(image));
    let db = open(disk).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    let mut found = contents(&db.begin_read());
    assert!(states.contains(&&found), "{what}: neither the state before nor after");
    assert_sound(&db.begin_read());
    // The rebuilt free list must be right as well: what comes next may not harm what is there.
    let mut rng = Random::new(image.len() as u64);
    work(&db, &mut found, &mut rng).expect("work after the crash");
    assert!(contents(&db.begin_read()) == found, "{what}: work after the crash");
}

#[test]
fn every_crash_point_shows_the_state_before_or_after() {
    let mut rng = Random::new(41);
    let mut model = Model::new();
    let mut image = Vec::new();
    for round in seeds(10) {
        let disk = Arc::new(FileDisk::new(&image));
        let db = open(disk.clone()).expect("open");
        let opened = disk.ops().len();
        // A held view keeps pages from being reused for some of the commits.
        let view = rng.one_in(3).then(|| db.begin_read());
        let before = model.clone();
        let base = image.clone();
        work(&db, &mut model, &mut rng).expect("work");
        drop(view);
        let ops = disk.ops();
        for point in opened..=ops.len() {
            let kinds = [Survives::Nothing, Survives::Everything, Survives::Prefix, Survives::Prefix];
            for survives in kinds.into_iter().chain([Survives::Sectors; 3]).chain([Survives::Bytes; 2]) {
                let what = format!("round {round}, crash at {point} of {}, {survives:?}", ops.len());
                let after = crash(&base, &ops[..point], survives, &mut rng);
                if point == ops.len() {
                    assert_survives(&after, &[&model], &what)
                } else {
                    assert_survives(&after, &[&before, &model], &what)
                }
            }
        }
        image = disk.image();
    }
}

#[test]
fn a_crash_while_a_new_file_is_made_leaves_one_that_opens() {
    let disk = Arc::new(FileDisk::new(&[]));
    open(disk.clone()).expect("open");
    let (ops, mut rng) = (disk.ops(), Random::new(2));
    for point in 0..=ops.len() {
        for survives in [Survives::Nothing, Survives::Everything, Survives::Prefix, Survives::Sectors] {
            let image = crash(&[], &ops[..point], survives, &mut rng);
            assert_survives(&image, &[&Model::new()], &format!("crash at {point}, {survives:?}"));
        }
    }
}

#[test]
fn after_a_failed_write_or_sync_nothing_is_acknowledged_any_more() {
    let mut rng = Random::new(77);
    for fail_after in 0..12 {
        let disk = Arc::new(FileDisk::new(&[]));
        let db = open(disk.clone()).expect("open");
        let mut model = Model::new();
        work(&db, &mut model, &mut rng).expect("work");
        disk.fail_after(fail_after);
        let mut tried = model.clone();
        let error = loop {
            match work(&db, &mut tried, &mut rng) {
                Ok(()) => model = tried.clone(),
                Err(e) => break e,
            }
        };
        assert!(matches!(error, Error::Io { .. }), "{error:?}");
        disk.fail_after(-1);
        let again = db.begin_write().err();
        assert!(matches!(&again, Some(Error::Poisoned { why }) if why.contains("injected")), "{again:?}");
        assert!(contents(&db.begin_read()) == model, "readers go on with the last acknowledged state");
        let reopened = open(Arc::new(FileDisk::new(&disk.image()))).expect("reopen");
        assert_sound(&reopened.begin_read());
        // What failed may or may not be there; what was acknowledged before must be.
        let found = contents(&reopened.begin_read());
        let txid = reopened.begin_read().txid();
        assert!(found == model || txid == db.begin_read().txid() + 1);
    }
}
