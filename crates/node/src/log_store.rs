//! The tail of the log in memory, as the `raft` crate reads it.
//!
//! Invariants: entries are contiguous, the first has index `compacted_index + 1`, and terms never fall.

use std::collections::VecDeque;

use raft::{
    Error, GetEntriesContext, RaftState, Storage, StorageError,
    eraftpb::{ConfState, Entry, HardState, Snapshot, SnapshotMetadata},
    util::limit_size,
};

/// Entries after `compacted_index`, which the file already covers.
pub(crate) struct LogStore {
    entries: VecDeque<Entry>,
    compacted_index: u64,
    compacted_term: u64,
    hard_state: HardState,
    /// As of `applied`.
    conf_state: ConfState,
    /// Up to here the file can be sent to a member that lags. 0 if that is not known yet.
    applied: u64,
}

impl LogStore {
    pub(crate) fn new(
        compacted: (u64, u64),
        hard_state: HardState,
        conf_state: ConfState,
        entries: Vec<Entry>,
    ) -> LogStore {
        let (compacted_index, compacted_term) = compacted;
        if let Some(first) = entries.first() {
            assert_eq!(first.index, compacted_index + 1, "the log must go on where the snapshot ends");
        }
        LogStore { entries: entries.into(), compacted_index, compacted_term, hard_state, conf_state, applied: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entries_after(&self, index: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.index > index)
    }

    /// Adds entries that are on disk; they replace what they overlap.
    pub(crate) fn append(&mut self, entries: Vec<Entry>) {
        let Some(first) = entries.first() else { return };
        assert!(first.index > self.compacted_index, "entry {} is compacted", first.index);
        let keep = (first.index - self.compacted_index - 1) as usize;
        assert!(keep <= self.entries.len(), "entry {} leaves a gap in the log", first.index);
        self.entries.truncate(keep);
        self.entries.extend(entries);
    }

    pub(crate) fn set_hard_state(&mut self, state: HardState) {
        self.hard_state = state;
    }

    pub(crate) fn set_conf_state(&mut self, state: ConfState) {
        self.conf_state = state;
    }

    pub(crate) fn set_applied(&mut self, index: u64) {
        self.applied = index;
    }

    /// The log goes on after a database that was received: everything before it is forgotten.
    pub(crate) fn apply_snapshot(&mut self, metadata: &SnapshotMetadata) {
        self.entries.clear();
        self.compacted_index = metadata.index;
        self.compacted_term = metadata.term;
        self.conf_state = metadata.get_conf_state().clone();
        self.applied = metadata.index;
    }

    /// Forgets entries up to and including `index`.
    pub(crate) fn compact(&mut self, index: u64) {
        if index <= self.compacted_index {
            return;
        }
        let Ok(term) = self.term(index) else { return };
        self.entries.drain(..(index - self.compacted_index) as usize);
        self.compacted_index = index;
        self.compacted_term = term;
    }

    fn last(&self) -> u64 {
        self.compacted_index + self.entries.len() as u64
    }
}

/// An entry has at least this many bytes besides its data: two for the index and two for the term.
const ENTRY_HEAD_BYTES_MIN: u64 = 4;

/// The first entries, as many as the crate's `limit_size` would keep of all. The rest is not looked at: a member that
/// lags is sent its entries in many messages, and each would copy the whole backlog.
fn limited<'a>(entries: impl Iterator<Item = &'a Entry>, max_size: Option<u64>) -> Vec<Entry> {
    let max = max_size.unwrap_or(u64::MAX);
    let mut bytes = 0;
    let mut out = Vec::new();
    for entry in entries {
        bytes += (entry.data.len() + entry.context.len()) as u64 + ENTRY_HEAD_BYTES_MIN;
        out.push(entry.clone());
        if bytes > max {
            break;
        }
    }
    limit_size(&mut out, max_size);
    out
}

impl Storage for LogStore {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.clone(), self.conf_state.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.compacted_index {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last() + 1 {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let offset = self.compacted_index + 1;
        let range = self.entries.range((low - offset) as usize..(high - offset) as usize);
        Ok(limited(range, max_size.into()))
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.compacted_index {
            return Ok(self.compacted_term);
        }
        if index < self.compacted_index {
            return Err(Error::Store(StorageError::Compacted));
        }
        match self.entries.get((index - self.compacted_index - 1) as usize) {
            Some(entry) => Ok(entry.term),
            None => Err(Error::Store(StorageError::Unavailable)),
        }
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.compacted_index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    /// Says only which index a database sent now will have at least; whoever sends it fills in its own.
    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        let term = self.term(self.applied);
        let (Ok(term), true) = (term, self.applied >= request_index && self.applied > 0) else {
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        };
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        metadata.index = self.applied;
        metadata.term = term;
        metadata.set_conf_state(self.conf_state.clone());
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u64, term: u64) -> Entry {
        Entry { index, term, ..Default::default() }
    }

    fn store() -> LogStore {
        let entries = (6..=10).map(|i| entry(i, 2)).collect();
        LogStore::new((5, 1), HardState::default(), ConfState::default(), entries)
    }

    #[test]
    fn terms_and_bounds() {
        let store = store();
        assert_eq!((store.first_index().unwrap(), store.last_index().unwrap()), (6, 10));
        assert_eq!(store.term(5).unwrap(), 1);
        assert!(matches!(store.term(4), Err(Error::Store(StorageError::Compacted))));
        assert!(matches!(store.term(11), Err(Error::Store(StorageError::Unavailable))));
    }

    #[test]
    fn an_overlap_is_replaced() {
        let mut store = store();
        store.append(vec![entry(8, 3)]);
        assert_eq!((store.last_index().unwrap(), store.term(8).unwrap()), (8, 3));
    }

    #[test]
    fn a_snapshot_is_as_of_what_is_applied() {
        let mut store = store();
        assert!(store.snapshot(0, 2).is_err(), "nothing is known to be applied");
        store.set_applied(8);
        assert_eq!(store.snapshot(0, 2).unwrap().get_metadata().index, 8);
        assert!(store.snapshot(9, 2).is_err());
    }

    #[test]
    fn a_received_snapshot_begins_the_log_anew() {
        let mut store = store();
        store.apply_snapshot(&SnapshotMetadata { index: 20, term: 4, ..Default::default() });
        assert_eq!((store.first_index().unwrap(), store.last_index().unwrap(), store.term(20).unwrap()), (21, 20, 4));
        store.append(vec![entry(21, 4)]);
        assert_eq!(store.last_index().unwrap(), 21);
    }

    #[test]
    fn only_what_is_sent_is_copied() {
        let all: Vec<_> = (1..=300).map(|i| Entry { data: vec![0; i as usize % 7].into(), ..entry(i, 1) }).collect();
        let limits = [0, 1, 9, 10, 11, 500, 1 << 20, raft::NO_LIMIT].map(Some);
        for max in limits.into_iter().chain([None]) {
            let mut expected = all.clone();
            limit_size(&mut expected, max);
            let mut looked_at = 0;
            let found = limited(all.iter().inspect(|_| looked_at += 1), max);
            assert_eq!(found, expected, "limit {max:?}");
            // The estimate is a little lower than the true size.
            assert!(looked_at <= 2 * found.len() + 1, "limit {max:?}: {looked_at} for {}", found.len());
        }
    }

    #[test]
    fn compaction_keeps_the_last_term() {
        let mut store = store();
        store.compact(8);
        assert_eq!((store.first_index().unwrap(), store.term(8).unwrap(), store.len()), (9, 2, 2));
        store.compact(3);
        store.compact(99);
        assert_eq!(store.first_index().unwrap(), 9);
    }
}
