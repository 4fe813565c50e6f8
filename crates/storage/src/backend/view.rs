//! Reading: what is applied, wherever it is held.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;

use super::{
    file::FileView,
    layer::{Change, SharedLayer, overlay},
};
use crate::Bucket;

/// What a scan calls with each key and value; `Break` ends it.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Reading, alike from a view and inside a batch (which sees its own changes).
pub trait Read {
    /// Calls `f` on the value, without copying it.
    fn get_with<R>(&self, bucket: Bucket, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Option<R>;

    /// Visits keys in `from..to` (an empty `to` means to the end) in order.
    fn scan(&self, bucket: Bucket, from: &[u8], to: &[u8], f: &mut Visit<'_>);

    fn get(&self, bucket: Bucket, key: &[u8]) -> Option<Bytes> {
        self.get_with(bucket, key, Bytes::copy_from_slice)
    }
}

/// Where everything applied is to be found. Newer places hide older ones.
pub(super) struct State {
    /// Grows until it is frozen.
    pub active: SharedLayer,
    /// Being committed; changes no more.
    pub frozen: Option<SharedLayer>,
    pub file: FileView,
    /// How many files were taken over before this one.
    pub generation: u64,
}

/// A read view: what was applied when it was taken, and perhaps some units applied since. Each unit is seen whole or
/// not at all by one call of [`Read::get_with`] or [`Read::scan`].
///
/// It holds back the reuse of pages of the file, so take one for a request and let go of it soon.
#[derive(Clone)]
pub struct View {
    pub(super) state: Arc<State>,
}

impl View {
    /// Nothing but what a file holds.
    pub(super) fn of_file(file: FileView) -> Self {
        View { state: Arc::new(State { active: SharedLayer::default(), frozen: None, file, generation: 0 }) }
    }
}

impl Read for View {
    fn get_with<R>(&self, bucket: Bucket, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        // The value leaves the lock before `f` sees it, so `f` may read on, and the writer never waits for it.
        let hit = self.state.active.get(bucket, key);
        match hit {
            Some(value) => value.map(|v| f(&v)),
            None => self.state.get_below(bucket, key, f),
        }
    }

    fn scan(&self, bucket: Bucket, from: &[u8], to: &[u8], f: &mut Visit<'_>) {
        let active = self.state.active.read().range(bucket, from, to);
        self.state.scan_below(active, bucket, from, to, f);
    }
}

impl State {
    /// Reads under the active layer.
    pub(super) fn get_below<R>(&self, bucket: Bucket, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let hit = self.frozen.as_ref().and_then(|layer| layer.get(bucket, key));
        match hit {
            Some(value) => value.map(|v| f(&v)),
            None => self.file.get_with(bucket, key, f),
        }
    }

    /// Visits what the file holds with the frozen layer and the given `active` changes over it.
    pub(super) fn scan_below(&self, active: Vec<Change>, bucket: Bucket, from: &[u8], to: &[u8], f: &mut Visit<'_>) {
        let frozen = self.frozen.as_ref().map(|layer| layer.read().range(bucket, from, to)).unwrap_or_default();
        let mut changes = overlay(active, frozen).into_iter().peekable();
        let done = self.file.scan(bucket, from, to, &mut |key, value| {
            while let Some(change) = changes.next_if(|c| *c.key < *key) {
                visit(&change, f)?;
            }
            match changes.next_if(|c| *c.key == *key) {
                Some(change) => visit(&change, f),
                None => f(key, value),
            }
        });
        if done.is_continue() {
            let _ = changes.try_for_each(|change| visit(&change, f));
        }
    }
}

fn visit(change: &Change, f: &mut Visit<'_>) -> ControlFlow<()> {
    match &change.value {
        Some(value) => f(&change.key, value),
        None => ControlFlow::Continue(()),
    }
}
