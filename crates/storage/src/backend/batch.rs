//! Writing: units of change.

use std::{
    cell::OnceCell,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use parking_lot::{ArcRwLockWriteGuard, MutexGuard, RawRwLock};

use super::{
    Failure, Shared,
    layer::{Consistent, Layer, SharedLayer},
    view::{Read, State, Visit},
};
use crate::{Bucket, RevisionKey};

/// What the writers share. Its lock is held for as long as a unit lasts, so the active layer is frozen only between
/// units.
pub(super) struct Writer {
    pub active: SharedLayer,
    /// Of the file that is written to, see [`super::Backend::take_over`].
    pub generation: u64,
}

/// A unit of change. Dropping it ends the unit; there is no rollback.
///
/// Readers wait for a unit only from its first change on. Ending a unit never waits for the disk.
pub struct Batch<'a> {
    // Fields drop in this order: readers may go on before the next writer.
    layer: Option<ArcRwLockWriteGuard<RawRwLock, Layer>>,
    writer: MutexGuard<'a, Writer>,
    state: OnceCell<Arc<State>>,
    shared: &'a Shared,
    was_idle: bool,
    /// Of the layer, before this unit.
    bytes_before: usize,
}

impl<'a> Batch<'a> {
    pub(super) fn new(shared: &'a Shared, writer: MutexGuard<'a, Writer>) -> Self {
        Batch { layer: None, writer, state: OnceCell::new(), shared, was_idle: false, bytes_before: 0 }
    }

    /// Hand over [`Bytes`] (or a `Vec`) to spare a copy; a slice of `'static` is not copied either.
    pub fn put(&mut self, bucket: Bucket, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        let (key, value) = (key.into(), value.into());
        self.layer().put(bucket, key, Some(value));
    }

    /// The same as [`Batch::put`] in bucket `key`, without an allocation for the key.
    pub fn put_revision(&mut self, key: RevisionKey, value: impl Into<Bytes>) {
        let value = value.into();
        self.layer().put_revision(key, Some(value));
    }

    pub fn delete(&mut self, bucket: Bucket, key: &[u8]) {
        match RevisionKey::decode(key).filter(|_| bucket == Bucket::Key) {
            Some(revision) => self.layer().put_revision(revision, None),
            None => self.layer().put(bucket, Bytes::copy_from_slice(key), None),
        }
    }

    /// Records the entry whose changes this batch holds, in the same commit. An index of zero is not recorded, and
    /// neither is a term of zero.
    pub fn set_consistent(&mut self, index: u64, term: u64) {
        if index > 0 {
            self.layer().consistent = Some(Consistent { index, term });
        }
    }

    /// How many files the backend had taken over when this unit began; it stays so while the unit lasts.
    pub fn generation(&self) -> u64 {
        self.writer.generation
    }

    /// Ends the unit and waits until it is durable.
    pub fn commit(self) -> Result<(), Failure> {
        let shared = self.shared;
        drop(self);
        shared.commit()
    }

    /// Ends the unit and begins another one, waiting for room as [`super::Backend::write`] does: for one who writes more than
    /// fits into memory, to a copy that nobody relies on until all of it is there. A crash may leave a part.
    pub fn split(&mut self) {
        self.end();
        self.layer = None;
        self.state = OnceCell::new();
        self.shared.wait_for_room(&mut self.writer);
    }

    /// Tells the committer.
    fn end(&self) {
        let Some(layer) = &self.layer else { return };
        let (ops, bytes) = (layer.ops, layer.bytes);
        self.shared.pending_bytes.fetch_add((bytes - self.bytes_before) as u64, Ordering::Relaxed);
        if self.was_idle && ops > 0 {
            self.shared.control.note_pending();
        }
        if ops >= self.shared.options.batch_limit || bytes >= self.shared.options.batch_bytes {
            self.shared.control.note_full();
        }
    }

    fn layer(&mut self) -> &mut Layer {
        let Batch { layer, writer, was_idle, bytes_before, .. } = self;
        layer.get_or_insert_with(|| {
            let layer = writer.active.write();
            *was_idle = layer.ops == 0;
            *bytes_before = layer.bytes;
            layer
        })
    }

    fn state(&self) -> &State {
        // Whatever state is current while the unit lasts has the same active layer, and the same contents below it.
        self.state.get_or_init(|| self.shared.state())
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl Read for Batch<'_> {
    fn get_with<R>(&self, bucket: Bucket, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let hit = match &self.layer {
            Some(layer) => layer.get(bucket, key),
            None => self.writer.active.get(bucket, key),
        };
        match hit {
            Some(value) => value.map(|v| f(&v)),
            None => self.state().get_below(bucket, key, f),
        }
    }

    fn scan(&self, bucket: Bucket, from: &[u8], to: &[u8], f: &mut Visit<'_>) {
        let active = match &self.layer {
            Some(layer) => layer.range(bucket, from, to),
            None => self.writer.active.read().range(bucket, from, to),
        };
        self.state().scan_below(active, bucket, from, to, f);
    }
}
