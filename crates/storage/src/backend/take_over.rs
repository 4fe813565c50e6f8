//! Taking over: a file received from another member is put in place of this one, under everyone who uses it.
//!
//! 1. Open the received file, which locks it, and look it over. Nothing is changed if it is refused.
//! 2. On the commit thread, between two units: rename it over the file, and go on with it. What waited for its commit
//!    is dropped, since the received file has it or has what came of it.
//!
//! Until the rename the old file is there, complete; after it the received one is. Views that were taken before read the
//! old file until they are dropped.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{
    Backend, Failure, Shared, View,
    control::Step,
    file::File,
    open::{parent, wait_for_lock},
    view::State,
};
use crate::{
    OpenError,
    schema::{Bucket, DecodeError, meta},
};

/// Why a received file was not taken over. The file is as it was, unless the backend has failed.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    #[error("failed to make the received file {} durable", path.display())]
    Sync { path: PathBuf, source: io::Error },
    #[error("failed to open the received file")]
    Open(#[from] OpenError),
    #[error("the received file {} is damaged in {problems} places, first {first}", path.display())]
    Damaged { path: PathBuf, problems: usize, first: bolt::Problem },
    #[error("the received file {} is not a database of etcd: it has no bucket {bucket}", path.display())]
    NotEtcd { path: PathBuf, bucket: &'static str },
    #[error("failed to read from the received file {} which entry was applied last", path.display())]
    Consistent { path: PathBuf, source: DecodeError },
    #[error("failed to rename {} to {}", from.display(), to.display())]
    Rename { from: PathBuf, to: PathBuf, source: io::Error },
    #[error(transparent)]
    Backend(#[from] Failure),
}

/// A sound file that waits to be put in place.
pub(super) struct Received {
    file: File,
    path: PathBuf,
}

/// Every release of etcd that can be in a cluster with us makes these first of all.
const NEEDED: [Bucket; 2] = [Bucket::Key, Bucket::Meta];

impl Backend {
    /// Replaces the file by `received`, a complete file on the same file system. From then on all clones read and write
    /// that one; what was not yet committed to the old one is gone, and a running defragmentation is given up.
    ///
    /// For the one who applies: no [`super::Batch`] may be open on this thread, and no entry be applied meanwhile. Others
    /// who write must look at [`super::Batch::generation`], which this raises by one.
    pub fn take_over(&self, received: &Path) -> Result<(), TakeOverError> {
        let shared = &self.handle.shared;
        let received = Box::new(Received { file: open_received(received, shared)?, path: received.to_owned() });
        self.ask(|reply| Step::TakeOver(received, reply))??;
        tracing::info!(
            path = %shared.path.display(),
            current_db_size_bytes = self.size(),
            current_db_size_in_use_bytes = self.size_in_use(),
            "took over a received database file"
        );
        Ok(())
    }

    /// What is applied so far to the file of that generation: the newest, or the first that was replaced since
    /// [`forget_replaced`](Self::forget_replaced) was called. `None` for any other.
    pub fn view_of(&self, generation: u64) -> Option<View> {
        let current = self.handle.shared.current.read();
        let mut states = Some(&current.state).into_iter().chain(&current.replaced);
        let state = states.find(|s| s.generation == generation)?.clone();
        drop(current);
        Some(View { state })
    }

    /// Lets go of the file that was replaced; its space is free when the last view of it is gone.
    pub fn forget_replaced(&self) {
        let replaced = self.handle.shared.current.write().replaced.take();
        drop(replaced);
    }
}

impl View {
    /// How many files the backend had taken over when this view was taken.
    pub fn generation(&self) -> u64 {
        self.state.generation
    }
}

impl Shared {
    /// Publishes the state of another file.
    pub(super) fn replace(&self, state: State) {
        let mut current = self.current.write();
        let old = std::mem::replace(&mut current.state, Arc::new(state));
        // Of several, whoever has not asked to forget still reads the first.
        let dropped = match current.replaced {
            Some(_) => Some(old),
            None => current.replaced.replace(old),
        };
        drop(current);
        drop(dropped);
    }

    /// Makes it durable that another file has the name. Should that fail, a crash could bring the old file back, without
    /// what is committed from now on: nothing more is written then.
    pub(super) fn sync_name(&self) -> Result<(), Failure> {
        let synced = fs::File::open(parent(&self.path)).and_then(|dir| dir.sync_all());
        synced.map_err(|source| {
            let failure = Failure::Replace { path: self.path.clone(), source: source.into() };
            self.fail(failure.clone());
            failure
        })
    }
}

/// Opens the file and refuses what is not sound. The failure of a read must not become one of the backend.
fn open_received(path: &Path, shared: &Shared) -> Result<File, TakeOverError> {
    let options = &shared.options;
    if !options.unsafe_no_sync {
        let synced = fs::File::open(path).and_then(|file| file.sync_all());
        synced.map_err(|source| TakeOverError::Sync { path: path.to_owned(), source })?;
    }
    let file =
        wait_for_lock(path, Some(Duration::ZERO), |_| File::open_copy(path, options, &shared.path, Arc::default()))?;
    look_over(&file, path)?;
    Ok(file.join(shared.fuse.clone()))
}

fn look_over(file: &File, path: &Path) -> Result<(), TakeOverError> {
    let view = file.view();
    let problems = view.check();
    view.release_memory();
    if let Some(first) = problems.first() {
        return Err(TakeOverError::Damaged { path: path.to_owned(), problems: problems.len(), first: first.clone() });
    }
    let names = view.bucket_names().map_err(|source| OpenError::File {
        path: path.to_owned(),
        source: bolt::OpenError::Walk { path: path.to_owned(), source },
    })?;
    if let Some(missing) = NEEDED.iter().map(|b| b.name()).find(|n| !names.iter().any(|name| name == n.as_bytes())) {
        return Err(TakeOverError::NotEtcd { path: path.to_owned(), bucket: missing });
    }
    let consistent = meta::consistent(&View::of_file(view));
    consistent.map_err(|source| TakeOverError::Consistent { path: path.to_owned(), source })?;
    Ok(())
}

/// On the commit thread: gives the received file its name.
pub(super) fn put_in_place(received: Received, shared: &Shared) -> Result<File, TakeOverError> {
    let Received { file, path } = received;
    let renamed = fs::rename(&path, &shared.path);
    renamed.map_err(|source| TakeOverError::Rename { from: path, to: shared.path.clone(), source })?;
    shared.sync_name()?;
    Ok(file)
}
