//! The layout of a data dir, and whether a dir is one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// `<data-dir>/member/{snap,wal}`, with the log elsewhere if `--wal-dir` says so.
#[derive(Debug, Clone)]
pub struct DataDir {
    root: PathBuf,
    wal: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("cannot access data directory: {path} is not a directory; give another one with --data-dir")]
    NotADir { path: PathBuf },
    #[error(
        "{path} is not an etcd data dir: it holds {found} but no `member`; \
         give an empty or new directory with --data-dir"
    )]
    Foreign { path: PathBuf, found: String },
    #[error("cannot access data directory: failed to {what} {path}")]
    Access { what: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot write to {path}: {cause}; its owner and mode must allow this process to write")]
    NotWritable { path: PathBuf, cause: io::Error },
}

impl DataDir {
    pub fn new(root: impl Into<PathBuf>, wal: Option<PathBuf>) -> DataDir {
        DataDir { root: root.into(), wal }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn member(&self) -> PathBuf {
        self.root.join("member")
    }

    pub fn snap(&self) -> PathBuf {
        self.member().join("snap")
    }

    pub fn db(&self) -> PathBuf {
        self.snap().join("db")
    }

    /// Where the database that comes with the snapshot at `index` is put when it is complete.
    pub fn received(&self, index: u64) -> PathBuf {
        self.snap().join(format!("{index:016x}.snap.db"))
    }

    /// Removes received databases of an older index than the log's snapshot. Raft ignores those that come late or
    /// twice.
    pub(crate) fn remove_received_before(&self, index: u64) {
        let Ok(entries) = fs::read_dir(self.snap()) else { return };
        let is_old = |name: &str| {
            let number = name.strip_suffix(".snap.db").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            number.is_some_and(|number| number < index)
        };
        for entry in entries.filter_map(Result::ok).filter(|entry| is_old(&entry.file_name().to_string_lossy())) {
            remove(&entry.path(), "removed a received database that is not needed");
        }
    }

    pub fn wal(&self) -> PathBuf {
        self.wal.clone().unwrap_or_else(|| self.member().join("wal"))
    }

    /// As a command line names it.
    pub fn words(&self) -> String {
        let wal = self.wal.as_ref().map(|wal| format!(" --wal-dir {}", wal.display())).unwrap_or_default();
        format!("--data-dir {}{wal}", self.root.display())
    }

    /// Refuses what is not a data dir; changes nothing.
    pub fn check(&self) -> Result<(), DataDirError> {
        let path = self.root.clone();
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => return Err(DataDirError::NotADir { path }),
            Err(source) => return Err(DataDirError::Access { what: "read", path, source }),
        };
        let mut names: Vec<_> =
            entries.filter_map(Result::ok).map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name != "lost+found");
        if names.is_empty() || names.iter().any(|name| name == "member") {
            return Ok(());
        }
        names.sort_unstable();
        names.truncate(3);
        Err(DataDirError::Foreign { path, found: names.join(", ") })
    }

    /// Makes what is missing, and finds out whether this process can write there.
    pub fn create(&self) -> Result<(), DataDirError> {
        for path in [self.root.clone(), self.member(), self.snap()] {
            create_private(&path)?;
            check_writable(&path)?;
        }
        if let Some(parent) = self.wal().parent() {
            create_private(parent)?;
            check_writable(parent)?;
        }
        Ok(())
    }

    /// Removes what an interrupted run left behind: unfinished defragmentations, and received databases that are
    /// not needed any more once the file is at least as new as the log's snapshot.
    pub fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(self.snap()) else { return };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("tmp") || name.starts_with("db.tmp") || name.ends_with(".snap.db") {
                remove(&entry.path(), "removed an unfinished file");
            }
        }
    }
}

/// Removes a file. One that cannot be removed stays until the next start.
fn remove(path: &Path, done: &'static str) {
    match fs::remove_file(path) {
        Ok(()) => tracing::info!(path = %path.display(), "{done}"),
        Err(error) => tracing::warn!(path = %path.display(), %error, "failed to remove"),
    }
}

/// Creates a directory and its missing parents, and makes their names durable. The name of an existing directory is
/// synced too, because the process that created it may have died before that.
fn create_private(path: &Path) -> Result<(), DataDirError> {
    use std::os::unix::fs::DirBuilderExt;
    let missing = path.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).count();
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| DataDirError::Access { what: "create", path: path.into(), source })?;
    path.ancestors().skip(1).take(missing.max(1)).try_for_each(sync_dir)
}

fn sync_dir(path: &Path) -> Result<(), DataDirError> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match fs::File::open(path).and_then(|dir| dir.sync_all()) {
        // A process that may not read a directory usually may not write to it either, and has created nothing there.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced.map_err(|source| DataDirError::Access { what: "sync", path: path.into(), source }),
    }
}

fn check_writable(path: &Path) -> Result<(), DataDirError> {
    let probe = path.join(".touch");
    fs::write(&probe, b"")
        .and_then(|()| fs::remove_file(&probe))
        .map_err(|cause| DataDirError::NotWritable { path: path.into(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_dirs_are_refused_untouched() {
        let dir = harness::tempdir();
        fs::write(dir.path().join("notes.txt"), b"x").unwrap();
        let error = DataDir::new(dir.path(), None).check().unwrap_err().to_string();
        assert!(error.contains("it holds notes.txt but no `member`"), "{error}");
        let file = DataDir::new(dir.path().join("notes.txt"), None);
        assert!(matches!(file.check(), Err(DataDirError::NotADir { .. })));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn received_databases_are_removed_once_the_log_is_past_them() {
        let dir = harness::tempdir();
        let data = DataDir::new(dir.path().join("a"), None);
        data.create().unwrap();
        let others = [data.db(), data.snap().join("db.tmp.5"), data.snap().join("x.snap.db")];
        for path in [1, 0x1f, 0x20, 0x21].map(|index| data.received(index)).iter().chain(&others) {
            fs::write(path, b"x").unwrap();
        }
        data.remove_received_before(0x20);
        assert_eq!([1, 0x1f, 0x20, 0x21].map(|index| data.received(index).exists()), [false, false, true, true]);
        assert!(others.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_new_dir_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = harness::tempdir();
        let data = DataDir::new(dir.path().join("a/b"), None);
        data.check().unwrap();
        data.create().unwrap();
        assert_eq!(fs::metadata(data.snap()).unwrap().permissions().mode() & 0o777, 0o700);
        data.check().unwrap();
    }
}
