//! The inside of a stream: its watchers, and what waits to be taken.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};

use super::{
    audience::{Audience, Members, Subject},
    event::Event,
    interest::Slot,
    spec::WatchError,
    stream::Notify,
};
use crate::{Options, store::Shared};

const WATCHERS_PER_TURN: usize = 512;

/// A watcher, for those who deliver to it.
pub(crate) struct Watcher {
    pub id: i64,
    pub subject: Subject,
    pub start_revision: i64,
    pub cancelled: AtomicBool,
    pub stream: Arc<StreamShared>,
}

/// One event is the common case.
pub(crate) enum Events {
    One(Arc<Event>),
    Many(Vec<Arc<Event>>),
}

impl Events {
    pub(crate) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.as_slice().iter().map(|e| e.len()).sum()
    }

    fn append(&mut self, later: Events) {
        if let Events::One(first) = self {
            *self = Events::Many(vec![first.clone()]);
        }
        match (self, later) {
            (Events::Many(events), Events::One(event)) => events.push(event),
            (Events::Many(events), Events::Many(more)) => events.extend(more),
            (Events::One(_), _) => unreachable!("made into many above"),
        }
    }

    pub(crate) fn as_slice(&self) -> &[Arc<Event>] {
        match self {
            Events::One(event) => std::slice::from_ref(event),
            Events::Many(events) => events,
        }
    }
}

pub(crate) struct StreamShared {
    pub inner: Mutex<Inner>,
    pub notify: Box<dyn Notify>,
}

/// Locked after the hub.
#[derive(Default)]
pub(crate) struct Inner {
    pub watchers: BTreeMap<i64, Entry>,
    /// Whom a watcher that becomes synced may join.
    pub audiences: BTreeMap<Subject, Slot>,
    pub next_id: i64,
    /// From the publisher.
    pub queue: VecDeque<Queued>,
    pub queue_bytes: usize,
    /// Counts what was ever put into and taken from `queue`.
    pub pushed: u64,
    pub popped: u64,
    /// `pushed` when the newest progress was: what is told after it must not move before it.
    pub progress_at: u64,
    /// From catching up: before anything of `queue`.
    pub ready: VecDeque<Queued>,
    pub unsynced: BTreeMap<i64, Unsynced>,
    /// Where choosing whom to catch up goes on.
    pub catch_up_after: i64,
    /// Queue and history take turns, so neither starves the other.
    pub history_next: bool,
    /// Whether to notify.
    pub armed: bool,
    /// Whether to notify when the queue is half full.
    pub hushed: bool,
}

pub(crate) struct Entry {
    pub watcher: Arc<Watcher>,
    pub state: State,
}

impl Entry {
    /// Whether it has, or has queued, all that it is to be told up to the revision.
    pub(crate) fn is_synced_at(&self, revision: i64) -> bool {
        matches!(self.state, State::Synced(_)) && revision >= self.watcher.start_revision
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// With the audience it belongs to.
    Synced(Slot),
    Unsynced,
    Compacted,
}

#[derive(Clone, Copy)]
pub(crate) struct Unsynced {
    /// The first revision not seen.
    pub min_revision: i64,
    /// What it has in the queue is before this count, and must be taken first.
    pub queued_before: u64,
}

pub(crate) enum Queued {
    Events {
        members: Members,
        events: Events,
        /// Of the last event, or later.
        revision: i64,
        bytes: usize,
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
    /// How many events watchers will get of it.
    pub(crate) fn pending(&self) -> usize {
        match self {
            Queued::Events { members, events, .. } => members.len() * events.as_slice().len(),
            _ => 0,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Queued::Events { bytes, .. } => *bytes,
            _ => 0,
        }
    }
}

impl Watcher {
    /// Whether an event is for it, given that the key is.
    pub(crate) fn wants(&self, revision: i64, is_delete: bool) -> bool {
        revision >= self.start_revision && self.subject.wants(is_delete)
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.cancelled.load(Ordering::Relaxed)
    }
}

impl Audience {
    /// Queues the events of a new revision. `false` if there is no room. `inner` is that of its stream; who locked it
    /// wakes the stream.
    pub(crate) fn offer(&self, store: &Shared, inner: &mut Inner, events: Events, revision: i64) -> bool {
        let options = &store.options;
        let (count, bytes) = (events.as_slice().len(), events.bytes());
        let too_large = inner.queue_bytes + bytes > options.watch_queue_bytes_max && !inner.queue.is_empty();
        let rest = if too_large { Some(events) } else { inner.merge(self, options, events, revision, bytes) };
        if let Some(events) = rest {
            let full = inner.queue.len() >= options.watch_queue_items_max && !inner.queue.is_empty();
            if full || too_large {
                return false;
            }
            inner.push(Queued::Events { members: self.members.clone(), events, revision, bytes });
            self.queued_at.set(inner.pushed);
        }
        store.counters.pending_events.add(count * self.members.len());
        true
    }
}

impl StreamShared {
    /// Notifies, if the stream waits for it.
    pub(crate) fn wake(&self, mut inner: MutexGuard<'_, Inner>, options: &Options) {
        let notify = inner.armed || inner.hushed && inner.is_half_full(options);
        if notify {
            (inner.armed, inner.hushed) = (false, false);
        }
        drop(inner);
        if notify {
            self.notify.notify();
        }
    }
}

impl Inner {
    pub(crate) fn choose_id(&mut self, wanted: i64) -> Result<i64, WatchError> {
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

    pub(crate) fn push(&mut self, queued: Queued) {
        self.queue_bytes += queued.bytes();
        self.pushed += 1;
        if let Queued::Progress { .. } = queued {
            self.progress_at = self.pushed;
        }
        self.queue.push_back(queued);
    }

    /// Appends a revision to what waits for the same members, and gives it back if that cannot be. Who wants previous
    /// values gets a response for each, since how large they are is not known yet.
    fn merge(
        &mut self,
        audience: &Audience,
        options: &Options,
        events: Events,
        revision: i64,
        bytes: usize,
    ) -> Option<Events> {
        let at = audience.queued_at.get();
        if audience.subject.prev_kv || at <= self.popped.max(self.progress_at) {
            return Some(events);
        }
        let index = (at - self.popped - 1) as usize;
        match self.queue.get_mut(index) {
            Some(Queued::Events { members, events: before, revision: newest, bytes: size })
                if Arc::ptr_eq(members, &audience.members) && *size + bytes <= options.watch_merge_bytes_max =>
            {
                before.append(events);
                *newest = revision;
                *size += bytes;
                self.queue_bytes += bytes;
                None
            }
            _ => Some(events),
        }
    }

    /// Whether it is time to take, for who wants to let events gather.
    pub(crate) fn is_half_full(&self, options: &Options) -> bool {
        self.queue.len() >= options.watch_queue_items_max / 2 || self.queue_bytes >= options.watch_queue_bytes_max / 2
    }

    pub(crate) fn set_unsynced(&mut self, id: i64, min_revision: i64) {
        if let Some(entry) = self.watchers.get_mut(&id) {
            entry.state = State::Unsynced;
            self.unsynced.insert(id, Unsynced { min_revision, queued_before: self.pushed });
        }
    }

    /// Whether the watcher is there, and is this one.
    pub(crate) fn is_unsynced(&self, watcher: &Arc<Watcher>) -> bool {
        let same = |entry: &Entry| Arc::ptr_eq(&entry.watcher, watcher);
        self.unsynced.contains_key(&watcher.id) && self.watchers.get(&watcher.id).is_some_and(same)
    }

    pub(crate) fn set_synced(&mut self, id: i64, slot: Slot) {
        self.leave_unsynced(id, State::Synced(slot));
    }

    pub(crate) fn set_compacted(&mut self, id: i64) {
        self.leave_unsynced(id, State::Compacted);
    }

    fn leave_unsynced(&mut self, id: i64, state: State) {
        self.unsynced.remove(&id);
        if let Some(entry) = self.watchers.get_mut(&id) {
            entry.state = state;
        }
    }

    pub(crate) fn take(&mut self) -> Option<Queued> {
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
    pub(crate) fn take_turn(&mut self) -> Option<Vec<(Arc<Watcher>, i64)>> {
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
