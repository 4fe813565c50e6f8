//! All keys in order, each with its revisions.
//!
//! Keys stand in leaves of up to 64, whose key bytes share one buffer: a small key costs its bytes, 40 more, and its
//! share of the room a leaf keeps to grow. A tree of leaves finds the leaf.

use std::{collections::BTreeMap, ops::Bound, ops::ControlFlow};

use crate::{
    KeyRange, Revision,
    key_index::{Found, KeyIndex},
};

#[derive(Debug)]
pub(crate) struct Index {
    /// By the smallest key a leaf may hold. The first is always there, under the empty key.
    leaves: BTreeMap<Box<[u8]>, Leaf>,
    stats: IndexStats,
}

/// How much an index holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexStats {
    /// Keys that exist at the newest revision.
    pub live: usize,
    /// All keys of which a revision is known.
    pub keys: usize,
    pub revisions: usize,
}

/// What a key was before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    pub found: Found,
    pub leased: bool,
}

impl Default for Index {
    fn default() -> Self {
        Index { leaves: BTreeMap::from([(Box::default(), Leaf::default())]), stats: IndexStats::default() }
    }
}

impl Index {
    pub fn stats(&self) -> IndexStats {
        self.stats
    }

    pub fn get(&self, key: &[u8], at: i64) -> Option<Found> {
        self.key_index(key)?.get(at)
    }

    pub fn key_index(&self, key: &[u8]) -> Option<&KeyIndex> {
        let leaf = self.leaf(key)?;
        leaf.find(key).ok().map(|i| &leaf.entries[i].revisions)
    }

    /// Records a put and tells what the key was.
    pub fn put(&mut self, key: &[u8], revision: Revision, leased: bool) -> Option<Before> {
        self.stats.revisions += 1;
        let mut before = None;
        self.change(key, |known| match known {
            None => Some(KeyIndex::new(revision, leased)),
            Some(ki) => {
                before = ki.get(i64::MAX).map(|found| Before { found, leased: ki.is_leased() });
                ki.put(revision, leased);
                None
            }
        });
        self.stats.live += usize::from(before.is_none());
        before
    }

    /// Records a deletion and tells what the key was; `None`, and nothing recorded, if it did not exist.
    pub fn tombstone(&mut self, key: &[u8], revision: Revision) -> Option<Before> {
        let mut before = None;
        self.change(key, |known| {
            let ki = known?;
            let found = ki.get(i64::MAX)?;
            before = Some(Before { found, leased: ki.is_leased() });
            ki.tombstone(revision);
            None
        });
        if before.is_some() {
            self.stats.live -= 1;
            self.stats.revisions += 1;
        }
        before
    }

    /// Takes in a revision read from the file; revisions come in ascending order.
    pub fn restore(&mut self, key: &[u8], revision: Revision, stored: Option<(i64, i64, bool)>) {
        let (mut was_live, mut is_live) = (false, stored.is_some());
        self.change(key, |known| match (known, stored) {
            (None, None) => Some(KeyIndex::restore_tombstone(revision)),
            (None, Some((created, version, leased))) => Some(KeyIndex::restore(created, revision, version, leased)),
            (Some(ki), None) => {
                was_live = ki.is_live();
                ki.tombstone(revision);
                None
            }
            (Some(ki), Some((_, _, leased))) => {
                was_live = ki.is_live();
                ki.put(revision, leased);
                is_live = true;
                None
            }
        });
        self.stats.revisions += 1;
        self.stats.live = self.stats.live + usize::from(is_live) - usize::from(was_live);
    }

    /// Visits the keys of a range in order.
    pub fn visit(&self, range: KeyRange<'_>, mut f: impl FnMut(&[u8], &KeyIndex) -> ControlFlow<()>) {
        let KeyRange { start, end } = range;
        if end.is_point() {
            if let Some(ki) = self.key_index(start) {
                let _ = f(start, ki);
            }
            return;
        }
        let Some((first, _)) = self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(start))).next_back()
        else {
            return;
        };
        for (_, leaf) in self.leaves.range::<[u8], _>((Bound::Included(&**first), Bound::Unbounded)) {
            let from = leaf.entries.partition_point(|e| leaf.key(e) < start);
            for entry in &leaf.entries[from..] {
                let key = leaf.key(entry);
                if !end.is_after(key) || f(key, &entry.revisions).is_break() {
                    return;
                }
            }
        }
    }

    /// Compacts at least `keys_min` keys from `from` on, so that the lock is held for a bounded time. Gives where to go
    /// on, or `None` at the end.
    pub fn compact(&mut self, from: &[u8], keys_min: usize, at: i64, keep: &mut Vec<Revision>) -> Option<Box<[u8]>> {
        let mut visited = 0;
        let mut emptied = Vec::new();
        let mut next = None;
        for (bound, leaf) in self.leaves.range_mut::<[u8], _>((Bound::Included(from), Bound::Unbounded)) {
            if visited >= keys_min {
                next = Some(bound.clone());
                break;
            }
            visited += leaf.entries.len();
            leaf.compact(at, keep, &mut self.stats);
            if leaf.entries.is_empty() && !bound.is_empty() {
                emptied.push(bound.clone());
            }
        }
        for bound in emptied {
            self.leaves.remove(&bound);
        }
        next
    }

    fn leaf(&self, key: &[u8]) -> Option<&Leaf> {
        self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back().map(|(_, leaf)| leaf)
    }

    /// Calls `f` on what is known of a key; what it returns is put in if nothing is.
    fn change(&mut self, key: &[u8], f: impl FnOnce(Option<&mut KeyIndex>) -> Option<KeyIndex>) {
        let mut at_or_before = self.leaves.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        let Some((_, leaf)) = at_or_before.next_back() else { return };
        match leaf.find(key) {
            Ok(i) => {
                f(Some(&mut leaf.entries[i].revisions));
            }
            Err(i) => {
                let Some(revisions) = f(None) else { return };
                leaf.insert(i, key, revisions);
                self.stats.keys += 1;
                if leaf.entries.len() > LEAF_MAX {
                    let (bound, right) = leaf.split(i);
                    self.leaves.insert(bound, right);
                }
            }
        }
    }
}

const LEAF_MAX: usize = 64;

#[derive(Debug, Default)]
struct Leaf {
    bytes: Vec<u8>,
    /// In the order of their keys.
    entries: Vec<Entry>,
    /// How many of `bytes` belong to no entry any more.
    unused: usize,
}

#[derive(Debug)]
struct Entry {
    at: u32,
    len: u32,
    revisions: KeyIndex,
}

impl Leaf {
    fn key(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at as usize..entry.at as usize + entry.len as usize]
    }

    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.entries.binary_search_by(|e| self.key(e).cmp(key))
    }

    fn insert(&mut self, i: usize, key: &[u8], revisions: KeyIndex) {
        // Grown by steps of an eighth of a leaf: doubling would leave a third of all memory unused.
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(LEAF_MAX / 8);
        }
        if self.bytes.capacity() - self.bytes.len() < key.len() {
            self.bytes.reserve_exact(key.len() * (LEAF_MAX / 8));
        }
        let entry = Entry { at: self.bytes.len() as u32, len: key.len() as u32, revisions };
        self.bytes.extend_from_slice(key);
        self.entries.insert(i, entry);
    }

    /// Halves a full leaf. After an insert at its end it stays full, so that keys put in order fill their leaves.
    fn split(&mut self, inserted: usize) -> (Box<[u8]>, Leaf) {
        let middle = if inserted + 1 == self.entries.len() { inserted } else { self.entries.len() / 2 };
        let mut right = Leaf::default();
        let moved = self.entries.split_off(middle);
        let bytes = moved.iter().map(|e| e.len as usize).sum();
        right.bytes.reserve_exact(bytes);
        right.entries.reserve_exact(moved.len());
        for mut entry in moved {
            let at = right.bytes.len() as u32;
            right.bytes.extend_from_slice(self.key(&entry));
            entry.at = at;
            right.entries.push(entry);
        }
        self.unused += bytes;
        self.pack();
        let bound = right.entries.first().map(|e| right.key(e).into()).unwrap_or_default();
        (bound, right)
    }

    fn compact(&mut self, at: i64, keep: &mut Vec<Revision>, stats: &mut IndexStats) {
        let mut unused = 0;
        self.entries.retain_mut(|entry| {
            let before = entry.revisions.len();
            let gone = entry.revisions.compact(at, keep);
            let after = if gone { 0 } else { entry.revisions.len() };
            stats.revisions -= before - after;
            stats.keys -= usize::from(gone);
            unused += if gone { entry.len as usize } else { 0 };
            !gone
        });
        self.unused += unused;
        if self.unused > self.bytes.len() / 2 {
            self.pack();
        }
    }

    /// Rewrites the buffer without the bytes that no entry uses, and without room to grow.
    fn pack(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.unused);
        for entry in &mut self.entries {
            let key = &self.bytes[entry.at as usize..entry.at as usize + entry.len as usize];
            entry.at = bytes.len() as u32;
            bytes.extend_from_slice(key);
        }
        self.bytes = bytes;
        self.entries.shrink_to_fit();
        self.unused = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(index: &Index, start: &[u8], end: &[u8], at: i64) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        index.visit(KeyRange::new(start, end), |key, ki| {
            if ki.get(at).is_some() {
                found.push(key.to_vec());
            }
            ControlFlow::Continue(())
        });
        found
    }

    /// Insert orders that fill leaves in different ways all give the same map.
    #[test]
    fn orders_keys_however_they_come() {
        let n = 5000u64;
        for step in [1, n - 1, 1789, 3001] {
            let mut index = Index::default();
            for i in 0..n {
                let key = (i * step % n).to_string();
                assert_eq!(index.put(key.as_bytes(), Revision::new(i as i64 + 2, 0), false), None);
            }
            let mut want: Vec<Vec<u8>> = (0..n).map(|i| i.to_string().into_bytes()).collect();
            want.sort();
            assert_eq!(keys(&index, b"\0", b"\0", i64::MAX), want);
            assert_eq!(index.stats(), IndexStats { live: 5000, keys: 5000, revisions: 5000 });
            for i in 0..n {
                let key = (i * step % n).to_string();
                assert_eq!(index.get(key.as_bytes(), i64::MAX).map(|f| f.modified.main), Some(i as i64 + 2));
            }
        }
    }

    #[test]
    fn ranges() {
        let mut index = Index::default();
        for (i, key) in ["a", "b", "ba", "c"].iter().enumerate() {
            index.put(key.as_bytes(), Revision::new(i as i64 + 2, 0), false);
        }
        let all = |start: &str, end: &str, at| -> String {
            let keys = keys(&index, start.as_bytes(), end.as_bytes(), at);
            keys.iter().map(|k| String::from_utf8_lossy(k).into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(all("b", "", 9), "b");
        assert_eq!(all("bb", "", 9), "");
        assert_eq!(all("b", "c", 9), "b ba");
        assert_eq!(all("b", "c", 3), "b");
        assert_eq!(all("b", "\0", 9), "b ba c");
        assert_eq!(all("\0", "\0", 9), "a b ba c");
        assert_eq!(all("c", "b", 9), "");
        assert_eq!(all("b", "b", 9), "");
    }

    #[test]
    fn compaction_in_steps_frees_deleted_keys() {
        let mut index = Index::default();
        for i in 0..1000 {
            index.put(format!("{i:04}").as_bytes(), Revision::new(i + 2, 0), false);
        }
        for i in 0..990 {
            assert!(index.tombstone(format!("{i:04}").as_bytes(), Revision::new(2000 + i, 0)).is_some());
            assert_eq!(index.tombstone(format!("{i:04}").as_bytes(), Revision::new(3000 + i, 0)), None);
        }
        let (mut keep, mut from, mut steps) = (Vec::new(), Some(Box::default()), 0);
        while let Some(at) = from {
            from = index.compact(&at, 100, 2989, &mut keep);
            steps += 1;
        }
        assert!(steps > 5, "{steps}");
        keep.sort();
        assert_eq!(keep.len(), 11);
        assert_eq!(keep[10], Revision::new(2989, 0), "the tombstone at the revision");
        assert_eq!(index.stats(), IndexStats { live: 10, keys: 11, revisions: 11 });
        assert!(index.leaves.len() < 5, "{}", index.leaves.len());
        assert_eq!(keys(&index, b"\0", b"\0", 4000).len(), 10);
    }
}
