//! What a data dir holds: its database and its log, looked at without changing either.

mod log;
mod starts;

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use membership::{Cluster, ClusterId, MemberId};
use node::{
    DataDir,
    offline::cluster_of,
    swap::{self, Recovered},
};
use serde_json::json;
use storage::{
    Backend, ReadOnly,
    schema::{
        self, Version,
        table::ROWS,
        version::{Found, V3_5, detect},
    },
};

use wal::Wal;

pub(crate) use log::{LogSurvey, Need};
pub(crate) use starts::{RELEASES, may_start};

use crate::{
    failure::{open_error, path_error},
    log as lines,
};

/// A data dir. While this lives, no server starts on it.
pub(crate) struct Survey {
    pub dir: DataDir,
    pub file: ReadOnly,
    /// Device and inode of `db`.
    identity: (u64, u64),
    /// The lock of `db`, where `file` is another one.
    _replaced: Option<ReadOnly>,
    /// The database: `db`, or a received one that the log says is to take its place.
    pub database: PathBuf,
    pub found: Found,
    pub storage: Option<Version>,
    pub cluster: Cluster,
    /// Index and term of the last entry in the database.
    pub applied: (u64, u64),
    pub authenticates: bool,
    /// Cluster features that are on.
    pub features: Vec<String>,
    /// Keys in the database that are newer than its version.
    pub newer_keys: Vec<String>,
    pub log: LogSurvey,
    /// Whether the log, with the `.snap` files, is enough for releases that start from those.
    pub starts_from_snap: bool,
}

impl Survey {
    /// Looks at a dir, after finishing or undoing a migration that was cut off there.
    pub(crate) fn look(dir: &DataDir, lock_timeout: Option<Duration>) -> anyhow::Result<Survey> {
        settle(dir)?;
        if !dir.db().exists() {
            bail!("{} is not there: {} is no data dir of a member", dir.db().display(), dir.root().display());
        }
        // Taken before the lock: a database that replaces this one until then is noticed in `check_in_place`.
        let identity = identity(&dir.db())?;
        // The lock comes first: what is looked at next must not change.
        let mut file = Backend::open_read_only(&dir.db(), lock_timeout).map_err(open_error)?;
        if !Wal::exists(&dir.wal()) {
            bail!("there is no log in {}; give its directory with --wal-dir", dir.wal().display());
        }
        let mut replaced = None;
        let log = LogSurvey::look(&dir.wal()).with_context(|| format!("failed to read the log of {}", dir.words()))?;
        let mut database = dir.db();
        let (index, _) = schema::meta::consistent(&file.view())?;
        if index < log.at.index() {
            database = dir.received(log.at.index());
            if !database.exists() {
                bail!(
                    "database file ({} index {index}) does not match with snapshot (index {})",
                    dir.db().display(),
                    log.at.index()
                );
            }
            let received = Backend::open_read_only(&database, lock_timeout).map_err(open_error)?;
            replaced = Some(std::mem::replace(&mut file, received));
        }
        let view = file.view();
        let applied = schema::meta::consistent(&view)?;
        log.judge(applied.0)?;
        let (id, local) = (ClusterId(log.metadata.cluster_id), MemberId(log.metadata.node_id));
        let cluster = cluster_of(&view, id, local)?;
        let found = detect(&view)?;
        let at = match found {
            Found::At(version) => version,
            _ => V3_5,
        };
        let newer = ROWS.iter().filter(|row| row.since > at && schema::migrate::count(&view, row) > 0);
        let newer_keys = newer.map(|row| format!("{}/{} ({})", row.bucket.name(), row.key, row.since)).collect();
        let survey = Survey {
            database,
            found,
            storage: schema::meta::storage_version(&view)?,
            applied,
            authenticates: schema::auth::enabled(&view),
            features: schema::gate::load(&view)?.gate.map(|gate| gate.enabled).unwrap_or_default(),
            newer_keys,
            starts_from_snap: starts::has_snap(&dir.snap(), &log),
            dir: dir.clone(),
            cluster,
            file,
            identity,
            _replaced: replaced,
            log,
        };
        Ok(survey)
    }

    /// Refuses a database in place that is not the one that was looked at. Two migrations may look at the same one,
    /// since the lock of readers is shared; the second one to begin must not go on with a plan for files that are gone.
    pub(crate) fn check_in_place(&self) -> anyhow::Result<()> {
        if identity(&self.dir.db())? != self.identity {
            bail!("{} was replaced by another migration meanwhile; start this one again", self.dir.db().display());
        }
        Ok(())
    }

    /// The version the dir is at by its file.
    pub(crate) fn version(&self) -> Option<Version> {
        match self.found {
            Found::At(version) => Some(version),
            _ => None,
        }
    }

    /// Entries up to here are known to be committed.
    pub(crate) fn commit(&self) -> u64 {
        self.log.commit.max(self.applied.0)
    }

    /// The lowest release that can read the dir: its file, its cluster version and its log.
    pub(crate) fn needs(&self) -> Version {
        let file = self.version().or(self.cluster.version()).unwrap_or(V3_5);
        let log = self.log.newest.map_or(V3_5, |(version, _)| version);
        file.max(self.cluster.version().unwrap_or(V3_5)).max(log).max(V3_5)
    }
}

/// Finishes or undoes a migration that was cut off.
pub(crate) fn settle(dir: &DataDir) -> anyhow::Result<()> {
    let recovered = swap::recover(dir)?;
    let told = match recovered {
        Recovered::Nothing => return Ok(()),
        Recovered::Finished => "finished a migration that was cut off",
        Recovered::Cleared => "removed what a migration left that was cut off",
    };
    lines::info(told, &[("data-dir", json!(dir.root()))]);
    Ok(())
}

/// The data dir that a command line names.
pub(crate) fn named(data_dir: &Path, wal_dir: Option<&PathBuf>) -> DataDir {
    DataDir::new(data_dir, wal_dir.filter(|dir| !dir.as_os_str().is_empty()).cloned())
}

fn identity(path: &Path) -> anyhow::Result<(u64, u64)> {
    let found = std::fs::metadata(path).map_err(|error| path_error("stat", path, &error))?;
    Ok((found.dev(), found.ino()))
}
