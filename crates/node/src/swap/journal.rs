//! The swap in steps, each of which can be cut off and done again: old database out, old files out, new files in, new
//! database in, journal away.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use failpoint::failpoint;
use serde::{Deserialize, Serialize};

use super::{
    STAGING, SwapError,
    files::{self, create, failed, move_to, remove, rename, sync, write_synced},
};
use crate::data_dir::DataDir;

const JOURNAL: &str = "journal.json";
/// The old database, out of every etcd's sight.
const PARKED: &str = "parked.db";
const OLD_SNAP_OUT: &str = "old-snap-out";
const OLD_WAL_OUT: &str = "old-wal-out";
const DB: &str = "db";
/// An empty segment that stands for the log while neither the old nor the new one is in place: an etcd that found no
/// log and no database would begin a new cluster.
const NO_LOG_YET: &str = "ffffffffffffffff-ffffffffffffffff.wal";

/// That the new files are whole and shall be in place; and where.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The log's directory, if it is not under `member`.
    pub wal: Option<PathBuf>,
}

impl Journal {
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn from_json(json: &[u8]) -> serde_json::Result<Journal> {
        serde_json::from_slice(json)
    }

    pub(super) fn write(&self, root: &Path) -> Result<(), SwapError> {
        write_synced(&root.join(JOURNAL), &self.to_json())
    }

    pub(super) fn read(root: &Path) -> Result<Option<Journal>, SwapError> {
        let path = root.join(JOURNAL);
        match fs::read(&path) {
            Ok(json) => {
                let why = |error: serde_json::Error| SwapError::Journal { path, why: error.to_string() };
                Journal::from_json(&json).map(Some).map_err(why)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(SwapError::Io { what: "read", path, source }),
        }
    }
}

pub(super) fn parked(root: &Path) -> PathBuf {
    root.join(PARKED)
}

/// Where everything is while files move.
struct Places {
    dir: DataDir,
    new: DataDir,
    root: PathBuf,
    wal: PathBuf,
    new_wal: PathBuf,
    old_wal: PathBuf,
}

/// Whether a name is one that a log gives its files. A log directory that is the root of a disk has other files too.
fn is_of_log(name: &str) -> bool {
    name.ends_with(".wal") || name.ends_with(".tmp")
}

/// Checks before the journal is written that the files of the old log can be moved.
pub(super) fn check_movable(wal: &Path) -> Result<(), SwapError> {
    files::check_movable(wal, is_of_log)
}

type Step = fn(&Places) -> Result<(), SwapError>;

/// In this order. Each may be cut off anywhere, and does what is left when it is done again.
const STEPS: &[Step] = &[park, old_snap_out, old_wal_out, new_wal_in, new_snap_in, database_in, journal_away];

/// Does all steps that are not done yet.
pub(super) fn finish(dir: &DataDir, root: &Path) -> Result<(), SwapError> {
    let places = Places::find(dir, root)?;
    STEPS.iter().try_for_each(|step| step(&places))
}

/// As if the process had ended after so many steps. False if there are no more.
#[cfg(test)]
pub(super) fn finish_only(dir: &DataDir, root: &Path, steps: usize) -> Result<bool, SwapError> {
    let places = Places::find(dir, root)?;
    STEPS.iter().take(steps).try_for_each(|step| step(&places))?;
    Ok(steps < STEPS.len())
}

impl Places {
    fn find(dir: &DataDir, root: &Path) -> Result<Places, SwapError> {
        let gone = || SwapError::Journal { path: root.join(JOURNAL), why: "it is gone".into() };
        let journal = Journal::read(root)?.ok_or_else(gone)?;
        let new = DataDir::new(root, None);
        let (wal, new_wal, old_wal) = match journal.wal {
            Some(wal) => {
                let staging = wal.join(STAGING);
                (wal, staging.join("new"), staging.join("old"))
            }
            None => (dir.member().join("wal"), new.member().join("wal"), root.join("old/wal")),
        };
        Ok(Places { dir: dir.clone(), new, root: root.into(), wal, new_wal, old_wal })
    }
}

/// From here on no etcd starts on the dir, as there is a log and no database.
fn park(at: &Places) -> Result<(), SwapError> {
    let parked = parked(&at.root);
    if !parked.exists() {
        rename(&at.dir.db(), &parked)?;
    }
    sync(&at.root)?;
    sync(&at.dir.snap())?;
    failpoint!("migrateAfterPark");
    Ok(())
}

fn old_snap_out(at: &Places) -> Result<(), SwapError> {
    once(&at.root.join(OLD_SNAP_OUT), || {
        let old = at.root.join("old/snap");
        create(&old)?;
        move_to(&at.dir.snap(), &old, |_| false)
    })?;
    failpoint!("migrateAfterOldSnap");
    Ok(())
}

fn old_wal_out(at: &Places) -> Result<(), SwapError> {
    once(&at.root.join(OLD_WAL_OUT), || {
        create(&at.old_wal)?;
        write_synced(&at.wal.join(NO_LOG_YET), b"")?;
        move_to(&at.wal, &at.old_wal, |name| name == NO_LOG_YET || !is_of_log(name))
    })?;
    failpoint!("migrateAfterOldLog");
    Ok(())
}

fn new_wal_in(at: &Places) -> Result<(), SwapError> {
    move_to(&at.new_wal, &at.wal, |_| false)?;
    remove(&at.wal.join(NO_LOG_YET))?;
    sync(&at.wal)?;
    failpoint!("migrateAfterNewLog");
    Ok(())
}

fn new_snap_in(at: &Places) -> Result<(), SwapError> {
    move_to(&at.new.snap(), &at.dir.snap(), |name| name == DB)?;
    failpoint!("migrateAfterNewSnap");
    Ok(())
}

/// The last step that counts: from here on the dir is a whole one.
fn database_in(at: &Places) -> Result<(), SwapError> {
    let (new, path) = (at.new.db(), at.dir.db());
    if new.exists() {
        if path.exists() {
            return Err(SwapError::Foreign { path });
        }
        rename(&new, &path)?;
    }
    sync(&at.dir.snap())?;
    failpoint!("migrateAfterDatabase");
    Ok(())
}

fn journal_away(at: &Places) -> Result<(), SwapError> {
    fs::remove_file(at.root.join(JOURNAL)).map_err(failed("remove", &at.root))?;
    sync(&at.root)
}

/// Moves whose result looks like their beginning are known to be done by a mark.
fn once(mark: &Path, work: impl FnOnce() -> Result<(), SwapError>) -> Result<(), SwapError> {
    if mark.exists() {
        return Ok(());
    }
    work()?;
    write_synced(mark, b"")
}
