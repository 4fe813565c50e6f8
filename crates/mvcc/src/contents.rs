//! What a store keeps in memory of one file.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use parking_lot::{Mutex, RwLock};

use crate::{hash::Hashes, index::Index, replay::Replay, store::PublishedState, values::Tail};

/// All that belongs to one file, so that a reader who holds it never mixes two: when another file is taken over, it is
/// replaced as a whole.
#[derive(Debug)]
pub(crate) struct Contents {
    /// Of the file, as the backend counts them.
    pub generation: u64,
    pub index: RwLock<Index>,
    /// Moves before the index forgets anything, so a reader that asks afterwards knows whether it missed something.
    compact_revision: AtomicI64,
    pub hashes: Mutex<Hashes>,
    /// Instead of an index, where entries are replayed and nobody reads.
    pub replay: Option<Mutex<Replay>>,
}

impl Contents {
    pub(crate) fn new(generation: u64, index: Index, compact_revision: i64) -> Self {
        let (index, compact_revision) = (RwLock::new(index), AtomicI64::new(compact_revision));
        Contents { generation, index, compact_revision, hashes: Mutex::default(), replay: None }
    }

    pub(crate) fn replayed(generation: u64, replay: Replay, compact_revision: i64) -> Self {
        let replay = Some(Mutex::new(replay));
        Contents { replay, ..Contents::new(generation, Index::default(), compact_revision) }
    }

    pub(crate) fn compact_revision(&self) -> i64 {
        self.compact_revision.load(Ordering::SeqCst)
    }

    pub(crate) fn set_compact_revision(&self, revision: i64) {
        self.compact_revision.store(revision, Ordering::SeqCst);
    }

    /// As published first: everything is in the file.
    pub(crate) fn publish(self: Arc<Self>, revision: i64) -> PublishedState {
        PublishedState { revision, tail: Arc::new(Tail { revision: 0, changes: Vec::new(), contents: self }) }
    }
}
