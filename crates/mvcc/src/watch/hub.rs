//! Publishing a revision to readers and to those who watch.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::MutexGuard;

use super::{
    event::Event,
    interest::{Interest, Slot},
    queue::{Events, Inner, StreamShared, Watcher},
};
use crate::{store::Shared, values::Tail};

/// The watchers that are synced.
#[derive(Default)]
pub(crate) struct Hub {
    pub synced: Interest<Arc<Watcher>>,
}

impl Shared {
    /// Makes the changes of a request visible, and queues their events. `keys` are those of the changes.
    pub fn publish(&self, tail: Tail, keys: Vec<Bytes>) {
        let tail = Arc::new(tail);
        let mut hub = self.hub.lock();
        {
            let mut published = self.published.write();
            published.revision = tail.revision;
            published.tail = tail.clone();
        }
        self.counters.events.add(keys.len());
        if !hub.synced.is_empty() {
            hub.deliver(self, &tail, &keys);
        }
    }
}

impl Hub {
    fn deliver(&mut self, store: &Shared, tail: &Tail, keys: &[Bytes]) {
        let mut deliveries = self.match_watchers(tail, keys);
        // By watcher, each with its events in order.
        deliveries.sort_by_key(|d| d.0);
        for (slot, watcher) in self.offer(store, tail.revision, &deliveries) {
            self.synced.remove(&watcher.key, &watcher.range_end, slot);
        }
    }

    /// Gives the watchers that found no room.
    fn offer(&self, store: &Shared, revision: i64, deliveries: &[(Slot, Arc<Event>)]) -> Vec<(Slot, Arc<Watcher>)> {
        let mut behind = Vec::new();
        // Watchers of a stream are neighbours as a rule: it is locked once for them all, and notified when they have
        // their events, so that it takes these in one go.
        let mut locked: Option<(&StreamShared, MutexGuard<'_, Inner>)> = None;
        for of_one in deliveries.chunk_by(|a, b| a.0 == b.0) {
            let slot = of_one[0].0;
            let Some(watcher) = self.synced.get(slot) else { continue };
            let stream = &*watcher.stream;
            let mut inner = match locked.take() {
                Some((same, inner)) if std::ptr::eq(same, stream) => inner,
                other => {
                    wake(store, other);
                    stream.inner.lock()
                }
            };
            if !watcher.offer(store, &mut inner, events(of_one), revision) {
                behind.push((slot, watcher.clone()));
            }
            locked = Some((stream, inner));
        }
        wake(store, locked);
        behind
    }

    fn match_watchers(&self, tail: &Tail, keys: &[Bytes]) -> Vec<(Slot, Arc<Event>)> {
        let mut deliveries = Vec::new();
        for (change, key) in tail.changes.iter().zip(keys) {
            // Encoded once, when the first watcher is found.
            let mut event = None;
            self.synced.each(key, &mut |slot, watcher| {
                if !watcher.wants(tail.revision, change.tombstone) {
                    return;
                }
                if event.is_none() {
                    event = Event::new(tail.revision, change.tombstone, &change.raw).map(Arc::new);
                }
                deliveries.extend(event.clone().map(|event| (slot, event)));
            });
        }
        deliveries
    }
}

fn events(deliveries: &[(Slot, Arc<Event>)]) -> Events {
    match deliveries {
        [(_, event)] => Events::One(event.clone()),
        many => Events::Many(many.iter().map(|(_, event)| event.clone()).collect()),
    }
}

fn wake(store: &Shared, locked: Option<(&StreamShared, MutexGuard<'_, Inner>)>) {
    if let Some((stream, inner)) = locked {
        stream.wake(inner, &store.options);
    }
}
