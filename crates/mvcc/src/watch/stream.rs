//! A stream of watchers, as its owner uses it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::{Mutex, MutexGuard};

use super::{
    Hub,
    audience::Subject,
    item::WatchItem,
    queue::{Entry, Inner, Queued, State, StreamShared, Unsynced, Watcher},
    round::Round,
    spec::{Created, WatchError, WatchSpec},
};
use crate::{End, KeyRange, store::Shared};

/// Told that a stream has something to take. Called by the publisher, so it must not block.
pub trait Notify: Send + Sync {
    fn notify(&self);
}

impl<F: Fn() + Send + Sync> Notify for F {
    fn notify(&self) {
        self();
    }
}

/// Watchers that share a way out. Dropping it ends them.
pub struct WatchStream {
    store: Arc<Shared>,
    shared: Arc<StreamShared>,
    /// Held by the one who takes: what it has taken and not given yet, which goes before all else.
    taking: Mutex<Round>,
}

impl WatchStream {
    pub(crate) fn open(store: Arc<Shared>, notify: Box<dyn Notify>) -> Self {
        store.counters.watch_streams.add(1);
        let inner = Mutex::new(Inner { armed: true, ..Default::default() });
        WatchStream { store, shared: Arc::new(StreamShared { inner, notify }), taking: Mutex::default() }
    }

    /// The newest revision, for headers.
    pub fn revision(&self) -> i64 {
        self.store.revision()
    }

    /// Adds a watcher. Its events come from [`next`](Self::next), and so does the notice that its start revision is
    /// compacted.
    pub fn watch(&self, spec: WatchSpec) -> Result<Created, WatchError> {
        if let End::Before(end) = KeyRange::new(&spec.key, &spec.range_end).end
            && &spec.key[..] >= end
        {
            return Err(WatchError::EmptyRange);
        }
        if spec.start_revision < 0 {
            return Err(WatchError::NegativeRevision);
        }
        // With the hub locked no revision is published, so none is missed or told twice.
        let mut hub = self.store.hub.lock();
        let mut inner = self.shared.inner.lock();
        let created = Created { id: inner.choose_id(spec.id)?, revision: self.store.revision() };
        let id = created.id;
        let start_revision = spec.start_revision;
        let watcher = Arc::new(self.watcher(id, spec));
        let state = if start_revision == 0 {
            State::Synced(hub.join(&mut inner, &watcher))
        } else if start_revision > created.revision {
            State::Synced(hub.await_start(&watcher))
        } else {
            self.store.counters.slow_watchers.add(1);
            inner.unsynced.insert(id, Unsynced { min_revision: start_revision, queued_before: 0 });
            State::Unsynced
        };
        inner.watchers.insert(id, Entry { watcher, state });
        self.store.counters.watchers.add(1);
        drop(hub);
        if state == State::Unsynced {
            self.shared.wake(inner, &self.store.options);
        }
        Ok(created)
    }

    /// Ends a watcher: nothing comes from it after this.
    pub fn cancel(&self, id: i64) -> Result<(), WatchError> {
        let mut hub = self.store.hub.lock();
        let mut inner = self.shared.inner.lock();
        let entry = inner.watchers.remove(&id).ok_or(WatchError::NotFound)?;
        inner.unsynced.remove(&id);
        entry.watcher.cancelled.store(true, Ordering::Relaxed);
        if let State::Synced(slot) = entry.state {
            hub.leave(&mut inner, slot, &entry.watcher);
        }
        self.uncount(&entry);
        Ok(())
    }

    /// Queues the progress of one watcher, if it is synced.
    pub fn progress(&self, id: i64) -> bool {
        let mut hub = self.store.hub.lock();
        let inner = self.shared.inner.lock();
        let Some(entry) = inner.watchers.get(&id) else { return false };
        let watcher = entry.watcher.clone();
        entry.is_synced_at(self.store.revision()) && self.queue_progress(&mut hub, inner, Some(watcher))
    }

    /// Queues one progress for all watchers of the stream, under id -1, if all of them are synced.
    pub fn progress_all(&self) -> bool {
        let mut hub = self.store.hub.lock();
        let inner = self.shared.inner.lock();
        let revision = self.store.revision();
        let mut alive = inner.watchers.values().filter(|e| e.state != State::Compacted).peekable();
        let synced = alive.peek().is_some() && alive.all(|e| e.is_synced_at(revision));
        synced && self.queue_progress(&mut hub, inner, None)
    }

    /// The next thing to send, or `None`: then the stream's [`Notify`] will be called when there is one. Does a bounded
    /// amount of work.
    pub fn next(&self) -> Option<WatchItem> {
        let mut round = self.taking.lock();
        loop {
            if let Some(item) = round.next() {
                return Some(item);
            }
            let mut inner = self.shared.inner.lock();
            if let Some(turn) = inner.take_turn() {
                drop(inner);
                self.store.catch_up(&self.shared, turn);
                continue;
            }
            let Some(queued) = inner.take() else {
                // With the queue empty, whoever is unsynced has its turn.
                if inner.unsynced.is_empty() {
                    (inner.armed, inner.hushed) = (true, false);
                    return None;
                }
                continue;
            };
            drop(inner);
            self.store.counters.pending_events.sub(queued.pending());
            match queued {
                Queued::Events { members, events, revision, .. } => {
                    *round = Round::new(&self.store, members, events.as_slice(), revision);
                }
                other => {
                    if let Some(item) = control(&other) {
                        return Some(item);
                    }
                }
            }
        }
    }

    /// After [`next`](Self::next) gave `None`: lets events gather. The stream's [`Notify`] is not called, unless the
    /// queue becomes half full, until `next` has given `None` again. Whoever calls this comes back by himself.
    pub fn hush(&self) {
        let mut inner = self.shared.inner.lock();
        (inner.armed, inner.hushed) = (false, true);
    }

    /// Whether so much has gathered that it should be taken now.
    pub fn is_half_full(&self) -> bool {
        self.shared.inner.lock().is_half_full(&self.store.options)
    }

    fn watcher(&self, id: i64, spec: WatchSpec) -> Watcher {
        Watcher {
            id,
            start_revision: spec.start_revision,
            subject: Subject { key: spec.key, range_end: spec.range_end, filters: spec.filters, prev_kv: spec.prev_kv },
            cancelled: AtomicBool::new(false),
            stream: self.shared.clone(),
        }
    }

    /// With the hub locked, so that nothing is published in between.
    fn queue_progress(&self, _hub: &mut Hub, mut inner: MutexGuard<'_, Inner>, watcher: Option<Arc<Watcher>>) -> bool {
        if inner.queue.len() >= self.store.options.watch_queue_items_max {
            return false;
        }
        inner.push(Queued::Progress { watcher, revision: self.store.revision() });
        self.shared.wake(inner, &self.store.options);
        true
    }

    /// Takes a watcher out of the numbers.
    fn uncount(&self, entry: &Entry) {
        self.store.counters.watchers.sub(1);
        if entry.state == State::Unsynced {
            self.store.counters.slow_watchers.sub(1);
        }
    }
}

/// Progress, or the end of a watcher; `None` if the watcher is there no more.
fn control(queued: &Queued) -> Option<WatchItem> {
    let (watcher, item) = match queued {
        Queued::Compacted { watcher, compact_revision } => {
            (Some(watcher), WatchItem { compact_revision: *compact_revision, ..Default::default() })
        }
        Queued::Progress { watcher, revision } => {
            (watcher.as_ref(), WatchItem { revision: *revision, ..Default::default() })
        }
        Queued::Events { .. } => return None,
    };
    let watch_id = watcher.map_or(-1, |watcher| watcher.id);
    watcher.is_none_or(|watcher| watcher.is_active()).then_some(WatchItem { watch_id, ..item })
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        let mut hub = self.store.hub.lock();
        let mut inner = std::mem::take(&mut *self.shared.inner.lock());
        for entry in std::mem::take(&mut inner.watchers).into_values() {
            // The audience goes with its first member: all of them are of this stream.
            if let State::Synced(slot) = entry.state {
                hub.close(&mut inner, slot, &entry.watcher.subject);
            }
            self.uncount(&entry);
        }
        let pending = inner.queue.iter().chain(&inner.ready).map(Queued::pending).sum();
        self.store.counters.pending_events.sub(pending);
        self.store.counters.watch_streams.sub(1);
    }
}
