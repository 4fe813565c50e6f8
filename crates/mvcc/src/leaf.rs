//! A stretch of the index: some keys, with their bytes in one buffer.

use crate::{End, Revision, hints::Hints, index::IndexStats, key_index::KeyIndex};

pub(crate) const LEAF_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Leaf {
    bytes: Vec<u8>,
    /// In the order of their keys.
    pub entries: Vec<Entry>,
    hints: Hints,
    /// How many of `bytes` belong to no entry any more.
    unused: usize,
}

#[derive(Debug)]
pub(crate) struct Entry {
    at: u32,
    len: u32,
    pub revisions: KeyIndex,
}

impl Leaf {
    pub(crate) fn key(&self, entry: &Entry) -> &[u8] {
        entry.key(&self.bytes)
    }

    pub(crate) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.hints.find(key, |i| self.key(&self.entries[i]))
    }

    /// Where the first key is that is not before the given one.
    pub(crate) fn position(&self, key: &[u8]) -> usize {
        self.find(key).unwrap_or_else(|i| i)
    }

    pub(crate) fn end_position(&self, end: &End<'_>) -> usize {
        self.entries.partition_point(|e| end.is_after(self.key(e)))
    }

    pub(crate) fn insert(&mut self, i: usize, key: &[u8], revisions: KeyIndex) {
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
        let (bytes, entries) = (&self.bytes, &self.entries);
        self.hints.insert(i, key, LEAF_MAX / 8, |i| entries[i].key(bytes));
    }

    /// Halves a full leaf. After an insert at its end it stays full, so that keys put in order fill their leaves.
    pub(crate) fn split(&mut self, inserted: usize) -> (Box<[u8]>, Leaf) {
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
        right.rebuild_hints();
        self.unused += bytes;
        self.pack();
        let bound = right.entries.first().map(|e| right.key(e).into()).unwrap_or_default();
        (bound, right)
    }

    pub(crate) fn compact(&mut self, at: i64, keep: &mut Vec<Revision>, stats: &mut IndexStats) {
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
        } else if unused > 0 {
            self.rebuild_hints();
        }
    }

    /// Rewrites the buffer without the bytes that no entry uses, and without room to grow.
    fn pack(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.unused);
        for entry in &mut self.entries {
            let key = entry.key(&self.bytes);
            entry.at = bytes.len() as u32;
            bytes.extend_from_slice(key);
        }
        self.bytes = bytes;
        self.entries.shrink_to_fit();
        self.unused = 0;
        self.rebuild_hints();
    }

    /// What it has allocated.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>() + self.hints.bytes()
    }

    fn rebuild_hints(&mut self) {
        let (bytes, entries) = (&self.bytes, &self.entries);
        self.hints.rebuild(entries.len(), |i| entries[i].key(bytes));
    }
}

impl Entry {
    fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.at as usize..self.at as usize + self.len as usize]
    }
}
