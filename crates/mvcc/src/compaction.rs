//! Removing old revisions, a little at a time.

use std::{
    ops::ControlFlow,
    sync::{Arc, Weak},
};

use failpoint::failpoint;
use storage::{
    Backend, Batch, Bucket, Read,
    schema::{RevisionKey, meta},
};

use crate::{Error, HashKv, Revision, Store, contents::Contents, hash::Hasher, store::Shared};

/// Keys of the index that one step visits at least.
const INDEX_STEP: usize = 10_000;

/// The part of a compaction that is done in the background: first the index, then the file. The owner calls
/// [`step`](CompactionJob::step) until it is done, and rests in between (etcd: 10 ms).
#[derive(Debug)]
pub struct CompactionJob {
    revision: i64,
    previous: i64,
    /// Whether the compaction before had finished, so that the hash of this one covers all it should.
    hash_is_whole: bool,
    removed: usize,
    /// What it is a compaction of: when another file was taken over, there is nothing left for it to do.
    contents: Weak<Contents>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Index { from: Box<[u8]>, keep: Vec<Revision> },
    File { from: RevisionKey, keep: Vec<Revision>, next_kept: usize, hasher: Box<Hasher> },
    Done,
}

/// How far a compaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: bool,
    /// Revisions removed so far.
    pub removed: usize,
    /// When done, the hash over what there was up to the revision; none if it was given up, because another file was
    /// taken over.
    pub hash: Option<HashKv>,
}

impl CompactionJob {
    pub(crate) fn begin(store: &Arc<Shared>, batch: &mut Batch<'_>, rev: i64) -> Result<Self, Error> {
        let contents = store.contents();
        let previous = contents.compact_revision();
        if rev <= previous {
            return Err(Error::Compacted { requested: rev, compact_revision: previous });
        }
        let current = store.revision();
        if rev > current {
            return Err(Error::FutureRevision { requested: rev, current });
        }
        let mut job = CompactionJob::resume(&contents, rev, previous);
        // What does not decode was not written by us at open; then the hash is of no use.
        job.hash_is_whole = match (meta::scheduled_compact_rev(batch), meta::finished_compact_rev(batch)) {
            (Ok(scheduled), Ok(finished)) => scheduled == finished,
            _ => false,
        };
        failpoint!("compactBeforeCommitScheduledCompact");
        meta::put_scheduled_compact_rev(batch, rev);
        failpoint!("compactAfterCommitScheduledCompact");
        contents.set_compact_revision(rev);
        Ok(job)
    }

    pub(crate) fn resume(contents: &Arc<Contents>, revision: i64, previous: i64) -> Self {
        let phase = Phase::Index { from: Box::default(), keep: Vec::new() };
        let contents = Arc::downgrade(contents);
        CompactionJob { revision, previous, hash_is_whole: false, removed: 0, contents, phase }
    }

    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Whether the next step visits the index rather than the file.
    pub fn is_in_index(&self) -> bool {
        matches!(self.phase, Phase::Index { .. })
    }

    /// Visits up to `limit` revisions of the file (etcd: 1000), or some thousand keys of the index.
    pub fn step(&mut self, store: &Store, limit: usize) -> Progress {
        let store = &store.shared;
        let mut progress = Progress { done: false, removed: 0, hash: None };
        let current = self.contents.upgrade().filter(|contents| Arc::ptr_eq(contents, &store.contents()));
        // Without an index everything would look as if it could go.
        let current = current.filter(|contents| contents.replay.is_none());
        let Some(contents) = current else {
            self.phase = Phase::Done;
            return Progress { done: true, removed: self.removed, hash: None };
        };
        self.phase = match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Index { from, mut keep } => {
                let next = contents.index.write().compact(&from, INDEX_STEP, self.revision, &mut keep);
                match next {
                    Some(from) => Phase::Index { from, keep },
                    None => self.begin_file(keep),
                }
            }
            Phase::File { from, keep, next_kept, hasher } => {
                let mut sweep = Sweep { keep: &keep, next_kept, hasher, removed: Vec::new(), next: from, seen: 0 };
                let swept = sweep.run(&store.backend, contents.generation, self.revision, limit.max(1));
                let Sweep { next_kept, hasher, removed, next, .. } = sweep;
                self.removed += removed.len();
                store.counters.compacted_revisions.add(removed.len());
                match swept {
                    Swept::Part => {
                        // No commit is forced here, unlike in etcd: the next one takes the deletions along.
                        failpoint!("compactBeforeCommitBatch");
                        failpoint!("compactAfterCommitBatch");
                        Phase::File { from: next, keep, next_kept, hasher }
                    }
                    Swept::Whole => {
                        failpoint!("compactAfterSetFinishedCompact");
                        progress.hash = Some(self.finish(store.revision(), &contents, *hasher));
                        Phase::Done
                    }
                    Swept::OtherFile => Phase::Done,
                }
            }
            Phase::Done => Phase::Done,
        };
        progress.done = matches!(self.phase, Phase::Done);
        progress.removed = self.removed;
        progress
    }

    fn begin_file(&self, mut keep: Vec<Revision>) -> Phase {
        keep.sort_unstable();
        let hasher = Box::new(Hasher::new(self.previous, self.revision, &keep));
        Phase::File { from: RevisionKey::default(), keep, next_kept: 0, hasher }
    }

    fn finish(&self, current: i64, contents: &Contents, hasher: Hasher) -> HashKv {
        let hash = hasher.finish(current);
        if self.hash_is_whole {
            contents.hashes.lock().store(hash);
        }
        hash
    }
}

/// One pass over a stretch of the file.
struct Sweep<'a> {
    keep: &'a [Revision],
    next_kept: usize,
    hasher: Box<Hasher>,
    removed: Vec<RevisionKey>,
    /// Where the next pass begins.
    next: RevisionKey,
    seen: usize,
}

/// How far a pass came.
enum Swept {
    Part,
    /// To the end, which it has recorded in the same batch.
    Whole,
    /// Another file was taken over, so nothing was done.
    OtherFile,
}

impl Sweep<'_> {
    fn run(&mut self, backend: &Backend, generation: u64, revision: i64, limit: usize) -> Swept {
        let mut batch = backend.write();
        // Asked inside the batch, because no file is taken over while it lasts.
        if batch.generation() != generation {
            return Swept::OtherFile;
        }
        failpoint!("compactAfterAcquiredBatchTxLock");
        let from = self.next.encode();
        let to = RevisionKey::new(revision + 1, 0).encode();
        batch.scan(Bucket::Key, &from, &to, &mut |key, value| {
            if let Some(at) = RevisionKey::decode(key) {
                self.visit(at, key, value);
            }
            self.seen += 1;
            if self.seen < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        for at in &self.removed {
            batch.delete(Bucket::Key, &at.encode());
        }
        let whole = self.seen < limit;
        if whole {
            failpoint!("compactBeforeSetFinishedCompact");
            meta::put_finished_compact_rev(&mut batch, revision);
        }
        if whole { Swept::Whole } else { Swept::Part }
    }

    fn visit(&mut self, at: RevisionKey, key: &[u8], value: &[u8]) {
        self.hasher.write(at, key, value);
        let revision = Revision::new(at.main, at.sub as u32);
        while self.keep.get(self.next_kept).is_some_and(|kept| *kept < revision) {
            self.next_kept += 1;
        }
        if self.keep.get(self.next_kept) != Some(&revision) {
            self.removed.push(at);
        }
        self.next = RevisionKey::new(at.main, at.sub + 1);
    }
}
