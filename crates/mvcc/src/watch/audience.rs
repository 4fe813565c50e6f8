//! Watchers of one stream that want the same are told together: what a revision brings is queued once for all of them,
//! and encoded once when the stream takes it.
//!
//! Invariants: an audience is never empty; its members are synced; none of them is to be told of anything before its
//! `start_revision`. What is queued goes to those who were members then: members change by being replaced as a whole.

use std::{cell::Cell, sync::Arc};

use bytes::Bytes;

use super::{
    Hub,
    interest::Slot,
    queue::{Inner, StreamShared, Watcher},
    spec::Filters,
};
use crate::KeyRange;

/// Members are replaced as a whole when one comes or goes, which should not cost more the more there are.
const MEMBERS_MAX: usize = 128;

/// What a watcher wants to be told of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    pub key: Bytes,
    pub range_end: Bytes,
    pub filters: Filters,
    pub prev_kv: bool,
}

impl Subject {
    pub(crate) fn range(&self) -> KeyRange<'_> {
        KeyRange::new(&self.key, &self.range_end)
    }

    /// Whether a change is to be told, given that its key is.
    pub(crate) fn wants(&self, is_delete: bool) -> bool {
        let filtered = if is_delete { self.filters.no_delete } else { self.filters.no_put };
        !filtered
    }
}

pub(crate) type Members = Arc<[Arc<Watcher>]>;

/// Known to the publisher, and changed with the hub locked.
pub(crate) struct Audience {
    pub subject: Subject,
    pub start_revision: i64,
    pub stream: Arc<StreamShared>,
    pub members: Members,
    /// What the stream's `pushed` was when the newest events of these members were.
    pub queued_at: Cell<u64>,
}

impl Audience {
    pub(crate) fn wants(&self, revision: i64, is_delete: bool) -> bool {
        revision >= self.start_revision && self.subject.wants(is_delete)
    }
}

impl Hub {
    /// Lets a watcher be told of every revision from now on.
    pub(crate) fn join(&mut self, inner: &mut Inner, watcher: &Arc<Watcher>) -> Slot {
        let known = inner.audiences.get(&watcher.subject).copied();
        if let Some(slot) = known
            && let Some(audience) = self.synced.get_mut(slot)
            && audience.members.len() < MEMBERS_MAX
        {
            audience.members = audience.members.iter().chain([watcher]).cloned().collect();
            return slot;
        }
        let slot = self.open(watcher, 0);
        inner.audiences.insert(watcher.subject.clone(), slot);
        slot
    }

    /// Lets a watcher wait for a revision that is still to come; it does so alone.
    pub(crate) fn await_start(&mut self, watcher: &Arc<Watcher>) -> Slot {
        self.open(watcher, watcher.start_revision)
    }

    pub(crate) fn leave(&mut self, inner: &mut Inner, slot: Slot, watcher: &Arc<Watcher>) {
        let Some(audience) = self.synced.get_mut(slot) else { return };
        let left = |member: &&Arc<Watcher>| !Arc::ptr_eq(member, watcher);
        audience.members = audience.members.iter().filter(left).cloned().collect();
        if audience.members.is_empty() {
            self.close(inner, slot, &watcher.subject);
        }
    }

    /// Nobody of the audience is told any more.
    pub(crate) fn close(&mut self, inner: &mut Inner, slot: Slot, subject: &Subject) -> Option<Audience> {
        if inner.audiences.get(subject) == Some(&slot) {
            inner.audiences.remove(subject);
        }
        self.synced.remove(&subject.key, &subject.range_end, slot)
    }

    fn open(&mut self, watcher: &Arc<Watcher>, start_revision: i64) -> Slot {
        let Subject { key, range_end, .. } = &watcher.subject;
        let audience = Audience {
            subject: watcher.subject.clone(),
            start_revision,
            stream: watcher.stream.clone(),
            members: [watcher.clone()].into(),
            queued_at: Cell::new(0),
        };
        self.synced.insert(key, range_end, audience)
    }
}
