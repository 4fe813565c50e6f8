//! The store: what is published to readers, and the way in for everything else.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use proto::etcdserverpb::{CompactionRequest, RangeRequest, TxnRequest, TxnResponse};
use storage::{Backend, Batch};

use crate::{
    CompactionJob, Error, HashKv, Leases, OpenError, RangeResult, Stats, WriteTxn,
    hash::Hashes,
    index::Index,
    range::{At, Count},
    restore,
    stats::Counters,
    txn,
    values::{Published, Tail},
    watch::{Hub, Notify, WatchStream},
};

/// Bounds of work and memory.
#[derive(Clone, Debug)]
pub struct Options {
    /// Responses that wait in one watch stream before its watchers read history instead.
    pub watch_queue_items_max: usize,
    /// Bytes of events that wait in one watch stream, likewise.
    pub watch_queue_bytes_max: usize,
    /// Bytes of events read from history at a time for the watchers of one stream.
    pub watch_catch_up_bytes_max: usize,
    /// Changes visited in history at a time for the watchers of one stream.
    pub watch_catch_up_changes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            watch_queue_items_max: 1024,
            watch_queue_bytes_max: 8 << 20,
            watch_catch_up_bytes_max: 1 << 20,
            watch_catch_up_changes_max: 10_000,
        }
    }
}

/// Revisions of keys and values on a backend. A cheap handle on what all clones share.
///
/// One writer (the apply path) and any number of readers. A reader works at the revision that was newest when it
/// began, and never waits for the writer longer than one change to the index takes.
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub backend: Backend,
    pub options: Options,
    pub index: RwLock<Index>,
    pub published: RwLock<PublishedState>,
    /// Moves before the index forgets anything, so a reader that asks afterwards knows whether it missed something.
    pub compact_revision: AtomicI64,
    /// Held while a revision is published, so that a watcher is told of it exactly once. Taken before `published`.
    pub hub: Mutex<Hub>,
    pub hashes: Mutex<Hashes>,
    pub counters: Counters,
    pub pending_compaction: Mutex<Option<CompactionJob>>,
}

pub(crate) struct PublishedState {
    pub revision: i64,
    pub tail: Arc<Tail>,
}

impl Store {
    /// Reads the index from the file. `attach` is called for each key that has a lease, in the order of keys.
    pub fn open(backend: Backend, options: Options, mut attach: impl FnMut(i64, &Bytes)) -> Result<Store, OpenError> {
        let restored = restore::read(&backend.view())?;
        for (key, lease) in &restored.leases {
            attach(*lease, key);
        }
        let pending = restored.pending_compaction();
        let shared = Shared {
            backend,
            options,
            index: RwLock::new(restored.index),
            published: RwLock::new(PublishedState { revision: restored.revision, tail: Arc::default() }),
            compact_revision: AtomicI64::new(restored.compact_revision),
            hub: Mutex::default(),
            hashes: Mutex::default(),
            counters: Counters::default(),
            pending_compaction: Mutex::new(pending),
        };
        Ok(Store { shared: Arc::new(shared) })
    }

    /// The newest revision; 1 in an empty store.
    pub fn revision(&self) -> i64 {
        self.shared.revision()
    }

    /// Reads before this revision fail; -1 if nothing was ever compacted.
    pub fn compact_revision(&self) -> i64 {
        self.shared.compact_revision()
    }

    /// Reads at the newest revision, or at the one asked for.
    pub fn range(&self, req: &RangeRequest) -> Result<RangeResult, Error> {
        self.range_with(req, Count::All)
    }

    /// As [`range`](Self::range). With [`Count::Read`] keys past the limit are not counted: for pages of a long range.
    pub fn range_with(&self, req: &RangeRequest, count: Count) -> Result<RangeResult, Error> {
        self.shared.counters.ranges.add(1);
        self.shared.read(req.revision <= 0, |at| at.range(req, count))
    }

    /// Runs a transaction without writes, all of it at one revision.
    pub fn read_txn(&self, req: &TxnRequest) -> Result<TxnResponse, Error> {
        if !txn::is_read_only(req) {
            return Err(Error::NotReadOnly);
        }
        self.shared.counters.txns.add(1);
        self.shared.read(true, |at| txn::run_read(at, &self.shared.counters, req))
    }

    /// Begins the changes of one request. There is one at a time, and one for a batch: all its changes get the next
    /// revision, and are seen together when it ends.
    pub fn begin<'a, 'b>(&'a self, batch: &'a mut Batch<'b>, leases: &'a mut dyn Leases) -> WriteTxn<'a, 'b> {
        WriteTxn::begin(&self.shared, batch, leases)
    }

    /// What applying a compaction does at once: from now on reads before `rev` fail. The job removes old revisions
    /// from index and file; jobs are to be run in the order they are given out, one at a time.
    pub fn compact(&self, batch: &mut Batch<'_>, rev: i64) -> Result<CompactionJob, Error> {
        CompactionJob::begin(&self.shared, batch, rev)
    }

    /// As [`compact`](Self::compact), for the request.
    pub fn compact_request(&self, batch: &mut Batch<'_>, req: &CompactionRequest) -> Result<CompactionJob, Error> {
        self.compact(batch, req.revision)
    }

    /// A compaction that the last run of this member did not finish; given out once.
    pub fn pending_compaction(&self) -> Option<CompactionJob> {
        self.shared.pending_compaction.lock().take()
    }

    /// The hash of all revisions up to `rev` (0: the newest), equal on all members.
    pub fn hash_kv(&self, rev: i64) -> Result<HashKv, Error> {
        self.shared.hash_kv(rev)
    }

    /// The hashes that finished compactions left, oldest first: members compare them.
    pub fn compaction_hashes(&self) -> Vec<HashKv> {
        self.shared.compaction_hashes()
    }

    /// Opens a stream of watchers. `notify` is called when [`WatchStream::next`] has something again after it had
    /// nothing.
    pub fn watch_stream(&self, notify: impl Notify + 'static) -> WatchStream {
        WatchStream::open(self.shared.clone(), Box::new(notify))
    }

    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

impl Shared {
    pub fn revision(&self) -> i64 {
        self.published.read().revision
    }

    pub fn compact_revision(&self) -> i64 {
        self.compact_revision.load(Ordering::SeqCst)
    }

    /// The newest revision, and a place to read values up to it.
    pub fn snapshot(&self) -> (i64, Published) {
        let state = self.published.read();
        let (revision, tail) = (state.revision, state.tail.clone());
        drop(state);
        // Opened after: whatever came before `tail` is in the view by now, because batches exclude one another.
        (revision, Published { view: self.backend.view(), tail })
    }

    /// Runs a read at the newest revision. If `newest` is all it needs, a compaction that overtook it is no reason to
    /// fail: it starts again.
    pub fn read<T>(&self, newest: bool, f: impl Fn(&At<'_, Published>) -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let (current, values) = self.snapshot();
            let at = At { index: &self.index, values: &values, current, compact_revision: &|| self.compact_revision() };
            match f(&at) {
                Err(Error::Compacted { requested, .. }) if newest && requested == current => continue,
                other => return other,
            }
        }
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Store>();
    shared_between_threads::<WatchStream>();
    shared_between_threads::<CompactionJob>();
};
