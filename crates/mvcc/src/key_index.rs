//! Which revisions one key has.
//!
//! A generation begins with the put that creates the key and ends with a tombstone. All generations of a key stand in
//! one list; most keys have a single revision, which needs no list.

use crate::Revision;

/// The revisions of a key, oldest first. Never without a revision, except after a [`compact`](KeyIndex::compact) that
/// says so.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeyIndex {
    One(One),
    Many(Box<History>),
}

/// A live key whose older revisions, if any, are compacted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct One {
    created: i64,
    main: i64,
    version: i64,
    sub: u32,
    leased: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Of the first generation; those of the others follow from `changes`.
    created: i64,
    /// Version of `changes[0]`.
    version: i64,
    leased: bool,
    changes: Vec<Change>,
}

/// 16 bytes: hot keys have many of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    main: i64,
    sub: u32,
    /// Where in the list its generation starts; the highest bit marks a tombstone.
    start: u32,
}

const TOMBSTONE: u32 = 1 << 31;

impl Change {
    fn revision(&self) -> Revision {
        Revision::new(self.main, self.sub)
    }

    fn is_tombstone(&self) -> bool {
        self.start & TOMBSTONE != 0
    }

    fn start(&self) -> usize {
        (self.start & !TOMBSTONE) as usize
    }
}

/// What a key is at a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub modified: Revision,
    pub created: i64,
    pub version: i64,
}

impl KeyIndex {
    /// A key put at `revision` that did not exist before.
    pub(crate) fn new(revision: Revision, leased: bool) -> Self {
        Self::restore(revision.main, revision, 1, leased)
    }

    /// The oldest revision found of a key, when it is a put.
    pub(crate) fn restore(created: i64, revision: Revision, version: i64, leased: bool) -> Self {
        KeyIndex::One(One { created, main: revision.main, version, sub: revision.sub, leased })
    }

    /// The oldest revision found of a key, when it is a tombstone: when the key was created is not known any more.
    pub(crate) fn restore_tombstone(revision: Revision) -> Self {
        let change = Change { main: revision.main, sub: revision.sub, start: TOMBSTONE };
        KeyIndex::Many(Box::new(History { version: 1, changes: vec![change], ..History::default() }))
    }

    /// Whether the key exists at its newest revision.
    pub(crate) fn is_live(&self) -> bool {
        match self {
            KeyIndex::One(_) => true,
            KeyIndex::Many(h) => h.changes.last().is_some_and(|c| !c.is_tombstone()),
        }
    }

    /// Whether the newest value has a lease.
    pub(crate) fn is_leased(&self) -> bool {
        match self {
            KeyIndex::One(one) => one.leased,
            KeyIndex::Many(h) => h.leased,
        }
    }

    pub(crate) fn put(&mut self, revision: Revision, leased: bool) {
        let history = self.history_mut();
        let last = history.changes.last();
        let start = match last {
            Some(last) if last.is_tombstone() => history.changes.len(),
            Some(last) => last.start(),
            None => 0,
        };
        history.changes.push(Change { main: revision.main, sub: revision.sub, start: start as u32 });
        history.leased = leased;
    }

    /// Ends the key's generation; `false` if it has ended already.
    pub(crate) fn tombstone(&mut self, revision: Revision) -> bool {
        if !self.is_live() {
            return false;
        }
        let history = self.history_mut();
        let start = history.changes.last().map_or(0, |c| c.start) | TOMBSTONE;
        history.changes.push(Change { main: revision.main, sub: revision.sub, start });
        history.leased = false;
        true
    }

    /// The key as it was after revision `at`; `None` if it did not exist then.
    #[inline]
    pub(crate) fn get(&self, at: i64) -> Option<Found> {
        match self {
            KeyIndex::One(one) => (one.main <= at).then_some(Found {
                modified: Revision::new(one.main, one.sub),
                created: one.created,
                version: one.version,
            }),
            KeyIndex::Many(h) => h.get(at),
        }
    }

    /// Drops what no read or watch at `at` or later needs, and adds to `keep` what stays up to `at`. Tells whether nothing
    /// is left of the key.
    pub(crate) fn compact(&mut self, at: i64, keep: &mut Vec<Revision>) -> bool {
        let history = match self {
            KeyIndex::One(one) => {
                if one.main <= at {
                    keep.push(Revision::new(one.main, one.sub));
                }
                return false;
            }
            KeyIndex::Many(history) => history,
        };
        history.compact(at, keep);
        if history.changes.is_empty() {
            return true;
        }
        if let [only] = history.changes[..]
            && !only.is_tombstone()
        {
            *self = Self::restore(history.created, only.revision(), history.version, history.leased);
        }
        false
    }

    /// The revision that hashes at `at` count as kept: the newest, if the key exists then. As in etcd, a key that the
    /// request at `at` deletes and puts again does not.
    pub(crate) fn keep(&self, at: i64) -> Option<Revision> {
        match self {
            KeyIndex::Many(h) if h.is_deleted_at(at) => None,
            _ => self.get(at).map(|found| found.modified),
        }
    }

    /// How many revisions are known.
    pub(crate) fn len(&self) -> usize {
        match self {
            KeyIndex::One(_) => 1,
            KeyIndex::Many(h) => h.changes.len(),
        }
    }

    fn history_mut(&mut self) -> &mut History {
        if let KeyIndex::One(one) = self {
            let mut changes = Vec::with_capacity(2);
            changes.push(Change { main: one.main, sub: one.sub, start: 0 });
            let history = History { created: one.created, version: one.version, leased: one.leased, changes };
            *self = KeyIndex::Many(Box::new(history));
        }
        match self {
            KeyIndex::Many(history) => history,
            KeyIndex::One(_) => unreachable!("turned into a history above"),
        }
    }
}

impl History {
    /// Whether the request at `at` deletes the key, and perhaps puts it again.
    fn is_deleted_at(&self, at: i64) -> bool {
        let first = self.changes.partition_point(|c| c.main < at);
        self.changes[first..].iter().take_while(|c| c.main == at).any(Change::is_tombstone)
    }

    fn get(&self, at: i64) -> Option<Found> {
        let i = self.position(at)?;
        let change = &self.changes[i];
        let (created, version) = self.generation(i);
        (!change.is_tombstone()).then_some(Found { modified: change.revision(), created, version })
    }

    /// The newest change up to `at`.
    fn position(&self, at: i64) -> Option<usize> {
        match self.changes.last() {
            Some(last) if last.main <= at => Some(self.changes.len() - 1),
            _ => self.changes.partition_point(|c| c.main <= at).checked_sub(1),
        }
    }

    /// Creation and version of the key at change `i`.
    fn generation(&self, i: usize) -> (i64, i64) {
        match self.changes[i].start() {
            0 => (self.created, self.version + i as i64),
            start => (self.changes[start].main, (i - start) as i64 + 1),
        }
    }

    fn compact(&mut self, at: i64, keep: &mut Vec<Revision>) {
        let Some(i) = self.position(at) else { return };
        let change = self.changes[i];
        if change.is_tombstone() && change.main < at {
            return self.drop_first(i + 1);
        }
        // Whoever watches from `at` on is to see all changes made there, also if one request made several to the key.
        let first = self.changes[..i].iter().rposition(|c| c.main < at).map_or(0, |before| before + 1);
        let from = if change.main == at { first } else { i };
        keep.extend(self.changes[from..=i].iter().map(Change::revision));
        self.drop_first(from);
    }

    fn drop_first(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        if n < self.changes.len() {
            (self.created, self.version) = self.generation(n);
        }
        self.changes.drain(..n);
        for change in &mut self.changes {
            let start = change.start().saturating_sub(n) as u32;
            change.start = start | (change.start & TOMBSTONE);
        }
        if self.changes.capacity() > 2 * self.changes.len() {
            self.changes.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small() {
        assert_eq!(size_of::<KeyIndex>(), 32);
        assert_eq!(size_of::<Change>(), 16);
    }

    /// Generations {2, 4, 6(t)}, {8, 10(t)}, {12.0, 14.1, 14.2(t)}, {16, 16.1(t)}.
    fn sample() -> KeyIndex {
        let mut ki = KeyIndex::new(Revision::new(2, 0), false);
        ki.put(Revision::new(4, 0), true);
        assert!(ki.is_leased());
        assert!(ki.tombstone(Revision::new(6, 0)));
        assert!(!ki.tombstone(Revision::new(7, 0)));
        ki.put(Revision::new(8, 0), false);
        ki.tombstone(Revision::new(10, 0));
        ki.put(Revision::new(12, 0), false);
        ki.put(Revision::new(14, 1), false);
        ki.tombstone(Revision::new(14, 2));
        ki.put(Revision::new(16, 0), false);
        ki.tombstone(Revision::new(16, 1));
        ki
    }

    fn get(ki: &KeyIndex, at: i64) -> Option<(i64, i64, i64)> {
        ki.get(at).map(|f| (f.modified.main, f.created, f.version))
    }

    #[test]
    fn finds_each_generation() {
        let ki = sample();
        let want = [
            (1, None),
            (2, Some((2, 2, 1))),
            (3, Some((2, 2, 1))),
            (4, Some((4, 2, 2))),
            (5, Some((4, 2, 2))),
            (6, None),
            (7, None),
            (8, Some((8, 8, 1))),
            (10, None),
            (12, Some((12, 12, 1))),
            (13, Some((12, 12, 1))),
            (14, None),
            (16, None),
            (99, None),
        ];
        for (at, want) in want {
            assert_eq!(get(&ki, at), want, "at {at}");
        }
        assert!(!ki.is_live());
    }

    /// What is readable at or after the compaction stays readable, whatever was compacted before.
    #[test]
    fn compaction_keeps_what_later_reads_need() {
        for first in 0..18 {
            for second in first..18 {
                let (whole, mut ki) = (sample(), sample());
                let mut gone = ki.compact(first, &mut Vec::new());
                let mut keep = Vec::new();
                gone = gone || ki.compact(second, &mut keep);
                assert_eq!(gone, second > 16, "{first} {second}");
                if gone {
                    continue;
                }
                for at in second..20 {
                    assert_eq!(get(&ki, at), get(&whole, at), "{first} {second} at {at}");
                }
                let kept = match second {
                    14 | 16 => 2,
                    6 | 10 => 1,
                    _ => usize::from(get(&whole, second).is_some()),
                };
                assert_eq!(keep.len(), kept, "{first} {second}: {keep:?}");
            }
        }
    }

    #[test]
    fn a_tombstone_at_the_revision_stays_until_the_next_compaction() {
        let mut ki = sample();
        let mut keep = Vec::new();
        assert!(!ki.compact(16, &mut keep));
        assert_eq!(keep, [Revision::new(16, 0), Revision::new(16, 1)], "with the put before it");
        assert_eq!(ki.keep(16), None, "hashes are without it");
        assert!(ki.compact(17, &mut keep));
    }

    #[test]
    fn one_live_revision_needs_no_list() {
        let mut ki = KeyIndex::new(Revision::new(2, 0), false);
        ki.put(Revision::new(3, 5), true);
        ki.compact(3, &mut Vec::new());
        assert_eq!(ki, KeyIndex::restore(2, Revision::new(3, 5), 2, true));
        ki.put(Revision::new(9, 0), false);
        assert_eq!(get(&ki, 9), Some((9, 2, 3)));
    }

    #[test]
    fn goes_on_after_a_restored_tombstone() {
        let mut ki = KeyIndex::restore_tombstone(Revision::new(5, 0));
        assert_eq!(get(&ki, 5), None);
        assert!(!ki.is_live());
        ki.put(Revision::new(7, 0), false);
        assert_eq!(get(&ki, 7), Some((7, 7, 1)));
        ki.compact(6, &mut Vec::new());
        assert_eq!(ki, KeyIndex::new(Revision::new(7, 0), false));
    }
}
