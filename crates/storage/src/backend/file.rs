//! The file under the layers: all that the backend asks of `bolt`.

use std::{
    ops::ControlFlow,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bolt::{Db, ReadTx, WriteTx};
use failpoint::failpoint;

use super::{
    CommitTimes, Failure, Options,
    failure::Fuse,
    layer::{Layer, SharedLayer},
    view::Visit,
};
use crate::Bucket;

/// Revisions only rise, so pages are filled nearly to the brim, as etcd does.
const FILL_RISING: f32 = 0.9;

/// Keys and values in one transaction of a copy: bounds its memory.
const COPY_TX_BYTES: u64 = 16 << 20;

/// The open file, for the one who writes to it.
pub(super) struct File {
    db: Db,
    path: Arc<Path>,
    fuse: Arc<Fuse>,
    /// Whether the file had no buckets when it was opened.
    is_new: bool,
    /// Whether all buckets are known to exist.
    complete: bool,
}

/// The file as of one commit.
#[derive(Clone)]
pub(super) struct FileView {
    tx: ReadTx,
    db: Db,
    path: Arc<Path>,
    fuse: Arc<Fuse>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub total: u64,
    pub in_use: u64,
}

impl File {
    pub(super) fn open(path: &Path, options: &Options, wait: Duration) -> Result<File, bolt::OpenError> {
        File::of_db(open_db(path, options, bolt_options(options, wait))?, path, Arc::default())
    }

    pub(super) fn open_disk(
        disk: Arc<dyn bolt::Disk>,
        path: &Path,
        options: &Options,
    ) -> Result<File, bolt::OpenError> {
        let db = Db::open_disk(disk, path, bolt_options(options, Duration::ZERO))?;
        File::of_db(db, path, Arc::default())
    }

    pub(super) fn open_read_only(path: &Path, wait: Duration) -> Result<File, bolt::OpenError> {
        let options = bolt::Options { read_only: true, lock_timeout: Some(wait), ..bolt::Options::default() };
        File::of_db(Db::open(path, options)?, path, Arc::default())
    }

    /// Opens a copy that is going to stand in place of the file `name`.
    pub(super) fn open_copy(
        copy: &Path,
        options: &Options,
        name: &Path,
        fuse: Arc<Fuse>,
    ) -> Result<File, bolt::OpenError> {
        let how = bolt::Options { create: false, ..bolt_options(options, Duration::ZERO) };
        File::of_db(open_db(copy, options, how)?, name, fuse)
    }

    fn of_db(db: Db, path: &Path, fuse: Arc<Fuse>) -> Result<File, bolt::OpenError> {
        let buckets = db.begin_read().buckets();
        let buckets = buckets.map_err(|source| bolt::OpenError::Walk { path: path.to_owned(), source })?;
        Ok(File { db, path: path.into(), fuse, is_new: buckets.is_empty(), complete: false })
    }

    /// Failures of this file are from now on those of the backend that takes it in.
    pub(super) fn join(self, fuse: Arc<Fuse>) -> File {
        File { fuse, ..self }
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(super) fn fuse(&self) -> Arc<Fuse> {
        self.fuse.clone()
    }

    pub(super) fn view(&self) -> FileView {
        FileView { tx: self.db.begin_read(), db: self.db.clone(), path: self.path.clone(), fuse: self.fuse.clone() }
    }

    /// As in etcd, pages that wait for readers to end count as used.
    pub(super) fn sizes(&self) -> Sizes {
        let stats = self.db.stats();
        let total = stats.pages * stats.page_size;
        Sizes { total, in_use: total - stats.free_pages * stats.page_size }
    }

    pub(super) fn create_buckets(&mut self) -> Result<(), bolt::Error> {
        let mut tx = self.db.begin_write()?;
        self.complete(&mut tx)?;
        tx.commit()?;
        self.complete = true;
        Ok(())
    }

    /// Commits the changes of a layer.
    pub(super) fn write(&mut self, layer: &Layer) -> Result<CommitTimes, bolt::Error> {
        let begin = Instant::now();
        failpoint!("beforeStartDBTxn");
        let mut tx = self.db.begin_write()?;
        failpoint!("afterStartDBTxn");
        self.complete(&mut tx)?;
        put_layer(&mut tx, layer)?;
        let stats = tx.commit()?;
        self.complete = true;
        Ok(CommitTimes {
            total: begin.elapsed(),
            spill: stats.spill,
            write: stats.write + stats.sync,
            sync: stats.sync,
            ops: layer.ops,
        })
    }

    /// Commits the changes of several layers at once, the later ones over the earlier.
    pub(super) fn write_all(&mut self, layers: &[SharedLayer]) -> Result<(), bolt::Error> {
        let mut tx = self.db.begin_write()?;
        for layer in layers {
            put_layer(&mut tx, &layer.read())?;
        }
        tx.commit()?;
        Ok(())
    }

    /// A file that an older version has left without some bucket gets it with the first commit.
    fn complete(&self, tx: &mut WriteTx) -> Result<(), bolt::Error> {
        if !self.complete {
            for bucket in Bucket::ALL {
                tx.create_bucket_if_missing(bucket.name().as_bytes())?;
            }
        }
        Ok(())
    }
}

fn open_db(path: &Path, options: &Options, how: bolt::Options) -> Result<Db, bolt::OpenError> {
    let Some(disks) = &options.disks else { return Db::open(path, how) };
    let disk = disks.open(path);
    let disk = disk.map_err(|source| bolt::OpenError::Io { path: path.into(), op: "open", source })?;
    Db::open_disk(disk, path, how)
}

fn bolt_options(options: &Options, wait: Duration) -> bolt::Options {
    let defaults = bolt::Options::default();
    bolt::Options {
        create: options.create,
        lock_timeout: Some(wait),
        mmap_bytes: options.map_bytes.unwrap_or(defaults.mmap_bytes),
        no_sync: options.unsafe_no_sync,
        mlock: options.mlock,
        ..defaults
    }
}

fn put_layer(tx: &mut WriteTx, layer: &Layer) -> Result<(), bolt::Error> {
    for bucket in Bucket::ALL {
        let changes = layer.range(bucket, b"", b"");
        if changes.is_empty() {
            continue;
        }
        let mut into = tx.bucket_mut(bucket.name().as_bytes())?;
        if bucket == Bucket::Key {
            into.set_fill(FILL_RISING);
        }
        for change in &changes {
            match &change.value {
                Some(value) => into.put_shared(&change.key, value)?,
                None => drop(into.delete(&change.key)?),
            }
        }
    }
    Ok(())
}

impl FileView {
    /// A damaged page reads as if nothing were there, and blows the fuse.
    pub(super) fn get_with<R>(&self, bucket: Bucket, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let found = self.tx.bucket(bucket.name().as_bytes()).and_then(|b| b.map_or(Ok(None), |b| b.get(key)));
        match found {
            Ok(value) => value.map(f),
            Err(error) => {
                self.blow(error);
                None
            }
        }
    }

    /// Visits keys in `from..to` in order; breaks if `f` does.
    pub(super) fn scan(&self, bucket: Bucket, from: &[u8], to: &[u8], f: &mut Visit<'_>) -> ControlFlow<()> {
        self.try_scan(bucket.name().as_bytes(), from, to, f).unwrap_or_else(|error| {
            self.blow(error);
            ControlFlow::Break(())
        })
    }

    fn try_scan(
        &self,
        bucket: &[u8],
        from: &[u8],
        to: &[u8],
        f: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, bolt::Error> {
        let Some(bucket) = self.tx.bucket(bucket)? else { return Ok(ControlFlow::Continue(())) };
        for pair in bucket.range(from, (!to.is_empty()).then_some(to)) {
            let (key, value) = pair?;
            if f(key, value).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits everything in a bucket, whatever it is called.
    pub(super) fn each_of(&self, bucket: &[u8], mut f: impl FnMut(&[u8], &[u8])) -> Result<(), bolt::Error> {
        let mut visit = |key: &[u8], value: &[u8]| {
            f(key, value);
            ControlFlow::Continue(())
        };
        self.try_scan(bucket, b"", b"", &mut visit).map(drop)
    }

    pub(super) fn bucket_names(&self) -> Result<Vec<Vec<u8>>, bolt::Error> {
        self.tx.buckets()
    }

    pub(super) fn check(&self) -> Vec<bolt::Problem> {
        self.tx.check()
    }

    pub(super) fn release_memory(&self) {
        self.db.release_memory();
    }

    pub(super) fn open_read_tx(&self) -> usize {
        self.db.stats().open_readers as usize
    }

    /// The bytes of a file that holds this commit.
    pub(super) fn stream(&self) -> bolt::Copy {
        self.tx.copy()
    }

    /// Writes everything into the new file `to`, page by page full, and makes it durable.
    pub(super) fn copy_to(&self, to: &Path, options: &Options) -> Result<(), bolt::Error> {
        let options = bolt::Options { mlock: false, ..bolt_options(options, Duration::ZERO) };
        // What was copied is not read again soon, so it need not count as memory of this process.
        let mut release = |_| self.db.release_memory();
        bolt::compact(&self.tx, to, options, COPY_TX_BYTES, &mut release)
    }

    pub(super) fn failed(&self) -> Option<Failure> {
        self.fuse.blown().cloned()
    }

    fn blow(&self, error: bolt::Error) {
        let failure = Failure::read(&self.path, error);
        let error: &dyn std::error::Error = &failure;
        tracing::error!(path = %self.path.display(), error, "backend met a damaged page");
        self.fuse.blow(failure);
    }
}
