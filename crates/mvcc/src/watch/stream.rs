//! A stream of watchers: its queue, and the ways to fill and empty it.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::{BufMut, Bytes};
use parking_lot::{Mutex, MutexGuard};
use prost::Message;
use proto::etcdserverpb::{ResponseHeader, WatchCreateRequest, WatchResponse, watch_create_request::FilterType};

use super::{event::Event, interest::Slot};
use crate::{End, KeyRange, raw_kv::varint_len, store::Shared};

/// Told that a stream has something to take. Called by the publisher, so it must not block.
pub trait Notify: Send + Sync {
    fn notify(&self);
}

impl<F: Fn() + Send + Sync> Notify for F {
    fn notify(&self) {
        self();
    }
}

/// What to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchSpec {
    /// 0: the stream chooses one.
    pub id: i64,
    pub key: Bytes,
    pub range_end: Bytes,
    /// 0: what comes after now.
    pub start_revision: i64,
    pub filters: Filters,
    pub prev_kv: bool,
}

/// What not to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    pub no_put: bool,
    pub no_delete: bool,
}

impl From<&WatchCreateRequest> for WatchSpec {
    fn from(req: &WatchCreateRequest) -> Self {
        let has = |filter: FilterType| req.filters.contains(&(filter as i32));
        WatchSpec {
            id: req.watch_id,
            // No key is smaller, so with a range end this is a watch of all before it.
            key: if req.key.is_empty() { Bytes::from_static(b"\0") } else { req.key.clone() },
            range_end: req.range_end.clone(),
            start_revision: req.start_revision,
            filters: Filters { no_put: has(FilterType::Noput), no_delete: has(FilterType::Nodelete) },
            prev_kv: req.prev_kv,
        }
    }
}

/// Why a watcher could not be made or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    #[error("the range of keys to watch is empty")]
    EmptyRange,
    #[error("the stream has a watcher with this id already")]
    DuplicateId,
    #[error("the start revision is negative")]
    NegativeRevision,
    #[error("the stream has no watcher with this id")]
    NotFound,
}

/// What [`WatchStream::next`] gives: events of one watcher, or its end, or progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchItem {
    /// -1 for progress of all watchers of the stream.
    pub watch_id: i64,
    /// Each an encoded `mvccpb.Event`. All events of a revision are in one item. None: progress, up to `revision`.
    pub events: Vec<Bytes>,
    /// For the header.
    pub revision: i64,
    /// Not 0: the watcher has ended, since what it is to read is compacted up to here.
    pub compact_revision: i64,
}

impl WatchItem {
    /// The whole as an encoded `WatchResponse`.
    pub fn encode(&self, header: ResponseHeader, out: &mut impl BufMut) {
        self.encode_fragment(header, 0..self.events.len(), false, out);
    }

    /// The `WatchResponse` with some of the events; `more` tells that others follow.
    pub fn encode_fragment(&self, header: ResponseHeader, events: Range<usize>, more: bool, out: &mut impl BufMut) {
        const TAG_EVENTS: u8 = 0x5a;
        out.put_slice(&self.frame(header, more).encode_to_vec());
        for event in &self.events[events] {
            out.put_u8(TAG_EVENTS);
            prost::encoding::encode_varint(event.len() as u64, out);
            out.put_slice(event);
        }
    }

    /// Bytes that [`encode_fragment`](Self::encode_fragment) writes.
    pub fn encoded_len(&self, header: ResponseHeader, events: Range<usize>, more: bool) -> usize {
        let one = |event: &Bytes| 1 + varint_len(event.len() as u64) + event.len();
        self.frame(header, more).encoded_len() + self.events[events].iter().map(one).sum::<usize>()
    }

    fn frame(&self, header: ResponseHeader, more: bool) -> WatchResponse {
        WatchResponse {
            header: Some(header),
            watch_id: self.watch_id,
            canceled: self.compact_revision != 0,
            compact_revision: self.compact_revision,
            fragment: more,
            ..Default::default()
        }
    }
}

/// A watcher, for those who deliver to it.
pub(crate) struct Watcher {
    pub id: i64,
    pub key: Bytes,
    pub range_end: Bytes,
    start_revision: i64,
    filters: Filters,
    prev_kv: bool,
    cancelled: AtomicBool,
    stream: Arc<StreamShared>,
}

/// One event is the common case.
pub(crate) enum Events {
    One(Arc<Event>),
    Many(Vec<Arc<Event>>),
}

impl Events {
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    fn as_slice(&self) -> &[Arc<Event>] {
        match self {
            Events::One(event) => std::slice::from_ref(event),
            Events::Many(events) => events,
        }
    }
}

pub(crate) struct StreamShared {
    pub inner: Mutex<Inner>,
    notify: Box<dyn Notify>,
}

/// Locked after the hub.
#[derive(Default)]
pub(crate) struct Inner {
    watchers: BTreeMap<i64, Entry>,
    next_id: i64,
    /// From the publisher.
    queue: VecDeque<Queued>,
    queue_bytes: usize,
    /// Counts what was ever put into and taken from `queue`.
    pushed: u64,
    popped: u64,
    /// From catching up: before anything of `queue`.
    pub ready: VecDeque<Queued>,
    pub unsynced: BTreeMap<i64, Unsynced>,
    /// Where choosing whom to catch up goes on.
    catch_up_after: i64,
    /// Queue and history take turns, so neither starves the other.
    history_next: bool,
    /// Whether to notify.
    armed: bool,
}

struct Entry {
    watcher: Arc<Watcher>,
    state: State,
}

impl Entry {
    /// Whether it has, or has queued, all that it is to be told up to the revision.
    fn is_synced_at(&self, revision: i64) -> bool {
        matches!(self.state, State::Synced(_)) && revision >= self.watcher.start_revision
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Synced(Slot),
    Unsynced,
    Compacted,
}

#[derive(Clone, Copy)]
pub(crate) struct Unsynced {
    /// The first revision not seen.
    pub min_revision: i64,
    /// What it has in the queue is before this count, and must be taken first.
    queued_before: u64,
}

pub(crate) enum Queued {
    Events {
        watcher: Arc<Watcher>,
        events: Events,
        revision: i64,
    },
    /// Of one watcher, or of all.
    Progress {
        watcher: Option<Arc<Watcher>>,
        revision: i64,
    },
    Compacted {
        watcher: Arc<Watcher>,
        compact_revision: i64,
    },
}

impl Queued {
    fn events(&self) -> &[Arc<Event>] {
        match self {
            Queued::Events { events, .. } => events.as_slice(),
            _ => &[],
        }
    }

    fn bytes(&self) -> usize {
        self.events().iter().map(|e| e.len()).sum()
    }
}

impl Watcher {
    /// Whether an event is for it, given that the key is.
    pub fn wants(&self, revision: i64, is_delete: bool) -> bool {
        let filtered = if is_delete { self.filters.no_delete } else { self.filters.no_put };
        revision >= self.start_revision && !filtered
    }

    pub fn range(&self) -> KeyRange<'_> {
        KeyRange::new(&self.key, &self.range_end)
    }

    /// Queues the events of a new revision. `false` if there is no room: then it is unsynced from this revision on.
    pub fn offer(&self, store: &Shared, events: Events, revision: i64) -> bool {
        let mut inner = self.stream.inner.lock();
        let Some(entry) = inner.watchers.get(&self.id) else { return false };
        let queued = Queued::Events { watcher: entry.watcher.clone(), events, revision };
        let bytes = queued.bytes();
        let full = inner.queue.len() >= store.options.watch_queue_items_max
            || inner.queue_bytes + bytes > store.options.watch_queue_bytes_max;
        if full && !inner.queue.is_empty() {
            inner.set_unsynced(self.id, revision);
            store.counters.slow_watchers.add(1);
            return false;
        }
        store.counters.pending_events.add(queued.events().len());
        inner.push(queued, bytes);
        self.stream.wake(inner);
        true
    }
}

impl StreamShared {
    /// Notifies, if the stream waits for it.
    pub fn wake(&self, mut inner: MutexGuard<'_, Inner>) {
        let armed = std::mem::take(&mut inner.armed);
        drop(inner);
        if armed {
            self.notify.notify();
        }
    }
}

impl Inner {
    fn push(&mut self, queued: Queued, bytes: usize) {
        self.queue.push_back(queued);
        self.queue_bytes += bytes;
        self.pushed += 1;
    }

    fn set_unsynced(&mut self, id: i64, min_revision: i64) {
        if let Some(entry) = self.watchers.get_mut(&id) {
            entry.state = State::Unsynced;
            self.unsynced.insert(id, Unsynced { min_revision, queued_before: self.pushed });
        }
    }

    /// Whether the watcher is there, and is this one.
    pub fn is_unsynced(&self, watcher: &Arc<Watcher>) -> bool {
        let same = |entry: &Entry| Arc::ptr_eq(&entry.watcher, watcher);
        self.unsynced.contains_key(&watcher.id) && self.watchers.get(&watcher.id).is_some_and(same)
    }

    pub fn set_synced(&mut self, id: i64, slot: Slot) {
        self.leave_unsynced(id, State::Synced(slot));
    }

    pub fn set_compacted(&mut self, id: i64) {
        self.leave_unsynced(id, State::Compacted);
    }

    fn leave_unsynced(&mut self, id: i64, state: State) {
        self.unsynced.remove(&id);
        if let Some(entry) = self.watchers.get_mut(&id) {
            entry.state = state;
        }
    }

    fn take(&mut self) -> Option<Queued> {
        if let Some(queued) = self.ready.pop_front() {
            return Some(queued);
        }
        loop {
            let queued = self.queue.pop_front()?;
            self.popped += 1;
            self.queue_bytes -= queued.bytes();
            self.history_next = true;
            if !self.is_untrue(&queued) {
                return Some(queued);
            }
        }
    }

    /// Whether it is progress of all, but a watcher came since that has still to be told of the past. A client that
    /// reconnects would go on after the progress, and miss it.
    fn is_untrue(&self, queued: &Queued) -> bool {
        match queued {
            Queued::Progress { watcher: None, revision } => self.unsynced.values().any(|u| u.min_revision <= *revision),
            _ => false,
        }
    }

    /// Whom to read history for now: one after the other gets a turn, and all that are ahead of it come along.
    fn take_turn(&mut self) -> Option<Vec<(Arc<Watcher>, i64)>> {
        if !self.ready.is_empty() || !(self.history_next || self.queue.is_empty()) {
            return None;
        }
        self.history_next = false;
        let may = |u: &Unsynced| u.queued_before <= self.popped;
        let after = self.unsynced.range(self.catch_up_after.saturating_add(1)..).find(|(_, u)| may(u));
        let (&first, base) = after.or_else(|| self.unsynced.iter().find(|(_, u)| may(u)))?;
        self.catch_up_after = first;
        let base = base.min_revision;
        let ahead = self.unsynced.iter().filter(|(_, u)| may(u) && u.min_revision >= base);
        let with_watcher = |(id, u): (&i64, &Unsynced)| Some((self.watchers.get(id)?.watcher.clone(), u.min_revision));
        Some(ahead.take(WATCHERS_PER_TURN).filter_map(with_watcher).collect())
    }
}

const WATCHERS_PER_TURN: usize = 512;

/// Watchers that share a way out. Dropping it ends them.
pub struct WatchStream {
    store: Arc<Shared>,
    shared: Arc<StreamShared>,
    /// Held by the one who takes.
    taking: Mutex<()>,
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

    /// Adds a watcher and gives its id. What it has to tell comes from [`next`](Self::next), also that its start is
    /// compacted.
    pub fn watch(&self, spec: WatchSpec) -> Result<i64, WatchError> {
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
        let id = inner.choose_id(spec.id)?;
        let start_revision = spec.start_revision;
        let watcher = Arc::new(self.watcher(id, spec));
        let state = if start_revision == 0 || start_revision > self.store.revision() {
            State::Synced(hub.synced.insert(&watcher.key, &watcher.range_end, watcher.clone()))
        } else {
            self.store.counters.slow_watchers.add(1);
            inner.unsynced.insert(id, Unsynced { min_revision: start_revision, queued_before: 0 });
            State::Unsynced
        };
        inner.watchers.insert(id, Entry { watcher, state });
        self.store.counters.watchers.add(1);
        drop(hub);
        if state == State::Unsynced {
            self.shared.wake(inner);
        }
        Ok(id)
    }

    /// Ends a watcher: nothing comes from it after this.
    pub fn cancel(&self, id: i64) -> Result<(), WatchError> {
        let mut hub = self.store.hub.lock();
        let mut inner = self.shared.inner.lock();
        let entry = inner.watchers.remove(&id).ok_or(WatchError::NotFound)?;
        inner.unsynced.remove(&id);
        entry.watcher.cancelled.store(true, Ordering::Relaxed);
        self.forget(&mut hub, &entry);
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
        let _taking = self.taking.lock();
        loop {
            let mut inner = self.shared.inner.lock();
            if let Some(turn) = inner.take_turn() {
                drop(inner);
                self.store.catch_up(&self.shared, turn);
                continue;
            }
            let Some(queued) = inner.take() else {
                // With the queue empty, whoever is unsynced has its turn.
                if inner.unsynced.is_empty() {
                    inner.armed = true;
                    return None;
                }
                continue;
            };
            drop(inner);
            self.store.counters.pending_events.sub(queued.events().len());
            if let Some(item) = self.item(queued) {
                return Some(item);
            }
        }
    }

    fn watcher(&self, id: i64, spec: WatchSpec) -> Watcher {
        Watcher {
            id,
            key: spec.key,
            range_end: spec.range_end,
            start_revision: spec.start_revision,
            filters: spec.filters,
            prev_kv: spec.prev_kv,
            cancelled: AtomicBool::new(false),
            stream: self.shared.clone(),
        }
    }

    fn item(&self, queued: Queued) -> Option<WatchItem> {
        match queued {
            Queued::Events { watcher, events, revision } => {
                let encoded = |event: &Arc<Event>| match watcher.prev_kv {
                    true => event.bytes_with_previous(&self.store),
                    false => event.bytes(),
                };
                watcher.is_active().then(|| WatchItem {
                    watch_id: watcher.id,
                    events: events.as_slice().iter().map(encoded).collect(),
                    revision,
                    compact_revision: 0,
                })
            }
            Queued::Compacted { watcher, compact_revision } => {
                let item = WatchItem { watch_id: watcher.id, compact_revision, ..Default::default() };
                watcher.is_active().then_some(item)
            }
            Queued::Progress { watcher: None, revision } => {
                Some(WatchItem { watch_id: -1, revision, ..Default::default() })
            }
            Queued::Progress { watcher: Some(watcher), revision } => {
                let item = WatchItem { watch_id: watcher.id, revision, ..Default::default() };
                watcher.is_active().then_some(item)
            }
        }
    }

    /// With the hub locked, so that nothing is published in between.
    fn queue_progress(
        &self,
        _hub: &mut super::Hub,
        mut inner: MutexGuard<'_, Inner>,
        watcher: Option<Arc<Watcher>>,
    ) -> bool {
        if inner.queue.len() >= self.store.options.watch_queue_items_max {
            return false;
        }
        inner.push(Queued::Progress { watcher, revision: self.store.revision() }, 0);
        self.shared.wake(inner);
        true
    }

    /// Takes a watcher out of the hub and of the numbers.
    fn forget(&self, hub: &mut super::Hub, entry: &Entry) {
        self.store.counters.watchers.sub(1);
        match entry.state {
            State::Synced(slot) => {
                hub.synced.remove(&entry.watcher.key, &entry.watcher.range_end, slot);
            }
            State::Unsynced => self.store.counters.slow_watchers.sub(1),
            State::Compacted => {}
        }
    }
}

impl Watcher {
    fn is_active(&self) -> bool {
        !self.cancelled.load(Ordering::Relaxed)
    }
}

impl Inner {
    fn choose_id(&mut self, wanted: i64) -> Result<i64, WatchError> {
        if wanted != 0 {
            let taken = self.watchers.contains_key(&wanted);
            return if taken { Err(WatchError::DuplicateId) } else { Ok(wanted) };
        }
        while self.watchers.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        let mut hub = self.store.hub.lock();
        let mut inner = std::mem::take(&mut *self.shared.inner.lock());
        for entry in std::mem::take(&mut inner.watchers).into_values() {
            self.forget(&mut hub, &entry);
        }
        let pending = inner.queue.iter().chain(&inner.ready).map(|q| q.events().len()).sum();
        self.store.counters.pending_events.sub(pending);
        self.store.counters.watch_streams.sub(1);
    }
}
