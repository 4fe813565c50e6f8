//! The backend's shape. This first form keeps everything in memory.

use std::{collections::BTreeMap, ops::ControlFlow, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::{RwLock, RwLockWriteGuard};

use crate::Bucket;

#[derive(Clone, Debug)]
pub struct Options {
    pub batch_interval: Duration,
    pub batch_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { batch_interval: Duration::from_millis(100), batch_limit: 10_000 }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("failed to open")]
    Open,
}

type Tree = BTreeMap<Bytes, Bytes>;

#[derive(Default)]
struct Pending {
    trees: [Tree; 10],
    /// Index and term of the last applied entry; written to `meta` by the commit that carries the entry's changes.
    consistent: Option<(u64, u64)>,
}

/// One bbolt-format file with batched writes. Cheap to clone.
#[derive(Clone)]
pub struct Backend {
    pending: Arc<RwLock<Pending>>,
}

impl Backend {
    pub fn open(_path: &Path, _options: Options) -> Result<Backend, OpenError> {
        Ok(Backend { pending: Arc::default() })
    }

    /// Opens a unit of change: what is done through it becomes visible and durable together.
    pub fn write(&self) -> Batch<'_> {
        Batch { pending: self.pending.write() }
    }

    /// What is applied so far. Never waits for a commit to disk.
    pub fn view(&self) -> View {
        View { backend: self.clone() }
    }
}

/// Reading, alike from a view and inside a batch (which sees its own changes).
pub trait Read {
    /// Calls `f` on the value, without copying it.
    fn get_with<R>(&self, bucket: Bucket, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Option<R>;

    /// Visits keys in `from..to` (an empty `to` means to the end) in order.
    fn scan(&self, bucket: Bucket, from: &[u8], to: &[u8], f: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>);

    fn get(&self, bucket: Bucket, key: &[u8]) -> Option<Bytes> {
        self.get_with(bucket, key, Bytes::copy_from_slice)
    }
}

/// A unit of change. Dropping it ends the unit; there is no rollback.
pub struct Batch<'a> {
    pending: RwLockWriteGuard<'a, Pending>,
}

impl Batch<'_> {
    pub fn put(&mut self, bucket: Bucket, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.pending.trees[bucket as usize].insert(key.into(), value.into());
    }

    pub fn delete(&mut self, bucket: Bucket, key: &[u8]) {
        self.pending.trees[bucket as usize].remove(key);
    }

    /// Records the entry whose changes this batch holds, in the same commit.
    pub fn set_consistent(&mut self, index: u64, term: u64) {
        self.pending.consistent = Some((index, term));
    }
}

impl Read for Batch<'_> {
    fn get_with<R>(&self, bucket: Bucket, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.pending.trees[bucket as usize].get(key).map(|v| f(v))
    }

    fn scan(&self, bucket: Bucket, from: &[u8], to: &[u8], f: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>) {
        scan(&self.pending.trees[bucket as usize], from, to, f);
    }
}

/// A read view.
#[derive(Clone)]
pub struct View {
    backend: Backend,
}

impl Read for View {
    fn get_with<R>(&self, bucket: Bucket, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.backend.pending.read().trees[bucket as usize].get(key).map(|v| f(v))
    }

    fn scan(&self, bucket: Bucket, from: &[u8], to: &[u8], f: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>) {
        scan(&self.backend.pending.read().trees[bucket as usize], from, to, f);
    }
}

fn scan(tree: &Tree, from: &[u8], to: &[u8], f: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>) {
    for (k, v) in tree.range::<[u8], _>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded)) {
        if (!to.is_empty() && &k[..] >= to) || f(k, v).is_break() {
            return;
        }
    }
}
