//! Where stored values are read from: a view of the file with the newest request in memory, or a batch.

use std::sync::Arc;

use bytes::Bytes;
use storage::{Batch, Bucket, Read, View, schema::RevisionKey};

use crate::{Revision, contents::Contents, range::Values};

/// The changes of the newest request. Its batch may still be open when its revision is published, so a view need not
/// show them yet.
#[derive(Debug)]
pub(crate) struct Tail {
    pub revision: i64,
    /// By sub-revision.
    pub changes: Vec<TailChange>,
    /// Here, so that a reader takes hold of both at once.
    pub contents: Arc<Contents>,
}

#[derive(Debug)]
pub(crate) struct TailChange {
    pub tombstone: bool,
    pub raw: Bytes,
}

impl Tail {
    /// The keys and values of the file, as they will be.
    pub(crate) fn records(&self) -> impl Iterator<Item = (RevisionKey, &Bytes)> {
        self.changes.iter().enumerate().map(|(sub, change)| {
            let revision = Revision::new(self.revision, sub as u32);
            (if change.tombstone { revision.tombstone_key() } else { revision.put_key() }, &change.raw)
        })
    }
}

/// A view of the file that surely has everything up to `tail`.
pub(crate) struct Published {
    pub view: View,
    pub tail: Arc<Tail>,
}

impl Values for Published {
    fn with<R>(&self, revision: Revision, f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if revision.main == self.tail.revision {
            return self.tail.changes.get(revision.sub as usize).map(|change| f(&change.raw));
        }
        self.view.get_with(Bucket::Key, &revision.put_key().encode(), f)
    }
}

/// What a batch will leave behind.
pub(crate) struct InBatch<'a, 'b>(pub &'a Batch<'b>);

impl Values for InBatch<'_, '_> {
    fn with<R>(&self, revision: Revision, f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get_with(Bucket::Key, &revision.put_key().encode(), f)
    }
}
