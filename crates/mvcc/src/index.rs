//! All keys in order, each with its revisions.
//!
//! Keys stand in leaves of up to 64, whose key bytes share one buffer: a small key costs its bytes, 48 more, and its
//! share of the room a leaf keeps to grow. Two levels of lists above find the leaf; they are short enough to be
//! shifted, and searched by halving.

use std::ops::ControlFlow;

use parking_lot::RwLock;

use crate::{
    KeyRange, Revision,
    hints::Hints,
    key_index::{Found, KeyIndex},
    leaf::{LEAF_MAX, Leaf},
};

#[derive(Debug)]
pub(crate) struct Index {
    /// Never empty, and neither is a branch. The first leaf is always there, for keys from the empty one on.
    branches: Vec<Branch>,
    stats: IndexStats,
}

/// Leaves in order.
#[derive(Debug, Default)]
struct Branch {
    /// The smallest key that each leaf may hold.
    bounds: Vec<Box<[u8]>>,
    hints: Hints,
    leaves: Vec<Leaf>,
}

/// Where a leaf is.
#[derive(Clone, Copy, Debug)]
struct Place {
    branch: usize,
    leaf: usize,
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
        let mut first = Branch { bounds: vec![Box::default()], leaves: vec![Leaf::default()], ..Branch::default() };
        first.rebuild_hints();
        Index { branches: vec![first], stats: IndexStats::default() }
    }
}

impl Index {
    pub(crate) fn stats(&self) -> IndexStats {
        self.stats
    }

    pub(crate) fn get(&self, key: &[u8], at: i64) -> Option<Found> {
        self.key_index(key)?.get(at)
    }

    pub(crate) fn key_index(&self, key: &[u8]) -> Option<&KeyIndex> {
        let at = self.place(key);
        let leaf = &self.branches[at.branch].leaves[at.leaf];
        leaf.find(key).ok().map(|i| &leaf.entries[i].revisions)
    }

    /// Records a put and tells what the key was.
    pub(crate) fn put(&mut self, key: &[u8], revision: Revision, leased: bool) -> Option<Before> {
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
    pub(crate) fn tombstone(&mut self, key: &[u8], revision: Revision) -> Option<Before> {
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
    pub(crate) fn restore(&mut self, key: &[u8], revision: Revision, stored: Option<(i64, i64, bool)>) {
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
    pub(crate) fn visit(&self, range: KeyRange<'_>, f: impl FnMut(&[u8], &KeyIndex) -> ControlFlow<()>) {
        self.visit_some(range, usize::MAX, f);
    }

    /// Visits keys of a range in order, up to the end of the leaf in which the count gets to `keys_min`. Gives where to go
    /// on, unless it is at the end or `f` ended it.
    fn visit_some(
        &self,
        range: KeyRange<'_>,
        keys_min: usize,
        mut f: impl FnMut(&[u8], &KeyIndex) -> ControlFlow<()>,
    ) -> Option<Box<[u8]>> {
        let KeyRange { start, end } = range;
        if end.is_point() {
            let _ = f(start, self.key_index(start)?);
            return None;
        }
        let (first, mut visited) = (self.place(start), 0);
        let mut skip = first.leaf;
        for branch in &self.branches[first.branch..] {
            let skipped = std::mem::take(&mut skip);
            for (leaf, bound) in branch.leaves.iter().zip(&branch.bounds).skip(skipped) {
                if visited >= keys_min {
                    return Some(bound.clone());
                }
                let Some(last) = leaf.entries.last() else { continue };
                // Keys are compared where the range begins and ends; all leaves between are inside.
                let from = if leaf.key(&leaf.entries[0]) >= start { 0 } else { leaf.position(start) };
                let whole = end.is_after(leaf.key(last));
                let to = if whole { leaf.entries.len() } else { leaf.end_position(&end) };
                for entry in leaf.entries.get(from..to).unwrap_or_default() {
                    if f(leaf.key(entry), &entry.revisions).is_break() {
                        return None;
                    }
                }
                if !whole {
                    return None;
                }
                visited += to.saturating_sub(from);
            }
        }
        None
    }

    /// Compacts at least `keys_min` keys from `from` on, so that the lock is held for a bounded time. Gives where to go
    /// on, or `None` at the end.
    pub(crate) fn compact(
        &mut self,
        from: &[u8],
        keys_min: usize,
        at_revision: i64,
        keep: &mut Vec<Revision>,
    ) -> Option<Box<[u8]>> {
        let mut visited = 0;
        let mut at = self.place(from);
        while let Some(branch) = self.branches.get_mut(at.branch) {
            while let Some(leaf) = branch.leaves.get_mut(at.leaf) {
                if visited >= keys_min {
                    return Some(branch.bounds[at.leaf].clone());
                }
                visited += leaf.entries.len();
                leaf.compact(at_revision, keep, &mut self.stats);
                if leaf.entries.is_empty() && !branch.bounds[at.leaf].is_empty() {
                    branch.leaves.remove(at.leaf);
                    branch.bounds.remove(at.leaf);
                    branch.rebuild_hints();
                } else {
                    at.leaf += 1;
                }
            }
            if branch.leaves.is_empty() {
                self.branches.remove(at.branch);
            } else {
                at.branch += 1;
            }
            at.leaf = 0;
        }
        None
    }

    /// The leaf that has a key, or would have it.
    fn place(&self, key: &[u8]) -> Place {
        let begins_at_or_before = |b: &Branch| b.bounds.first().is_some_and(|bound| **bound <= *key);
        let branch = self.branches.partition_point(begins_at_or_before).saturating_sub(1);
        let Branch { bounds, hints, .. } = &self.branches[branch];
        let leaf = match hints.find(key, |i| &bounds[i]) {
            Ok(leaf) => leaf,
            Err(after) => after.saturating_sub(1),
        };
        Place { branch, leaf }
    }

    /// Calls `f` on what is known of a key; what it returns is put in if nothing is.
    fn change(&mut self, key: &[u8], f: impl FnOnce(Option<&mut KeyIndex>) -> Option<KeyIndex>) {
        let at = self.place(key);
        let branch = &mut self.branches[at.branch];
        let leaf = &mut branch.leaves[at.leaf];
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
                    branch.insert(at.leaf + 1, bound, right);
                    if branch.leaves.len() > BRANCH_MAX {
                        let right = branch.split(at.leaf + 1);
                        self.branches.insert(at.branch + 1, right);
                    }
                }
            }
        }
    }
}

/// Visits a range as [`Index::visit`] does, but lets the writer in between, so that reading a large range does not hold
/// it up. What is read at a revision is not changed by later ones; whether a compaction came in between is the
/// caller's to ask.
pub(crate) fn visit_in_steps(
    index: &RwLock<Index>,
    range: KeyRange<'_>,
    mut f: impl FnMut(&[u8], &KeyIndex) -> ControlFlow<()>,
) {
    let mut next = index.read().visit_some(range, VISIT_STEP, &mut f);
    while let Some(start) = next {
        let rest = KeyRange { start: &start, end: range.end };
        next = index.read().visit_some(rest, VISIT_STEP, &mut f);
    }
}

/// Keys visited before the lock is given back: some tens of microseconds.
const VISIT_STEP: usize = 4096;
const BRANCH_MAX: usize = 256;

impl Branch {
    /// Halves a full branch; as with leaves, one that grew at its end stays full.
    fn split(&mut self, inserted: usize) -> Branch {
        let middle = if inserted + 1 == self.leaves.len() { inserted } else { self.leaves.len() / 2 };
        let (bounds, leaves) = (self.bounds.split_off(middle), self.leaves.split_off(middle));
        let mut right = Branch { bounds, leaves, ..Branch::default() };
        right.rebuild_hints();
        self.rebuild_hints();
        right
    }

    fn insert(&mut self, i: usize, bound: Box<[u8]>, leaf: Leaf) {
        self.bounds.insert(i, bound);
        self.leaves.insert(i, leaf);
        self.hints.insert(i, &self.bounds[i], BRANCH_MAX / 8, |i| &self.bounds[i]);
    }

    fn rebuild_hints(&mut self) {
        self.hints.rebuild(self.bounds.len(), |i| &self.bounds[i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::End;

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
            for some in [1, 100, 4000] {
                let (mut found, mut next) = (Vec::new(), Some(Box::from(*b"1")));
                while let Some(start) = next {
                    let range = KeyRange { start: &start, end: End::Before(b"8") };
                    next = index.visit_some(range, some, |key, _| {
                        found.push(key.to_vec());
                        ControlFlow::Continue(())
                    });
                }
                let inside = want.iter().filter(|k| k[0] >= b'1' && k[0] < b'8');
                assert!(found.iter().eq(inside));
            }
            assert_eq!(index.stats(), IndexStats { live: 5000, keys: 5000, revisions: 5000 });
            for i in 0..n {
                let key = (i * step % n).to_string();
                assert_eq!(index.get(key.as_bytes(), i64::MAX).map(|f| f.modified.main), Some(i as i64 + 2));
            }
        }
    }

    /// All that is allocated, but for the allocator's own share.
    fn bytes(index: &Index) -> usize {
        let of_branch = |b: &Branch| {
            let bounds = b.bounds.capacity() * size_of::<Box<[u8]>>() + b.bounds.iter().map(|k| k.len()).sum::<usize>();
            bounds
                + b.hints.bytes()
                + b.leaves.capacity() * size_of::<Leaf>()
                + b.leaves.iter().map(Leaf::bytes).sum::<usize>()
        };
        index.branches.iter().map(of_branch).sum()
    }

    #[test]
    fn a_small_key_costs_less_than_100_bytes() {
        let n = 100_000u64;
        for (step, most) in [(1, 75), (n - 1, 100), (61_807, 100)] {
            let mut index = Index::default();
            for i in 0..n {
                let key = format!("key-{:016}", i * step % n);
                index.put(key.as_bytes(), Revision::new(i as i64 + 2, 0), false);
            }
            assert_eq!(index.stats().keys, n as usize);
            let each = bytes(&index) / n as usize;
            assert!(each <= most, "step {step}: {each}");
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
        let leaves: usize = index.branches.iter().map(|b| b.leaves.len()).sum();
        assert!(leaves < 5, "{leaves}");
        assert_eq!(keys(&index, b"\0", b"\0", 4000).len(), 10);
    }
}
