//! Reading history for watchers that are behind.

use std::{ops::ControlFlow, sync::Arc};

use storage::{Bucket, Read, schema::RevisionKey};

use super::{
    event::Event,
    interest::Interest,
    queue::{Events, Queued, StreamShared, Watcher},
};
use crate::{raw_kv::KvFields, revision::first_key, store::Shared};

/// Watchers up to this many are asked one by one for each change.
const FEW_WATCHERS: usize = 8;

/// Most revisions that are read for a watcher at a time, as in etcd.
const REVISIONS_MAX: usize = 1000;

/// What one pass over history found.
struct Pass<'a> {
    turn: &'a [(Arc<Watcher>, i64)],
    /// Positions in `turn` by key, if they are many.
    by_key: Option<Interest<usize>>,
    found: Vec<Vec<Arc<Event>>>,
    bytes: usize,
    changes: usize,
    revisions: usize,
    last_with_event: i64,
    /// Everything before this revision was visited.
    until: i64,
    full: bool,
    bytes_max: usize,
    changes_max: usize,
}

impl Shared {
    /// Reads a stretch of history for some watchers of a stream, each given with the first revision it has not seen.
    pub(crate) fn catch_up(&self, stream: &StreamShared, turn: Vec<(Arc<Watcher>, i64)>) {
        let Some(from) = turn.iter().map(|(_, min)| *min).min() else { return };
        let (current, values) = self.snapshot();
        let mut pass = Pass::new(&turn, self.options.watch_catch_up_bytes_max, self.options.watch_catch_up_changes_max);
        let tail = &values.tail;
        let to = if tail.changes.is_empty() { current + 1 } else { tail.revision };
        values.view.scan(Bucket::Key, &first_key(from).encode(), &first_key(to).encode(), &mut |key, value| {
            RevisionKey::decode(key).map_or(ControlFlow::Break(()), |at| pass.visit(at, value))
        });
        for (at, value) in tail.records().filter(|(at, _)| at.main >= from) {
            if pass.full || pass.visit(at, value).is_break() {
                break;
            }
        }
        let until = if pass.full { pass.until } else { current + 1 };
        let found = pass.found;
        self.hand_over(stream, &turn, found, until, current);
    }

    fn hand_over(
        &self,
        stream: &StreamShared,
        turn: &[(Arc<Watcher>, i64)],
        found: Vec<Vec<Arc<Event>>>,
        until: i64,
        current: i64,
    ) {
        let mut hub = self.hub.lock();
        let mut inner = stream.inner.lock();
        let newest = self.revision();
        // Read after history was: what a compaction removed meanwhile was not all seen.
        let compact_revision = self.compact_revision();
        for ((watcher, min), mut events) in turn.iter().zip(found) {
            if !inner.is_unsynced(watcher) {
                continue;
            }
            if *min < compact_revision {
                inner.set_compacted(watcher.id);
                self.counters.slow_watchers.sub(1);
                inner.ready.push_back(Queued::Compacted { watcher: watcher.clone(), compact_revision });
                continue;
            }
            self.counters.pending_events.add(events.len());
            let events = if events.len() == 1 { events.pop().map(Events::One) } else { Some(Events::Many(events)) };
            if let Some(events) = events.filter(|e| !e.is_empty()) {
                let bytes = events.bytes();
                let members = [watcher.clone()].into();
                inner.ready.push_back(Queued::Events { members, events, revision: current, bytes });
            }
            let min = until.max(*min);
            if min > newest {
                self.counters.slow_watchers.sub(1);
                let slot = hub.join(&mut inner, watcher);
                inner.set_synced(watcher.id, slot);
            } else if let Some(unsynced) = inner.unsynced.get_mut(&watcher.id) {
                unsynced.min_revision = min;
            }
        }
    }
}

impl<'a> Pass<'a> {
    fn new(turn: &'a [(Arc<Watcher>, i64)], bytes_max: usize, changes_max: usize) -> Self {
        let by_key = (turn.len() > FEW_WATCHERS).then(|| {
            let mut interest = Interest::default();
            for (i, (watcher, _)) in turn.iter().enumerate() {
                interest.insert(&watcher.subject.key, &watcher.subject.range_end, i);
            }
            interest
        });
        Pass {
            turn,
            by_key,
            found: vec![Vec::new(); turn.len()],
            bytes: 0,
            changes: 0,
            revisions: 0,
            last_with_event: 0,
            until: 0,
            full: false,
            bytes_max,
            changes_max,
        }
    }

    fn visit(&mut self, at: RevisionKey, value: &[u8]) -> ControlFlow<()> {
        // A revision is never split: bounds are looked at where one begins.
        if at.main >= self.until {
            let full =
                self.bytes >= self.bytes_max || self.changes >= self.changes_max || self.revisions >= REVISIONS_MAX;
            if full && self.changes > 0 {
                (self.full, self.until) = (true, at.main);
                return ControlFlow::Break(());
            }
            self.until = at.main + 1;
        }
        self.changes += 1;
        let Some(kv) = KvFields::parse(value) else { return ControlFlow::Continue(()) };
        let mut event = None;
        let turn = self.turn;
        let found = &mut self.found;
        let mut give = |i: usize| {
            let (watcher, min) = &turn[i];
            if at.main < *min || !watcher.wants(at.main, at.tombstone) {
                return;
            }
            if event.is_none() {
                event = Event::new(at.main, at.tombstone, value).map(Arc::new);
            }
            found[i].extend(event.clone());
        };
        match &self.by_key {
            Some(by_key) => by_key.each(kv.key, &mut |_, i| give(*i)),
            None => (0..turn.len()).filter(|i| turn[*i].0.subject.range().contains(kv.key)).for_each(give),
        }
        if let Some(event) = event {
            self.bytes += event.len();
            self.revisions += usize::from(self.last_with_event != at.main);
            self.last_with_event = at.main;
        }
        ControlFlow::Continue(())
    }
}
