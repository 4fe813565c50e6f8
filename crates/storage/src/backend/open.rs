//! Opening a file for writing.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Observer, file::File};

/// How a backend works. The defaults are etcd's.
#[derive(Clone)]
pub struct Options {
    /// The longest a change waits for its commit to begin.
    pub batch_interval: Duration,
    /// A commit begins at once when so many changes wait, or so many bytes.
    pub batch_limit: usize,
    pub batch_bytes: usize,
    /// Writers wait when so many changes (or twice `batch_limit`) are ahead of a running commit, or so many bytes.
    pub ops_max: usize,
    pub bytes_max: usize,
    /// While a defragmentation copies: when so many bytes were committed meanwhile, commits wait for its end.
    pub defrag_bytes_max: usize,
    /// Creates the file if it does not exist.
    pub create: bool,
    /// How long to wait for another process to give up the file; `None` waits for ever, as etcd does.
    pub lock_timeout: Option<Duration>,
    /// Address space to set aside, the most the file can grow to; `None` is the engine's default.
    pub map_bytes: Option<u64>,
    /// Commits without waiting for the disk: a crash of the machine may destroy the file.
    pub unsafe_no_sync: bool,
    /// Keeps the file's pages in memory.
    pub mlock: bool,
    pub observer: Option<Arc<dyn Observer>>,
    /// Opens files in place of the operating system, without a lock.
    pub disks: Option<Arc<dyn Disks>>,
}

/// Opens files as disks, which may be ones that fail or crash.
pub trait Disks: Send + Sync {
    /// Makes the file if it is not there.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn bolt::Disk>>;
}

impl Default for Options {
    fn default() -> Self {
        let batch_limit = 10_000;
        Options {
            batch_interval: Duration::from_millis(100),
            batch_limit,
            batch_bytes: 16 << 20,
            ops_max: 4 * batch_limit,
            bytes_max: 64 << 20,
            defrag_bytes_max: 256 << 20,
            create: true,
            lock_timeout: None,
            map_bytes: None,
            unsafe_no_sync: false,
            mlock: false,
            observer: None,
            disks: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("batch_interval", &self.batch_interval)
            .field("batch_limit", &self.batch_limit)
            .field("lock_timeout", &self.lock_timeout)
            .field("unsafe_no_sync", &self.unsafe_no_sync)
            .finish_non_exhaustive()
    }
}

/// Why a file could not be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("failed to open the database file {}", path.display())]
    File { path: PathBuf, source: bolt::OpenError },
    #[error(
        "the database file {} is locked by another process (waited {waited:?}): stop the etcd or lockgate that runs on \
         this data dir, or choose another one",
        path.display()
    )]
    Locked { path: PathBuf, waited: Duration },
    #[error("failed to create the buckets of the new database file {}", path.display())]
    Create { path: PathBuf, source: bolt::Error },
    #[error("failed to remove {}, left over from an interrupted defragmentation", path.display())]
    LeftOver { path: PathBuf, source: io::Error },
    #[error("failed to start the commit thread")]
    Thread { source: io::Error },
}

impl OpenError {
    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, OpenError::File { source: bolt::OpenError::Io { source, .. }, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

pub(super) fn open(path: &Path, options: &Options) -> Result<File, OpenError> {
    let file = wait_for_lock(path, options.lock_timeout, |wait| File::open(path, options, wait))?;
    // Under the lock, so that they cannot belong to a defragmentation that runs.
    remove_left_overs(path)?;
    with_buckets(file, path)
}

pub(super) fn with_buckets(mut file: File, path: &Path) -> Result<File, OpenError> {
    if file.is_new() {
        file.create_buckets().map_err(|source| OpenError::Create { path: path.to_owned(), source })?;
    }
    Ok(file)
}

/// After this long etcd tells that it waits.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// Tries `open` until it gets the lock or `timeout` is over; says so in the log when it takes long.
///
/// The holder of the lock may put another file in place (see [`super::defrag`]): then a lock on the file that was
/// opened before means nothing. So every try opens anew, and one that saw the file change is repeated.
pub(super) fn wait_for_lock<T>(
    path: &Path,
    timeout: Option<Duration>,
    open: impl Fn(Duration) -> Result<T, bolt::OpenError>,
) -> Result<T, OpenError> {
    let begin = Instant::now();
    let mut told = false;
    loop {
        let before = inode(path);
        match open(Duration::ZERO) {
            Ok(opened) if before.is_none() || before == inode(path) => return Ok(opened),
            Ok(_) | Err(bolt::OpenError::Locked { .. }) => {}
            Err(source) => return Err(OpenError::File { path: path.to_owned(), source }),
        }
        let waited = begin.elapsed();
        if timeout.is_some_and(|t| waited >= t) {
            return Err(OpenError::Locked { path: path.to_owned(), waited });
        }
        if !told && waited >= PATIENCE {
            told = true;
            tracing::info!(path = %path.display(), took = ?waited, "db file is flocked by another process, or taking too long");
        }
        std::thread::sleep(timeout.map_or(POLL, |t| (t - waited).min(POLL)));
    }
}

fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|m| m.ino())
}

/// The beginning of the names of temporary files beside `path`, such as `db.tmp`.
pub(super) fn temporary_prefix(path: &Path) -> String {
    format!("{}.tmp", path.file_name().unwrap_or_default().to_string_lossy())
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn remove_left_overs(path: &Path) -> Result<(), OpenError> {
    let prefix = temporary_prefix(path);
    let Ok(entries) = fs::read_dir(parent(path)) else { return Ok(()) };
    for entry in entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(&prefix)) {
        let left_over = entry.path();
        match fs::remove_file(&left_over) {
            Ok(()) => tracing::info!(path = %left_over.display(), "removed what an interrupted defragmentation left"),
            Err(source) => return Err(OpenError::LeftOver { path: left_over, source }),
        }
    }
    Ok(())
}
