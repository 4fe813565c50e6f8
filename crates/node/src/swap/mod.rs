//! A copy of a member's files, made beside them and put in their place in one step.
//!
//! Everything new is made under `<data-dir>/.migrate`, which is locked while someone works there. Then:
//!
//! - With the log in the data dir, `member` and `.migrate/member` change places in one rename. Before it the old files are
//!   in place, after it the new ones.
//! - With the log elsewhere, or where the file system cannot exchange, a journal is written first. From then on the files
//!   are moved one by one (see `journal.rs`), the old database away first and the new one in place last: between, no etcd
//!   starts, as there is a log (if only an empty segment) and no database. [`recover`] goes on where a crash has cut
//!   that off.
//!
//! **Invariant:** without a journal the files under `member` are whole; with one, `recover` makes them so.

mod files;
mod journal;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use failpoint::failpoint;

use crate::data_dir::DataDir;
use files::{create, remove_all, sync, write_synced};
use journal::Journal;

/// Under the data dir, and in a log directory that is elsewhere.
const STAGING: &str = ".migrate";
const ABOUT: &str = "about.json";

#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    #[error("failed to {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is in use: a migration of this data dir is under way; wait for its end", path.display())]
    Running { path: PathBuf },
    #[error(
        "{} is a link or a disk of its own, so it cannot be replaced as a whole: \
         link or mount the data dir or the log's directory instead", path.display()
    )]
    NotReplaceable { path: PathBuf },
    #[error(
        "{} has the name of a file of the log, but it is not a file in the log's directory, and cannot be moved with the \
         log: move it away",
        path.display()
    )]
    NotMovable { path: PathBuf },
    #[error("{} cannot be read: {why}; a migration was cut off there and cannot be finished", path.display())]
    Journal { path: PathBuf, why: String },
    #[error(
        "a migration of this data dir was cut off, and since then something has written {}: \
         move that file away, and this finishes the migration", path.display()
    )]
    Foreign { path: PathBuf },
}

impl SwapError {
    fn is_missing(&self) -> bool {
        matches!(self, SwapError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// What [`recover`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    Nothing,
    /// The new files are in place.
    Finished,
    /// The files in place were whole: the old ones, or the new ones if they had changed places already. What else was
    /// there is gone.
    Cleared,
}

/// A place for new files. Dropped before [`Staging::commit`], it leaves nothing.
pub struct Staging {
    dir: DataDir,
    root: PathBuf,
    /// Where the log is, if that is not under `member`.
    wal_apart: Option<PathBuf>,
    /// Held for as long as someone works here.
    _lock: DirLock,
    done: bool,
}

impl Staging {
    /// Makes the place. The caller has called [`recover`] before.
    pub fn begin(dir: &DataDir) -> Result<Staging, SwapError> {
        let wal_apart = wal_apart(dir)?;
        let root = dir.root().join(STAGING);
        create(&root)?;
        let lock = lock(&root)?;
        let about = Journal { wal: wal_apart.clone() };
        write_synced(&root.join(ABOUT), &about.to_json())?;
        let staging = Staging { dir: dir.clone(), root, wal_apart, _lock: lock, done: false };
        if let Some(wal) = &staging.wal_apart {
            journal::check_movable(wal)?;
        }
        create(&staging.new_dir().snap())?;
        if let Some(wal) = &staging.wal_apart {
            create(&wal.join(STAGING))?;
        }
        failpoint!("migrateAfterStaging");
        Ok(staging)
    }

    /// Where the new files go: a data dir of its own.
    pub fn new_dir(&self) -> DataDir {
        let wal = self.wal_apart.as_ref().map(|wal| wal.join(STAGING).join("new"));
        DataDir::new(&self.root, wal)
    }

    /// Puts the new files in place, for good. An error leaves the old ones, or a journal for [`recover`].
    pub fn commit(mut self) -> Result<(), SwapError> {
        let new = self.new_dir();
        for dir in [new.wal(), new.snap(), new.member(), self.root.clone()] {
            sync(&dir)?;
        }
        failpoint!("migrateBeforeSwap");
        if self.wal_apart.is_none() && exchange(&self.dir.member(), &new.member())? {
            sync(self.dir.root())?;
            sync(&self.root)?;
            failpoint!("migrateAfterExchange");
            spoil(&new.db());
        } else {
            Journal { wal: self.wal_apart.clone() }.write(&self.root)?;
            self.done = true;
            failpoint!("migrateAfterJournal");
            journal::finish(&self.dir, &self.root)?;
            spoil(&journal::parked(&self.root));
        }
        self.done = true;
        failpoint!("migrateBeforeCleanUp");
        clean_up(&self.root, self.wal_apart.as_deref());
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.done {
            clean_up(&self.root, self.wal_apart.as_deref());
        }
    }
}

/// Brings a data dir whose migration was cut off to one of its two ends. Called before anything else looks at the dir.
pub fn recover(dir: &DataDir) -> Result<Recovered, SwapError> {
    let root = dir.root().join(STAGING);
    if !root.exists() {
        return Ok(Recovered::Nothing);
    }
    let _lock = match lock(&root) {
        // The migration that was under way has just ended.
        Err(error) if error.is_missing() => return Ok(Recovered::Nothing),
        locked => locked?,
    };
    if let Some(journal) = Journal::read(&root)? {
        tracing::warn!(path = %root.display(), "finishing a migration that was cut off");
        // The process that wrote the journal may have died before it synced the name.
        sync(&root)?;
        journal::finish(dir, &root)?;
        clean_up(&root, journal.wal.as_deref());
        return Ok(Recovered::Finished);
    }
    tracing::warn!(path = %root.display(), "removing what a migration left that was cut off");
    let about = fs::read(root.join(ABOUT)).ok().and_then(|json| Journal::from_json(&json).ok());
    clean_up(&root, about.and_then(|about| about.wal).as_deref());
    Ok(Recovered::Cleared)
}

/// [`recover`], but waits for the end of a migration that is under way.
#[expect(clippy::disallowed_methods, reason = "a migration is another process, which the simulator does not have")]
pub(crate) fn recover_after_end(dir: &DataDir) -> Result<Recovered, SwapError> {
    const POLL: Duration = Duration::from_millis(50);
    let mut waits = false;
    loop {
        match recover(dir) {
            Err(SwapError::Running { path }) => {
                if !std::mem::replace(&mut waits, true) {
                    tracing::info!(path = %path.display(), "waiting for the end of a migration of this data dir");
                }
                std::thread::sleep(POLL);
            }
            ended => return ended,
        }
    }
}

/// Whether a migration is under way, or ended in the middle of its swap. A caller that has locked the database in place
/// may rely on the answer `false`: every migration takes that lock first.
pub(crate) fn is_pending(dir: &DataDir) -> Result<bool, SwapError> {
    let root = dir.root().join(STAGING);
    match lock(&root) {
        Ok(_lock) => Ok(Journal::read(&root)?.is_some()),
        Err(SwapError::Running { .. }) => Ok(true),
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The log's directory, if it is not simply `member/wal`: elsewhere by `--wal-dir`, by a link or by a mount.
fn wal_apart(dir: &DataDir) -> Result<Option<PathBuf>, SwapError> {
    let stat = |path: &Path| {
        fs::symlink_metadata(path).map_err(|source| SwapError::Io { what: "look at", path: path.into(), source })
    };
    // The data dir itself may be a link or a mount point.
    let root = fs::metadata(dir.root());
    let disk = root.map_err(|source| SwapError::Io { what: "look at", path: dir.root().into(), source })?.dev();
    for path in [dir.member(), dir.snap()] {
        let found = stat(&path)?;
        if !found.is_dir() || found.dev() != disk {
            return Err(SwapError::NotReplaceable { path });
        }
    }
    let path = dir.wal();
    let real = fs::canonicalize(&path).map_err(|source| SwapError::Io { what: "look at", path, source })?;
    let inside = dir.member().join("wal");
    // By whatever name it was given, it may be the one inside; and that may be a link or a mount.
    let goes_along = stat(&inside).is_ok_and(|found| found.is_dir() && found.dev() == disk)
        && fs::canonicalize(&inside).is_ok_and(|inside| inside == real);
    Ok((!goes_along).then_some(real))
}

/// A locked directory. Dropping it releases the lock.
struct DirLock(File);

impl Drop for DirLock {
    /// Closing the directory would not be enough: a child process that another thread is just starting holds a copy of
    /// every descriptor until it executes its program, and with it the lock.
    fn drop(&mut self) {
        // If this fails, closing the directory releases the lock.
        let _ = self.0.unlock();
    }
}

fn lock(root: &Path) -> Result<DirLock, SwapError> {
    let file = File::open(root).map_err(|source| SwapError::Io { what: "open", path: root.into(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(DirLock(file)),
        Err(fs::TryLockError::WouldBlock) => Err(SwapError::Running { path: root.into() }),
        Err(fs::TryLockError::Error(source)) => Err(SwapError::Io { what: "lock", path: root.into(), source }),
    }
}

/// False where the file system cannot do it.
fn exchange(a: &Path, b: &Path) -> Result<bool, SwapError> {
    failpoint!("migrateNoExchange", || return Ok(false));
    use rustix::{
        fs::{CWD, RenameFlags, renameat_with},
        io::Errno,
    };
    match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(source) => Err(SwapError::Io { what: "exchange", path: a.into(), source: source.into() }),
    }
}

/// An etcd that was started meanwhile waits for the lock of the old database, and would go on with that: it must find
/// it unusable, and end.
fn spoil(db: &Path) {
    // With both meta pages gone a file is no database any more, whatever its page size is.
    let meta_pages = vec![0xff; 2 << 16];
    let spoilt = File::options().write(true).open(db).and_then(|mut file| {
        let bytes = file.metadata()?.len().min(meta_pages.len() as u64) as usize;
        file.write_all(&meta_pages[..bytes])
    });
    if let Err(error) = spoilt {
        tracing::warn!(path = %db.display(), %error, "failed to mark the old database as replaced");
    }
}

/// What is left now is of no use to anyone.
fn clean_up(root: &Path, wal_apart: Option<&Path>) {
    // The log's part first: the other one says where it is.
    if let Some(wal) = wal_apart {
        remove_all(&wal.join(STAGING));
    }
    remove_all(root);
}
