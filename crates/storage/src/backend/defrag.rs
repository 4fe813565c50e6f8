//! Defragmentation: the file is copied without its free pages while reads and writes go on.
//!
//! 1. Commit, and from here on keep what is committed (the recording).
//! 2. Copy the file as of that commit to `db.tmp.*`. Commits to the old file go on.
//! 3. On the commit thread: commit, replay the recording into the copy, rename the copy over the file, go on with it.
//!
//! Until the rename the old file is complete; after it the new one is. The copy is locked before it takes the name.

use std::{
    fs, io, mem,
    path::{Path, PathBuf},
    sync::{
        atomic::Ordering,
        mpsc::{RecvError, SyncSender, sync_channel},
    },
    time::{Duration, Instant, SystemTime},
};

use failpoint::failpoint;

use super::{
    Backend, Failure, Shared,
    control::{DefragStep, Step},
    file::{File, Sizes},
    layer::SharedLayer,
    open::{parent, temporary_prefix},
};

/// What a defragmentation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefragReport {
    pub size_before: u64,
    pub size_in_use_before: u64,
    pub size_after: u64,
    pub size_in_use_after: u64,
    pub took: Duration,
    /// Of `took`, the end, during which commits waited.
    pub held_commits: Duration,
}

/// Why a defragmentation was given up. The file is as it was, unless the backend has failed.
#[derive(Debug, thiserror::Error)]
pub enum DefragError {
    #[error("a defragmentation of {} is running already", path.display())]
    Running { path: PathBuf },
    #[error(
        "not enough space to defragment {}: a copy needs about {needed} bytes, {available} are available on its disk; \
         free space or move the data dir to a larger disk",
        path.display()
    )]
    NoSpace { path: PathBuf, needed: u64, available: u64 },
    #[error("failed to copy the database to {}", path.display())]
    Copy { path: PathBuf, source: bolt::Error },
    #[error("failed to open the copy {}", path.display())]
    OpenCopy { path: PathBuf, source: bolt::OpenError },
    #[error("{} was replaced by a file from another member meanwhile; defragment that one", path.display())]
    Replaced { path: PathBuf },
    #[error("failed to rename {} to {}", from.display(), to.display())]
    Rename { from: PathBuf, to: PathBuf, source: io::Error },
    #[error(transparent)]
    Backend(#[from] Failure),
}

/// Layers committed to the old file since the copy began, in order.
#[derive(Default)]
pub(super) struct Recording {
    layers: Vec<SharedLayer>,
    bytes: usize,
}

impl Recording {
    pub(super) fn push(&mut self, layer: SharedLayer) {
        self.bytes += layer.read().bytes;
        self.layers.push(layer);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A complete copy that waits to be brought up to date.
pub(super) struct Copied {
    file: File,
    temporary: Temporary,
    begin: Instant,
    before: Sizes,
}

/// A file that is removed unless it was given its real name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// Ends a defragmentation however it goes: were the recording left on, commits would stop when it is full.
struct Running<'a> {
    shared: &'a Shared,
    begin: Instant,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.shared.control.submit(Step::Defrag(DefragStep::GiveUp));
        self.shared.defragmenting.store(false, Ordering::Release);
        if let Some(observer) = &self.shared.options.observer {
            observer.defrag_ended(self.begin.elapsed());
        }
    }
}

impl Backend {
    /// Rewrites the file without free pages. Reads go on all the while; so do writes, which wait only if they fill
    /// the buffers during the last step. Blocks its caller until done.
    pub fn defrag(&self) -> Result<DefragReport, DefragError> {
        let shared = &self.handle.shared;
        if shared.defragmenting.swap(true, Ordering::AcqRel) {
            return Err(DefragError::Running { path: shared.path.clone() });
        }
        let begin = Instant::now();
        let _running = Running { shared, begin };
        if let Some(observer) = &shared.options.observer {
            observer.defrag_started();
        }
        self.copy_and_swap(begin)
    }

    fn copy_and_swap(&self, begin: Instant) -> Result<DefragReport, DefragError> {
        let shared = &self.handle.shared;
        let before = Sizes { total: self.size(), in_use: self.size_in_use() };
        check_space(&shared.path, before.in_use)?;
        tracing::info!(
            path = %shared.path.display(),
            current_db_size_bytes = before.total,
            current_db_size_in_use_bytes = before.in_use,
            "defragmenting"
        );
        let source = self.ask(|reply| Step::Defrag(DefragStep::Begin(reply)))??;
        let temporary = Temporary(temporary_path(&shared.path));
        let copy = &temporary.0;
        failpoint!("defragBeforeCopy");
        failpoint!("defragdbFail", |text| {
            let source = bolt::Error::Io { op: "copy", source: io::Error::other(text) };
            return Err(DefragError::Copy { path: copy.clone(), source });
        });
        let copied = source.copy_to(copy, &shared.options);
        copied.map_err(|source| DefragError::Copy { path: copy.clone(), source })?;
        failpoint!("defragOpenFileError", |text| {
            let source = bolt::OpenError::Io { path: copy.clone(), op: "open", source: io::Error::other(text) };
            return Err(DefragError::OpenCopy { path: copy.clone(), source });
        });
        // Here, because opening walks all pages; and locked from here on.
        let opened = File::open_copy(copy, &shared.options, &shared.path, shared.fuse.clone());
        let file = opened.map_err(|source| DefragError::OpenCopy { path: copy.clone(), source })?;
        // Pages of the old file must not be held by the source of the copy while the last commits to it run.
        drop(source);
        let copied = Box::new(Copied { file, temporary, begin, before });
        let report = self.ask(|reply| Step::Defrag(DefragStep::End(copied, reply)))??;
        tracing::info!(
            path = %shared.path.display(),
            current_db_size_bytes = report.size_after,
            current_db_size_in_use_bytes = report.size_in_use_after,
            took = ?report.took,
            "finished defragmenting directory"
        );
        Ok(report)
    }

    pub(super) fn ask<T>(&self, step: impl FnOnce(SyncSender<T>) -> Step) -> Result<T, Failure> {
        let shared = &self.handle.shared;
        let (reply, answer) = sync_channel(1);
        shared.control.submit(step(reply));
        // No answer comes if the thread has ended or ends before it takes the step.
        answer.recv().map_err(|RecvError| shared.check().err().unwrap_or(Failure::Closed))
    }
}

/// On the commit thread: makes the copy equal to the file and puts it in its place.
pub(super) fn finish(
    copied: Copied,
    recording: &Recording,
    shared: &Shared,
) -> Result<(File, DefragReport), DefragError> {
    let held = Instant::now();
    let Copied { mut file, mut temporary, begin, before } = copied;
    let path = temporary.0.clone();
    file.write_all(&recording.layers).map_err(|source| DefragError::Copy { path: path.clone(), source })?;
    failpoint!("defragBeforeRename");
    let renamed = fs::rename(&path, &shared.path);
    renamed.map_err(|source| DefragError::Rename { from: path, to: shared.path.clone(), source })?;
    // It has its real name now.
    mem::take(&mut temporary.0);
    shared.sync_name()?;
    let after = file.sizes();
    let report = DefragReport {
        size_before: before.total,
        size_in_use_before: before.in_use,
        size_after: after.total,
        size_in_use_after: after.in_use,
        took: begin.elapsed(),
        held_commits: held.elapsed(),
    };
    Ok((file, report))
}

/// What a copy needs beyond the pages in use: it grows in steps, and what is written meanwhile comes on top.
const SPACE_MARGIN: u64 = 16 << 20;

fn check_space(path: &Path, in_use: u64) -> Result<(), DefragError> {
    // A file system that does not tell has to be tried.
    let Ok(stat) = rustix::fs::statvfs(parent(path)) else { return Ok(()) };
    let available = stat.f_bavail.saturating_mul(stat.f_frsize);
    let needed = in_use + SPACE_MARGIN;
    if available < needed {
        return Err(DefragError::NoSpace { path: path.to_owned(), needed, available });
    }
    Ok(())
}

fn temporary_path(path: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let unique = now.as_nanos() as u64 ^ u64::from(std::process::id()) << 40;
    parent(path).join(format!("{}.{unique}", temporary_prefix(path)))
}
