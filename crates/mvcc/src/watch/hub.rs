//! Publishing a revision to readers and to those who watch.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    event::Event,
    interest::{Interest, Slot},
    queue::{Events, Watcher},
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
        let mut behind = Vec::new();
        let mut deliveries = self.match_watchers(tail, keys);
        // By watcher, each with its events in order.
        deliveries.sort_by_key(|d| d.0);
        let mut rest = &deliveries[..];
        while let Some((slot, first)) = rest.first() {
            let n = rest.iter().take_while(|d| d.0 == *slot).count();
            let events = match n {
                1 => Events::One(first.clone()),
                _ => Events::Many(rest[..n].iter().map(|d| d.1.clone()).collect()),
            };
            rest = &rest[n..];
            let Some(watcher) = self.synced.get(*slot) else { continue };
            if !watcher.offer(store, events, tail.revision) {
                behind.push((*slot, watcher.clone()));
            }
        }
        for (slot, watcher) in behind {
            self.synced.remove(&watcher.key, &watcher.range_end, slot);
        }
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
