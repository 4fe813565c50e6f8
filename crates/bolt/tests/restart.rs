//! A process dies, or a sync fails and ends it; the next one starts on the page cache; then the power fails.

use crate::{
    common,
    crash::{open, work},
};

use std::sync::Arc;

use bolt::Db;
use common::{Model, contents, seeds};
use memdisk::{FileDisk, Op, Survives, SyncFault, crash};
use random::Random;

/// The operations of a first process that ends in the middle of a commit: at each operation, or by a failed sync.
fn endings(ops: &[Op], opened: usize, rng: &mut Random) -> Vec<Vec<Op>> {
    let mut endings: Vec<_> = (opened..=ops.len()).map(|point| ops[..point].to_vec()).collect();
    for sync in (opened..ops.len()).filter(|at| matches!(ops[*at], Op::Sync)) {
        let random = SyncFault::Drops { lost: rng.next() };
        for fault in [SyncFault::Keeps, SyncFault::Drops { lost: !0 }, random] {
            endings.push([&ops[..sync], &[Op::FailedSync(fault)]].concat());
        }
    }
    endings
}

/// Whether a file opens, is sound, shows one of the states, and takes another commit.
fn shows_one_of(image: &[u8], states: &[&Model]) -> bool {
    let Ok(db) = open(Arc::new(FileDisk::new(image))) else { return false };
    if !db.begin_read().check().is_empty() {
        return false;
    }
    let mut found = contents(&db.begin_read());
    let known = states.contains(&&found);
    let worked = work(&db, &mut found, &mut Random::new(3)).is_ok();
    known && worked && contents(&db.begin_read()) == found
}

/// Power failures at every operation of a process: how many there were, and how many left a bad file. `before` are the
/// states until the process has opened the file, `during` those of its commit.
struct PowerFailures<'a> {
    base: &'a [u8],
    rng: &'a mut Random,
    count: usize,
    bad: usize,
}

impl PowerFailures<'_> {
    fn at(&mut self, ops: &[Op], states: &[&Model]) {
        for survives in
            [Survives::Nothing, Survives::Everything, Survives::Prefix, Survives::Sectors, Survives::Sectors]
        {
            let image = crash(self.base, ops, survives, self.rng);
            self.count += 1;
            self.bad += usize::from(!shows_one_of(&image, states));
        }
    }

    /// The process opens the file that `earlier` left in the page cache and commits once.
    fn in_process_after(&mut self, earlier: &[Op], states: &[&Model]) {
        let disk = Arc::new(FileDisk::restarted(self.base, earlier.to_vec()));
        let db: Db = open(disk.clone()).expect("a restart opens the file");
        let opened = disk.op_count();
        let found = contents(&db.begin_read());
        assert!(states.contains(&&found), "a restart finds the state before or after");
        let mut next = found.clone();
        work(&db, &mut next, self.rng).expect("work");
        let ops = disk.ops();
        (earlier.len()..opened).for_each(|point| self.at(&ops[..point], states));
        (opened..ops.len()).for_each(|point| self.at(&ops[..point], &[&found, &next]));
        self.at(&ops, &[&next]);
    }
}

#[test]
fn a_restart_on_the_page_cache_survives_a_power_failure() {
    let mut rng = Random::new(97);
    let mut model = Model::new();
    let mut image = Vec::new();
    let (mut count, mut bad) = (0, 0);
    for _ in seeds(3) {
        let disk = Arc::new(FileDisk::new(&image));
        let db = open(disk.clone()).expect("open");
        let opened = disk.op_count();
        let before = model.clone();
        work(&db, &mut model, &mut rng).expect("work");
        let endings = endings(&disk.ops(), opened, &mut rng);
        let mut failures = PowerFailures { base: &image, rng: &mut rng, count: 0, bad: 0 };
        endings.iter().for_each(|ending| failures.in_process_after(ending, &[&before, &model]));
        (count, bad) = (count + failures.count, bad + failures.bad);
        drop(db);
        image = disk.image();
    }
    println!("{count} power failures");
    assert_eq!(bad, 0, "bad files of {count} power failures");
}

/// The sync at the start may fail as well; the start after that must not trust the page cache either.
#[test]
fn a_sync_that_fails_at_the_start_is_made_up_for_by_the_next_start() {
    let mut rng = Random::new(5);
    let first = Arc::new(FileDisk::new(&[]));
    let mut model = Model::new();
    let db = open(first.clone()).expect("open");
    work(&db, &mut model, &mut rng).expect("work");
    // The last operation is the sync of the meta page.
    let mut ops = first.ops();
    ops.pop();
    for fault in [SyncFault::Keeps, SyncFault::Drops { lost: !0 }] {
        let second = Arc::new(FileDisk::restarted(&[], ops.clone()));
        second.fail_sync_after(0, fault);
        assert!(open(second.clone()).is_err(), "{fault:?}");
        let third = Arc::new(FileDisk::restarted(&[], second.ops()));
        let db = open(third.clone()).expect("open");
        assert!(contents(&db.begin_read()) == model, "{fault:?}");
        let image = crash(&[], &third.ops(), Survives::Nothing, &mut rng);
        assert!(shows_one_of(&image, &[&model]), "{fault:?}");
    }
}
