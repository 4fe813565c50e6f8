//! What was taken from the queue, on its way to one watcher after the other.

use std::sync::Arc;

use bytes::Bytes;

use super::{audience::Members, event::Event, item::WatchItem};
use crate::store::Shared;

/// Events that all members are still to be given, in turn. They are encoded once.
#[derive(Default)]
pub(crate) struct Round {
    members: Option<Members>,
    /// Who is next.
    next: usize,
    events: Arc<[Bytes]>,
    revision: i64,
}

impl Round {
    pub(super) fn new(store: &Shared, members: Members, events: &[Arc<Event>], revision: i64) -> Round {
        let prev_kv = members.first().is_some_and(|watcher| watcher.subject.prev_kv);
        let encoded = |event: &Arc<Event>| if prev_kv { event.bytes_with_previous(store) } else { event.bytes() };
        Round { events: events.iter().map(encoded).collect(), members: Some(members), next: 0, revision }
    }

    /// For the next member that has not ended meanwhile. `None`: all were given theirs, and nothing is held any more.
    pub(super) fn next(&mut self) -> Option<WatchItem> {
        let members = self.members.as_ref()?;
        while let Some(watcher) = members.get(self.next) {
            self.next += 1;
            if watcher.is_active() {
                let (watch_id, events) = (watcher.id, self.events.clone());
                return Some(WatchItem { watch_id, events, revision: self.revision, compact_revision: 0 });
            }
        }
        *self = Round::default();
        None
    }
}
