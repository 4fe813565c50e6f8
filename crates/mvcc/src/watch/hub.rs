//! Publishing a revision to readers and to those who watch.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::MutexGuard;

use super::{
    audience::Audience,
    event::Event,
    interest::{Interest, Slot},
    queue::{Events, Inner, StreamShared},
};
use crate::{store::Shared, values::Tail};

/// The watchers that are synced, by audiences.
#[derive(Default)]
pub(crate) struct Hub {
    pub synced: Interest<Audience>,
}

impl Shared {
    /// Makes the changes of a request visible, and queues their events. `keys` are those of the changes.
    pub(crate) fn publish(&self, tail: Tail, keys: Vec<Bytes>) {
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
        // By audience, each with its events in order.
        deliveries.sort_by_key(|d| d.0);
        for slot in self.offer(store, tail.revision, &deliveries) {
            self.fall_behind(store, slot, tail.revision);
        }
    }

    /// The members have to read history from a revision on.
    pub(crate) fn fall_behind(&mut self, store: &Shared, slot: Slot, revision: i64) {
        let Some(audience) = self.synced.get(slot) else { return };
        let (stream, subject) = (audience.stream.clone(), audience.subject.clone());
        let mut inner = stream.inner.lock();
        let Some(audience) = self.close(&mut inner, slot, &subject) else { return };
        for watcher in audience.members.iter() {
            inner.set_unsynced(watcher.id, revision);
        }
        store.counters.slow_watchers.add(audience.members.len());
        stream.wake(inner, &store.options);
    }

    /// Gives the audiences that found no room.
    fn offer(&self, store: &Shared, revision: i64, deliveries: &[(Slot, Arc<Event>)]) -> Vec<Slot> {
        let mut behind = Vec::new();
        // Audiences of a stream are neighbours as a rule: it is locked once for them all, and notified when they have
        // their events, so that it takes these in one go.
        let mut locked: Option<(&StreamShared, MutexGuard<'_, Inner>)> = None;
        for of_one in deliveries.chunk_by(|a, b| a.0 == b.0) {
            let slot = of_one[0].0;
            let Some(audience) = self.synced.get(slot) else { continue };
            let stream = &*audience.stream;
            let mut inner = match locked.take() {
                Some((same, inner)) if std::ptr::eq(same, stream) => inner,
                other => {
                    wake(store, other);
                    stream.inner.lock()
                }
            };
            if !audience.offer(store, &mut inner, events(of_one), revision) {
                behind.push(slot);
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
            self.synced.each(key, &mut |slot, audience| {
                if !audience.wants(tail.revision, change.tombstone) {
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
