//! The backend: batched writes and read views on one file.
//!
//! ```text
//! write() ─► active layer ─(freeze, every interval or when full)─► frozen layer ─(commit thread, fsync)─► file
//!               ▲                                                     ▲                                    ▲
//! view()  ──────┴────────── reads here first ─────────── then here ───┴─────────── then here ─────────────┘
//! ```
//!
//! Invariants:
//! - A unit of change is in one layer, and a layer is one transaction of the file: a crash leaves whole units, in
//!   order, with the consistent index of the last of them.
//! - Neither readers nor writers wait for the disk; writers wait for room once a layer has grown beyond its bounds.
//! - After a failed commit nothing is written any more, and everyone who asks is told.
//! - A file received from another member takes the place of this one between two units: see [`Backend::take_over`].

mod batch;
mod committer;
mod control;
mod defrag;
mod failure;
mod file;
mod hash;
mod layer;
mod observer;
mod open;
mod read_only;
mod snapshot;
mod take_over;
mod view;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

pub use batch::Batch;
pub use defrag::{DefragError, DefragReport};
pub use failure::Failure;
pub use observer::{CommitTimes, Observer};
pub use open::{Disks, OpenError, Options};
pub use read_only::ReadOnly;
pub use snapshot::{Snapshot, SnapshotError};
pub use take_over::TakeOverError;
pub use view::{Read, View, Visit};

use crate::Scratch;
use batch::Writer;
use control::Control;
pub(crate) use failure::Fuse;
use file::File;
use view::State;

/// One bbolt-format file with batched writes. Cheap to clone.
///
/// Dropping the last clone without [`Backend::close`] leaves the file as of the last commit, as a crash would.
#[derive(Clone)]
pub struct Backend {
    handle: Arc<Handle>,
}

/// Ends the commit thread when the last user is gone.
struct Handle {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What users and the commit thread share.
struct Shared {
    path: PathBuf,
    options: Options,
    current: RwLock<Current>,
    writer: Mutex<Writer>,
    /// Signalled when the active layer was replaced, or never will be again.
    room: Condvar,
    control: Control,
    fuse: Arc<Fuse>,
    closed: AtomicBool,
    defragmenting: AtomicBool,
    size: AtomicU64,
    size_in_use: AtomicU64,
    /// Keys and values that wait for their commit.
    pending_bytes: AtomicU64,
}

/// Where reading begins.
struct Current {
    /// What new views read.
    state: Arc<State>,
    /// The last state of the first file that was replaced and is not forgotten.
    replaced: Option<Arc<State>>,
}

impl Backend {
    /// Opens the file, or makes a new one with all buckets in it, and takes its lock. An existing file is left as it
    /// is until the first commit. Left-overs of an interrupted defragmentation are removed.
    pub fn open(path: &Path, options: Options) -> Result<Backend, OpenError> {
        let file = open::open(path, &options)?;
        Backend::start(path, options, file)
    }

    /// Opens a file given as a disk, which may be one that fails or crashes. Takes no lock.
    pub fn open_disk(disk: Arc<dyn bolt::Disk>, path: &Path, options: Options) -> Result<Backend, OpenError> {
        let opened = File::open_disk(disk, path, &options);
        let file = opened.map_err(|source| OpenError::File { path: path.to_owned(), source })?;
        Backend::start(path, options, open::with_buckets(file, path)?)
    }

    /// Opens a unit of change: what is done through it becomes visible and durable together. Units follow one
    /// another; a second one waits for the first, on the same thread for ever.
    ///
    /// Waits for room while commits fall far behind. After a failure (see [`Backend::failed`]) changes are still
    /// taken, so that whoever applies sees what it wrote, but will never be durable: acknowledge nothing then.
    pub fn write(&self) -> Batch<'_> {
        let shared = &*self.handle.shared;
        let mut writer = shared.writer.lock();
        shared.wait_for_room(&mut writer);
        Batch::new(shared, writer)
    }

    /// [`Backend::write`], but refuses after a failure or [`Backend::close`].
    pub fn try_write(&self) -> Result<Batch<'_>, Failure> {
        self.handle.shared.check()?;
        let batch = self.write();
        self.handle.shared.check()?;
        Ok(batch)
    }

    /// What is applied so far. Never waits for a commit to disk.
    pub fn view(&self) -> View {
        View { state: self.handle.shared.state() }
    }

    /// Waits until everything applied before is durable. Not while holding a [`Batch`]: see [`Batch::commit`].
    pub fn commit(&self) -> Result<(), Failure> {
        self.handle.shared.commit()
    }

    /// Commits and ends. What is written to other clones afterwards is lost; views remain readable. The lock of the
    /// file is given up when the last clone, view and snapshot is gone, since they still read from it.
    pub fn close(&self) -> Result<(), Failure> {
        let shared = &self.handle.shared;
        shared.control.stop(true);
        self.handle.join();
        shared.closed.store(true, Ordering::Release);
        shared.failed().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Why nothing is written any more, if so.
    pub fn failed(&self) -> Option<&Failure> {
        self.handle.shared.failed()
    }

    /// `hook` is called once, when a commit has failed (or now, if one has); by the thread that failed, so it should
    /// only pass the word on.
    pub fn on_failure(&self, hook: impl FnOnce(&Failure) + Send + 'static) {
        self.handle.shared.fuse.on_blow(Box::new(hook));
    }

    pub fn path(&self) -> &Path {
        &self.handle.shared.path
    }

    /// Bytes of the file as of the last commit.
    pub fn size(&self) -> u64 {
        self.handle.shared.size.load(Ordering::Relaxed)
    }

    /// Of [`Backend::size`], bytes in pages that are not free.
    pub fn size_in_use(&self) -> u64 {
        self.handle.shared.size_in_use.load(Ordering::Relaxed)
    }

    /// Bytes of keys and values that wait for their commit, by which the file may grow.
    pub fn pending_bytes(&self) -> u64 {
        self.handle.shared.pending_bytes.load(Ordering::Relaxed)
    }

    /// Lets go of the memory that reading the whole file has mapped in: it comes back page by page as it is read.
    pub fn release_memory(&self) {
        self.handle.shared.state().file.release_memory();
    }

    /// An ordered map with about `bytes_max` bytes in memory and the rest beside the file, for work on it. If it fails, this
    /// backend has failed.
    pub fn scratch<const N: usize>(&self, bytes_max: usize) -> Scratch<N> {
        Scratch::new(self.handle.shared.path.clone(), bytes_max, self.handle.shared.fuse.clone())
    }

    /// Read transactions of the file that are held by views, snapshots and the backend itself.
    pub fn open_read_tx(&self) -> usize {
        self.handle.shared.state().file.open_read_tx()
    }

    fn start(path: &Path, options: Options, file: File) -> Result<Backend, OpenError> {
        let writer = Writer { active: Default::default(), generation: 0 };
        let state = State { active: writer.active.clone(), frozen: None, file: file.view(), generation: 0 };
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            options,
            current: RwLock::new(Current { state: Arc::new(state), replaced: None }),
            writer: Mutex::new(writer),
            room: Condvar::new(),
            control: Control::default(),
            fuse: file.fuse(),
            closed: AtomicBool::new(false),
            defragmenting: AtomicBool::new(false),
            size: AtomicU64::new(0),
            size_in_use: AtomicU64::new(0),
            pending_bytes: AtomicU64::new(0),
        });
        shared.note_sizes(&file);
        let run = {
            let shared = shared.clone();
            move || committer::run(shared, file)
        };
        let thread = std::thread::Builder::new()
            .name("backend-commit".into())
            .spawn(run)
            .map_err(|source| OpenError::Thread { source })?;
        Ok(Backend { handle: Arc::new(Handle { shared, thread: Mutex::new(Some(thread)) }) })
    }
}

impl Handle {
    fn join(&self) {
        let thread = self.thread.lock().take();
        // The last handle may be dropped by the commit thread itself, from inside a hook.
        if let Some(thread) = thread.filter(|t| t.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.control.stop(false);
        self.join();
    }
}

impl Shared {
    fn state(&self) -> Arc<State> {
        self.current.read().state.clone()
    }

    fn publish(&self, state: State) {
        let state = Arc::new(state);
        let old = std::mem::replace(&mut self.current.write().state, state);
        // Freeing a layer takes a while: not under the lock.
        drop(old);
    }

    fn wait_for_room(&self, writer: &mut MutexGuard<'_, Writer>) {
        while self.must_wait(writer) {
            self.control.note_full();
            self.room.wait(writer);
        }
    }

    fn must_wait(&self, writer: &Writer) -> bool {
        let layer = writer.active.read();
        // A batch limit set high must not make every batch wait.
        let ops_max = self.options.ops_max.max(2 * self.options.batch_limit);
        let over = layer.ops >= ops_max || layer.bytes >= self.options.bytes_max;
        over && self.check().is_ok() && !self.control.has_ended()
    }

    /// Lets waiting writers look again. Takes their lock, so that none can miss it.
    fn wake_writers(&self) {
        let _writer = self.writer.lock();
        self.room.notify_all();
    }

    fn commit(&self) -> Result<(), Failure> {
        self.check()?;
        let done = self.control.commit_and_wait();
        self.check()?;
        if done { Ok(()) } else { Err(Failure::Closed) }
    }

    fn check(&self) -> Result<(), Failure> {
        match self.failed() {
            Some(failure) => Err(failure.clone()),
            None if self.closed.load(Ordering::Acquire) => Err(Failure::Closed),
            None => Ok(()),
        }
    }

    fn failed(&self) -> Option<&Failure> {
        self.fuse.blown()
    }

    fn fail(&self, failure: Failure) {
        let error: &dyn std::error::Error = &failure;
        tracing::error!(path = %self.path.display(), error, "backend failed, nothing is written any more");
        self.fuse.blow(failure);
        self.wake_writers();
    }

    fn note_sizes(&self, file: &File) {
        let sizes = file.sizes();
        self.size.store(sizes.total, Ordering::Relaxed);
        self.size_in_use.store(sizes.in_use, Ordering::Relaxed);
    }
}
