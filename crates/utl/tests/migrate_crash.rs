//! `migrate` interrupted at every failpoint: the dir is the old one or the new one, and a second run succeeds.
//!
//! Needs `cargo test -p utl --features failpoints migrate_crash::`; says so and passes otherwise.

use std::{path::Path, process::Command};

use failpoint::{NAMES, Place};
use harness::{Output, tempdir};
use node::{
    DataDir,
    swap::{Recovered, recover},
};
use proto::Version;

use crate::support::{self, lockgateutl, made};

/// The place of the log, and whether the file system can exchange directories.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Exchange,
    NoExchange,
    LogApart,
}

fn enabled() -> bool {
    if !failpoint::ENABLED {
        eprintln!("SKIPPED: failpoints are not compiled in; add --features failpoints");
    }
    failpoint::ENABLED
}

fn points() -> impl Iterator<Item = &'static str> {
    let migrate = NAMES.iter().filter(|(name, place)| *place == Place::Here && name.starts_with("migrate"));
    migrate.map(|(name, _)| *name).filter(|name| *name != "migrateNoExchange")
}

fn run(dir: &DataDir, words: &[&str], failpoints: &str) -> (Option<i32>, String) {
    let place = dir.words();
    let words = words.iter().copied().chain(place.split(' '));
    let output = Output::of(Command::new(lockgateutl()).args(words).env("GOFAIL_FAILPOINTS", failpoints));
    (output.code, output.stdout + &output.stderr)
}

fn migrate(dir: &DataDir, target: &str, failpoints: &str) -> (Option<i32>, String) {
    run(dir, &["migrate", "-y", "--target-version", target], failpoints)
}

fn hash(dir: &DataDir) -> u32 {
    let file = storage::Backend::open_read_only(&dir.db(), None).unwrap();
    mvcc::hash_file(&file.view(), 0, &mut |_| ()).unwrap().hash
}

/// A dir at 3.8, with entries in the log that are committed and not in the database.
fn begin(root: &Path, kind: Kind) -> (DataDir, u32) {
    let wal = (kind == Kind::LogApart).then(|| root.join("log"));
    let dir = made::dir(&root.join("data"), wal, &made::log_of_3_5(), 6);
    assert_eq!(migrate(&dir, "3.8", "").0, Some(0));
    let hash = hash(&dir);
    (dir, hash)
}

#[test]
fn an_interrupted_migration_leaves_the_old_dir_or_the_new_one() {
    if !enabled() {
        return;
    }
    for kind in [Kind::Exchange, Kind::NoExchange, Kind::LogApart] {
        let (mut hit, mut finished, mut cleared) = (0, 0, 0);
        for point in points() {
            let temp = tempdir();
            let (dir, before) = begin(temp.path(), kind);
            let exchange = if kind == Kind::NoExchange { "migrateNoExchange=return;" } else { "" };
            let (code, said) = migrate(&dir, "3.6", &format!("{exchange}{point}=panic"));
            if code == Some(0) {
                // This migration does not reach the point.
                assert_eq!(made::versions(&dir).1, Some(Version::new(3, 6)));
                continue;
            }
            assert_eq!(code, Some(2), "{kind:?} {point}: {said}");
            hit += 1;
            // The next start of a member or a tool does the same.
            let recovered = recover(&dir).unwrap();
            finished += usize::from(recovered == Recovered::Finished);
            cleared += usize::from(recovered == Recovered::Cleared);
            let (storage, cluster) = made::versions(&dir);
            assert_eq!(storage, cluster, "{kind:?} {point}");
            let is_old = storage == Some(Version::new(3, 8));
            assert!(is_old || storage == Some(Version::new(3, 6)), "{kind:?} {point}: {storage:?}");
            assert!(!(is_old && recovered == Recovered::Finished), "{kind:?} {point}");
            assert_eq!(hash(&dir), before, "{kind:?} {point}");
            let (code, said) = run(&dir, &["version"], "");
            assert_eq!(code, Some(0), "{kind:?} {point}: {said}");
            assert_eq!(migrate(&dir, "3.6", "").0, Some(0), "{kind:?} {point}");
            assert_eq!(made::versions(&dir).1, Some(Version::new(3, 6)));
            assert_eq!(hash(&dir), before, "{kind:?} {point}");
            assert_eq!(support::names(dir.root()), ["member"], "{kind:?} {point}");
        }
        eprintln!("{kind:?}: ended at {hit} points, {cleared} cleared, {finished} finished");
        assert!(hit >= 8, "{kind:?}: only {hit} points were met");
        assert_eq!(finished > 0, kind != Kind::Exchange, "{kind:?}");
    }
}

#[test]
fn committed_entries_are_applied_once_after_several_interruptions() {
    if !enabled() {
        return;
    }
    let temp = tempdir();
    let expected = {
        let dir = made::dir(&temp.path().join("whole"), None, &made::log_of_3_5(), 6);
        assert_eq!(migrate(&dir, "3.7", "").0, Some(0));
        hash(&dir)
    };
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    for point in ["migrateAfterApply", "migrateAfterSchema", "migrateAfterLog", "migrateBeforeSwap"] {
        assert_eq!(migrate(&dir, "3.7", &format!("{point}=panic")).0, Some(2), "{point}");
    }
    assert_eq!(migrate(&dir, "3.7", "").0, Some(0));
    assert_eq!(hash(&dir), expected);
}
