//! Numbers for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::Shared;

/// What the store holds and has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub revision: i64,
    pub compact_revision: i64,
    /// Keys that exist now.
    pub keys: u64,
    /// Keys that the index knows, with those deleted but not compacted.
    pub indexed_keys: u64,
    /// Revisions that the index knows.
    pub revisions: u64,
    pub puts: u64,
    /// Requests and operations that delete, however many keys they found.
    pub deletes: u64,
    pub ranges: u64,
    /// Requests with more than one operation.
    pub txns: u64,
    /// Bytes of keys and values put.
    pub put_bytes: u64,
    /// Changes made, each of which is an event for those who watch.
    pub events: u64,
    pub watch_streams: u64,
    pub watchers: u64,
    /// Watchers that read history because they are behind.
    pub slow_watchers: u64,
    /// Events that wait in streams.
    pub pending_events: u64,
    /// Revisions that compactions removed.
    pub compacted_revisions: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, n: usize) {
        self.0.fetch_sub(n as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub puts: Counter,
    pub deletes: Counter,
    pub ranges: Counter,
    pub txns: Counter,
    pub put_bytes: Counter,
    pub events: Counter,
    pub watch_streams: Counter,
    pub watchers: Counter,
    pub slow_watchers: Counter,
    pub pending_events: Counter,
    pub compacted_revisions: Counter,
}

impl Shared {
    pub(crate) fn stats(&self) -> Stats {
        let index = self.contents().index.read().stats();
        let c = &self.counters;
        Stats {
            revision: self.revision(),
            compact_revision: self.compact_revision(),
            keys: index.live as u64,
            indexed_keys: index.keys as u64,
            revisions: index.revisions as u64,
            puts: c.puts.get(),
            deletes: c.deletes.get(),
            ranges: c.ranges.get(),
            txns: c.txns.get(),
            put_bytes: c.put_bytes.get(),
            events: c.events.get(),
            watch_streams: c.watch_streams.get(),
            watchers: c.watchers.get(),
            slow_watchers: c.slow_watchers.get(),
            pending_events: c.pending_events.get(),
            compacted_revisions: c.compacted_revisions.get(),
        }
    }
}
