//! A process dies, or a sync fails and ends it; the next one starts on the page cache; then the power fails.

use crate::{
    crash::{Action, Model, OPTIONS, Run, check, dir, open, run},
    support,
};

use std::sync::Arc;

use memdisk::{MemDisk, SyncFault};
use support::{after_crash, fail_after, new_disk, origin};
use wal::{Error, Wal};

/// Saves that fill several segments. Some saves only change the commit index, which is not synced.
fn actions() -> Vec<Action> {
    let save = |sizes: &[u16]| Action::Save { back: 0, bump: 0, sizes: sizes.to_vec(), byte: 3 };
    (0..12).flat_map(|i| [save(&[100 * i, 40, 700]), Action::Commit]).collect()
}

/// How the first process ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// At an operation of the disk. Of a write all bytes are done, or whole sectors, about half of them.
    Killed { operation: u64, writes_all: bool },
    /// After a sync that returned an error.
    FailedSync { sync: u64, fault: SyncFault },
}

fn ends() -> Vec<End> {
    let disk = new_disk();
    assert!(run(&disk, &actions()).failed.is_none());
    assert!(disk.paths().len() >= 3, "the run must cut");
    let operations = disk.power().operations();
    let kills = |operation| [false, true].map(|writes_all| End::Killed { operation, writes_all });
    let killed = (0..operations).flat_map(kills);
    let faults = [SyncFault::Keeps, SyncFault::Drops { lost: !0 }, SyncFault::Drops { lost: 0x5555_5555_5555_5555 }];
    let failed = (0..operations).flat_map(|sync| faults.map(|fault| End::FailedSync { sync, fault }));
    killed.chain(failed).collect()
}

/// The disk as the next process finds it; `None` if the end is after the last action.
fn ended(end: End) -> Option<(MemDisk, Run)> {
    let disk = new_disk();
    match end {
        End::Killed { operation, writes_all: true } => fail_after(&disk, operation, usize::MAX),
        End::Killed { operation, writes_all: false } => disk.power().cut_after(operation + 1),
        End::FailedSync { sync, fault } => disk.fail_sync_after(sync, fault),
    }
    let first = run(&disk, &actions());
    first.failed.as_ref()?;
    disk.power().restore();
    Some((disk, first))
}

/// The next process: what it reads, with what it saves and syncs. `None` if the first one did not finish creating the
/// log.
fn next_process(disk: &MemDisk, first: &Run, saves: bool) -> Option<Model> {
    let (mut wal, mut model) = match Wal::open_on(Arc::new(disk.clone()), dir(), &origin(), OPTIONS) {
        Ok((wal, all)) => (wal, Model { entries: all.entries, state: all.hard_state }),
        Err(Error::FileNotFound { .. }) => return None,
        Err(error) => panic!("the restart: {error}"),
    };
    check(&model, &first.synced, &first.handed);
    if saves {
        let (state, entries) = model.next(&Action::Save { back: 0, bump: 1, sizes: vec![30, 900, 20], byte: 8 });
        wal.save(state.as_ref(), &entries).unwrap();
    }
    Some(model)
}

fn still_has(disk: &MemDisk, model: &Model) -> bool {
    let opened = Wal::open_on(Arc::new(disk.clone()), dir(), &origin(), OPTIONS);
    opened.is_ok_and(|(_, all)| all.entries == model.entries && all.hard_state == model.state)
}

#[test]
fn what_a_restart_reads_from_the_page_cache_survives_a_power_failure() {
    let (mut count, mut bad) = (0, Vec::new());
    for end in ends() {
        for saves in [false, true] {
            let Some((disk, first)) = ended(end) else { continue };
            let Some(model) = next_process(&disk, &first, saves) else { continue };
            for odd in [false, true] {
                let mut turn = false;
                let after = after_crash(&disk, || {
                    turn = odd && !turn;
                    turn
                });
                count += 1;
                if !still_has(&after, &model) {
                    bad.push((end, saves, odd));
                }
            }
        }
    }
    println!("{count} power failures");
    let sample = &bad[..bad.len().min(5)];
    assert!(
        bad.is_empty(),
        "{} of {count} power failures lost what a restart relied on, such as {sample:?}",
        bad.len()
    );
}

/// The rewrite at the start may be cut off, or its sync may fail; the start after that must not trust the page cache.
#[test]
fn a_start_that_fails_is_made_up_for_by_the_next_one() {
    let lost = SyncFault::Drops { lost: !0 };
    let unsynced = || {
        let disk = new_disk();
        disk.fail_sync_after(6, lost);
        let first = run(&disk, &actions());
        assert!(first.failed.is_some() && !first.synced.entries.is_empty());
        (disk, first)
    };
    let open_once = |disk: &MemDisk| Wal::open_on(Arc::new(disk.clone()), dir(), &origin(), OPTIONS).map(drop);
    let (disk, first) = unsynced();
    disk.fail_sync_after(0, lost);
    open_once(&disk).unwrap_err();
    let model = next_process(&disk, &first, false).unwrap();
    assert!(still_has(&after_crash(&disk, || false), &model));
    for operation in 0.. {
        let (disk, first) = unsynced();
        fail_after(&disk, operation, 5);
        let whole = open_once(&disk).is_ok();
        for keep in [false, true] {
            check(&open(&after_crash(&disk, || keep)).1, &first.synced, &first.handed);
        }
        if whole {
            break;
        }
    }
}
