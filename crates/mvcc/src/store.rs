//! The store: what is published to readers, and the way in for everything else.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use proto::etcdserverpb::{CompactionRequest, RangeRequest, TxnRequest, TxnResponse};
use storage::{Backend, Batch};

use crate::{
    CompactionJob, Error, HashKv, Leases, OpenError, RangeResult, Stats, WriteTxn,
    contents::Contents,
    range::{At, Count},
    replay::{self, Replay},
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
    /// Bytes of events up to which the revisions that wait for a watcher share one response; 0: none do.
    pub watch_merge_bytes_max: usize,
    /// Bytes of events read from history at a time for the watchers of one stream.
    pub watch_catch_up_bytes_max: usize,
    /// Changes visited in history at a time for the watchers of one stream.
    pub watch_catch_up_changes_max: usize,
    /// Bytes of keys in memory in a [replay](Store::open_replay).
    pub replay_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            watch_queue_items_max: 1024,
            watch_queue_bytes_max: 8 << 20,
            watch_merge_bytes_max: 16 << 10,
            watch_catch_up_bytes_max: 1 << 20,
            watch_catch_up_changes_max: 10_000,
            replay_bytes_max: 16 << 20,
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
    pub published: RwLock<PublishedState>,
    /// Held while a revision is published, so that a watcher is told of it exactly once. Taken before `published`.
    pub hub: Mutex<Hub>,
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
        let view = backend.view();
        let restored = restore::read(&view)?;
        for (key, lease) in &restored.leases {
            attach(*lease, key);
        }
        let (contents, revision, pending) = restored.into_contents(view.generation());
        drop(view);
        Ok(Store::of(backend, options, contents.publish(revision), pending))
    }

    fn of(backend: Backend, options: Options, published: PublishedState, pending: Option<CompactionJob>) -> Store {
        let shared = Shared {
            backend,
            options,
            published: RwLock::new(published),
            hub: Mutex::default(),
            counters: Counters::default(),
            pending_compaction: Mutex::new(pending),
        };
        Store { shared: Arc::new(shared) }
    }

    /// For one who only writes, entry after entry, to a copy that nobody relies on before the last one: memory does not grow
    /// with the number of keys, nor with what one request does to them. `wanted` says which keys, and `leased` which leases'
    /// keys, requests may ask for; the others seem not to be there. No answer is complete: ranges are checked, but not read,
    /// and nothing tells what was deleted. Compactions are written down, but their jobs do nothing. The store knows which
    /// keys hang on leases; it tells nobody.
    pub fn open_replay(
        backend: Backend,
        options: Options,
        wanted: &dyn Fn(&[u8]) -> bool,
        leased: &dyn Fn(i64) -> bool,
    ) -> Result<Store, OpenError> {
        let view = backend.view();
        let (compact_revision, _) = restore::compactions(&view)?;
        let (replay, revision) = Replay::read(&backend, options.replay_bytes_max, wanted, leased)?;
        let contents = Arc::new(Contents::replayed(view.generation(), replay, compact_revision));
        Ok(Store::of(backend, options, contents.publish(revision.max(compact_revision)), None))
    }

    /// In a [replay](Self::open_replay): calls `f` on the keys of a lease, in order, until it gives `false`.
    pub fn each_key_of(&self, lease: i64, f: &mut dyn FnMut(&[u8]) -> bool) {
        if let Some(replay) = &self.shared.contents().replay {
            replay::each_key_of(replay, lease, f);
        }
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
    /// from index and file; jobs are to be run in the order they are given out, one at a time. A job from before a
    /// [`reload`](Self::reload) does nothing.
    pub fn compact(&self, batch: &mut Batch<'_>, rev: i64) -> Result<CompactionJob, Error> {
        CompactionJob::begin(&self.shared, batch, rev)
    }

    /// As [`compact`](Self::compact), for the request.
    pub fn compact_request(&self, batch: &mut Batch<'_>, req: &CompactionRequest) -> Result<CompactionJob, Error> {
        self.compact(batch, req.revision)
    }

    /// A compaction that the file says is not finished, by the last run of this member or by the one that sent the
    /// file; given out once after opening and after each reload.
    pub fn pending_compaction(&self) -> Option<CompactionJob> {
        self.shared.pending_compaction.lock().take()
    }

    /// The hash of all that is there now. Unlike [`hash_kv`](Self::hash_kv) it is never one that a compaction left.
    pub fn newest_hash(&self) -> Result<HashKv, Error> {
        self.shared.compute_hash(0)
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
    pub(crate) fn revision(&self) -> i64 {
        self.published.read().revision
    }

    pub(crate) fn compact_revision(&self) -> i64 {
        self.published.read().tail.contents.compact_revision()
    }

    pub(crate) fn contents(&self) -> Arc<Contents> {
        self.published.read().tail.contents.clone()
    }

    /// The newest revision, and a place to read values up to it.
    pub(crate) fn snapshot(&self) -> (i64, Published) {
        loop {
            let state = self.published.read();
            let (revision, tail) = (state.revision, state.tail.clone());
            drop(state);
            // Opened after: whatever came before `tail` is in the view by now, because batches exclude one another.
            if let Some(view) = self.backend.view_of(tail.contents.generation) {
                return (revision, Published { view, tail });
            }
            // The file was replaced and forgotten meanwhile, which is done after the new contents are published.
        }
    }

    /// Runs a read at the newest revision. If `newest` is all it needs, a compaction that overtook it is no reason to
    /// fail: it starts again.
    pub(crate) fn read<T>(&self, newest: bool, f: impl Fn(&At<'_, Published>) -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let (current, values) = self.snapshot();
            let contents = &*values.tail.contents;
            let compact_revision = || contents.compact_revision();
            let at = At {
                index: &contents.index,
                values: &values,
                current,
                compact_revision: &compact_revision,
                replay: None,
            };
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
