//! Power cuts and failing disks: what was acknowledged is there afterwards, whatever else is lost.

use crate::support;

use std::{path::Path, sync::Arc};

use memdisk::MemDisk;
use proptest::prelude::*;
use proto::raftpb::{Entry, HardState};
use support::{after_crash, entry, fail_after, new_disk, origin, snapshot, state};
use wal::{Error, Options, Wal};

pub(crate) const OPTIONS: Options = Options { segment_bytes: 3000, no_sync: false };

pub(crate) fn dir() -> &'static Path {
    Path::new("/data/wal")
}

/// A raft-like sequence of saves, and what a reader must find.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) entries: Vec<Entry>,
    pub(crate) state: HardState,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Drops `back` uncommitted entries, then adds one per size, in a term `bump` higher.
    Save {
        back: usize,
        bump: u64,
        sizes: Vec<u16>,
        byte: u8,
    },
    Commit,
    Snapshot,
    Reopen,
}

fn action() -> impl Strategy<Value = Action> {
    let sizes = prop::collection::vec(prop_oneof![4 => 0..200u16, 1 => 200..2500u16], 1..6);
    let save = (0..3usize, 0..2u64, sizes, prop_oneof![Just(0u8), any::<u8>()]);
    prop_oneof![
        6 => save.prop_map(|(back, bump, sizes, byte)| Action::Save { back, bump, sizes, byte }),
        3 => Just(Action::Commit),
        1 => Just(Action::Snapshot),
        1 => Just(Action::Reopen),
    ]
}

impl Model {
    /// Carries the action out on the model, and says what to save.
    pub(crate) fn next(&mut self, action: &Action) -> (Option<HardState>, Vec<Entry>) {
        let term = self.state.term().max(1);
        match action {
            Action::Save { back, bump, sizes, byte } => {
                let keep = self.entries.len().saturating_sub(*back).max(self.state.commit() as usize);
                // Only a new term replaces entries.
                let term = term + if keep < self.entries.len() { 1 } else { *bump };
                self.entries.truncate(keep);
                for size in sizes {
                    let index = self.entries.len() as u64 + 1;
                    self.entries.push(entry(term, index, vec![*byte; *size as usize]));
                }
                self.state = state(term, 7, self.state.commit());
                (Some(self.state), self.entries[keep..].to_vec())
            }
            Action::Commit => {
                self.state = state(term, 7, self.entries.len() as u64);
                (Some(self.state), Vec::new())
            }
            Action::Snapshot | Action::Reopen => (None, Vec::new()),
        }
    }
}

pub(crate) fn open(disk: &MemDisk) -> (Wal, Model) {
    let (wal, all) = Wal::open_on(Arc::new(disk.clone()), dir(), &origin(), OPTIONS).unwrap();
    (wal, Model { entries: all.entries, state: all.hard_state })
}

/// How far a run of actions came.
#[derive(Debug)]
pub(crate) struct Run {
    /// As of the last sync.
    pub(crate) synced: Model,
    /// With all that was handed over since.
    pub(crate) handed: Model,
    pub(crate) failed: Option<Error>,
}

pub(crate) fn run(disk: &MemDisk, actions: &[Action]) -> Run {
    let (mut synced, mut model) = (Model::default(), Model::default());
    let mut wal = match Wal::create_on(Arc::new(disk.clone()), dir(), b"\x08\x07\x10\x09", OPTIONS) {
        Ok(wal) => wal,
        Err(error) => return Run { synced, handed: model, failed: Some(error) },
    };
    for action in actions {
        let before = model.clone();
        let (state, entries) = model.next(action);
        let saved = match action {
            Action::Snapshot if before.state.commit() == 0 => continue,
            Action::Snapshot => wal.save_snapshot(&snapshot(before.state.commit(), before.state.term().max(1))),
            Action::Reopen => {
                drop(wal);
                let found;
                (wal, found) = open(disk);
                model = found;
                continue;
            }
            _ => wal.save(state.as_ref(), &entries),
        };
        match saved {
            Ok(saved) if saved.sync.is_some() => synced = model.clone(),
            Ok(_) => {}
            Err(error) => return Run { synced, handed: model, failed: Some(error) },
        }
    }
    Run { synced, handed: model, failed: None }
}

/// The log must hold the synced entries, except where the unsynced save replaced them, and nothing that was never saved.
pub(crate) fn check(found: &Model, synced: &Model, handed: &Model) {
    let common = handed.entries.iter().zip(&synced.entries).take_while(|(a, b)| a == b).count();
    assert!(found.entries.len() >= common, "{} of {common} entries", found.entries.len());
    for (position, entry) in found.entries.iter().enumerate() {
        let known = [synced.entries.get(position), handed.entries.get(position)];
        assert!(known.contains(&Some(entry)), "unknown entry {}", entry.index());
    }
    // Until the first replacing entry arrives, all synced ones are there.
    let replaced = found.entries.iter().zip(&synced.entries).any(|(a, b)| a != b);
    assert!(replaced || found.entries.len() >= synced.entries.len());
    assert!(found.state.term() >= synced.state.term() && found.state.commit() >= synced.state.commit());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_closed_log_reads_back(actions in prop::collection::vec(action(), 0..40)) {
        let disk = new_disk();
        let Run { synced, handed: model, failed } = run(&disk, &actions);
        prop_assert!(failed.is_none(), "{failed:?}");
        let (mut wal, _) = open(&disk);
        wal.sync().unwrap();
        drop(wal);
        let found = Wal::read_on(&disk, dir(), &origin()).unwrap();
        prop_assert!(found.torn.is_none());
        let found = Model { entries: found.entries, state: found.hard_state };
        check(&found, &synced, &model);
        prop_assert_eq!(found.entries, model.entries, "every save of entries is synced");
    }

    #[test]
    fn a_power_cut_loses_only_what_was_not_synced(
        actions in prop::collection::vec(action(), 1..25),
        last in prop::collection::vec(0..3000u16, 1..8),
        fail in 0..4u64,
        keep in prop::collection::vec(any::<bool>(), 64),
    ) {
        let disk = new_disk();
        let Run { synced, mut handed, failed } = run(&disk, &actions);
        prop_assert!(failed.is_none(), "{failed:?}");
        // One more batch, of which the disk fails some step: write, sync, truncate, ...
        let (mut wal, found) = open(&disk);
        check(&found, &synced, &handed);
        handed = found.clone();
        let synced = found;
        fail_after(&disk, fail, usize::MAX);
        let (state, entries) = handed.next(&Action::Save { back: 1, bump: 0, sizes: last, byte: 5 });
        let acknowledged = wal.save(state.as_ref(), &entries).is_ok();
        drop(wal);
        let mut keep = keep.into_iter().cycle();
        let after = after_crash(&disk, || keep.next().unwrap_or(true));
        let (mut wal, found) = open(&after);
        check(&found, if acknowledged { &handed } else { &synced }, &handed);
        // And the log goes on from there.
        let mut model = found;
        let (state, entries) = model.next(&Action::Save { back: 0, bump: 1, sizes: vec![3, 600], byte: 1 });
        wal.save(state.as_ref(), &entries).unwrap();
        drop(wal);
        prop_assert_eq!(open(&after).1.entries, model.entries);
    }
}

#[test]
fn a_failed_write_or_sync_ends_it() {
    for fail in 0..2 {
        let disk = new_disk();
        let mut wal = Wal::create_on(Arc::new(disk.clone()), dir(), b"", OPTIONS).unwrap();
        wal.save(Some(&state(1, 7, 0)), &[entry(1, 1, "good")]).unwrap();
        fail_after(&disk, fail, 11);
        let failed = wal.save(Some(&state(1, 7, 1)), &[entry(1, 2, "bad")]).unwrap_err();
        assert!(matches!(failed, Error::Io { .. }), "{failed}");
        disk.power().restore();
        assert!(matches!(wal.save(None, &[entry(1, 2, "bad")]), Err(Error::Poisoned { .. })));
        assert!(matches!(wal.sync(), Err(Error::Poisoned { .. })));
        assert!(matches!(wal.save_snapshot(&snapshot(1, 1)), Err(Error::Poisoned { .. })));
        wal.close().unwrap();
        let found = open(&after_crash(&disk, || false)).1;
        assert_eq!(found.entries, [entry(1, 1, "good")]);
    }
}

/// Every step of creating, saving and cutting fails once; the log opens with what was acknowledged.
#[test]
fn a_failure_at_any_step_loses_nothing_acknowledged() {
    let save = |sizes: &[u16]| Action::Save { back: 0, bump: 0, sizes: sizes.to_vec(), byte: 3 };
    let actions: Vec<_> = (0..12).flat_map(|i| [save(&[100 * i, 40]), Action::Commit]).collect();
    let disk = new_disk();
    assert!(run(&disk, &actions).failed.is_none());
    let steps = disk.power().operations();
    assert!(disk.paths().len() >= 3 && steps > 30, "the run must cut");
    for step in 0..steps {
        for lose in [false, true] {
            let disk = new_disk();
            fail_after(&disk, step, usize::MAX);
            let Run { synced, handed, failed } = run(&disk, &actions);
            assert!(matches!(failed, Some(Error::Io { .. })), "step {step}: {failed:?}");
            let after = after_crash(&disk, || !lose);
            match Wal::open_on(Arc::new(after), dir(), &origin(), OPTIONS) {
                Ok((_, all)) => check(&Model { entries: all.entries, state: all.hard_state }, &synced, &handed),
                // Creating failed before the log got its name.
                Err(Error::FileNotFound { .. }) => assert!(synced.entries.is_empty()),
                Err(error) => panic!("step {step}: {error}"),
            }
        }
    }
}
