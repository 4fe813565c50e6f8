//! Where the new data dir is made, and how it gets its name.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use node::DataDir;

use super::Plan;

/// Directories under temporary names. What has not got its real name when this is dropped is removed.
pub(super) struct Target {
    pub dir: DataDir,
    /// The new data dir; inside the real one if that exists, which may be the root of a disk of its own.
    root: PathBuf,
    inside: bool,
    /// The new log, if it goes elsewhere.
    wal: Option<PathBuf>,
}

/// Refuses to write where something is.
pub(super) fn check_free(plan: &Plan) -> anyhow::Result<()> {
    let empty = match fs::read_dir(&plan.data_dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if !empty {
        bail!("data-dir {:?} not empty or could not be read", plan.data_dir.display().to_string());
    }
    match &plan.wal_dir {
        Some(dir) if fs::symlink_metadata(dir).is_ok() => bail!("wal-dir {:?} exists", dir.display().to_string()),
        _ => Ok(()),
    }
}

impl Target {
    pub(super) fn begin(plan: &Plan) -> anyhow::Result<Target> {
        let inside = plan.data_dir.exists();
        let root = if inside { plan.data_dir.join(temporary("member")) } else { beside(&plan.data_dir) };
        let wal = plan.wal_dir.as_deref().map(beside);
        let dir = DataDir::new(&root, wal.clone());
        // From here on what is there is removed again.
        let target = Target { dir, root, inside, wal };
        create_all(&target.dir.snap())?;
        if let Some(parent) = target.dir.wal().parent() {
            create_all(parent)?;
        }
        Ok(target)
    }

    /// Makes the directories durable and gives them their names: the log first, since nothing starts without the
    /// database.
    pub(super) fn finish(mut self, plan: &Plan) -> anyhow::Result<()> {
        for dir in [self.dir.wal(), self.dir.snap(), self.dir.member(), self.root.clone()] {
            sync(&dir)?;
        }
        let named_wal = self.wal.take().zip(plan.wal_dir.as_deref());
        if let Some((from, to)) = &named_wal {
            rename(from, to)?;
        }
        let renamed = if self.inside {
            rename(&self.dir.member(), &plan.data_dir.join("member"))
        } else {
            rename(&self.root, &plan.data_dir)
        };
        if renamed.is_err()
            && let Some((_, wal)) = &named_wal
        {
            remove(wal);
        }
        renamed
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        remove(&self.root);
        self.wal.as_deref().map(remove);
    }
}

fn temporary(name: &str) -> String {
    format!(".{name}.restore-{}", std::process::id())
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    parent(path).join(temporary(&name))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn create_all(dir: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.with_context(|| format!("failed to create {}", dir.display()))
}

fn rename(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::rename(from, to).with_context(|| format!("failed to rename {} to {}", from.display(), to.display()))?;
    sync(parent(to))
}

fn sync(dir: &Path) -> anyhow::Result<()> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.with_context(|| format!("failed to sync {}", dir.display()))
}

fn remove(dir: &Path) {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            eprintln!("Warning: failed to remove {}: {error}", dir.display());
        }
        _ => {}
    }
}
