//! The hash of a file that nobody serves, in memory that does not grow with it: a small entry for each of a limited number of
//! keys, and a bit for each compacted record. Two passes over the file do, and one more for each further lot of keys.

#![expect(
    clippy::disallowed_types,
    reason = "half the memory of a tree; its order is never seen, what is kept is sorted"
)]

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    ops::ControlFlow,
};

use storage::{
    Bucket, Read,
    schema::{RevisionKey, meta},
};

use crate::{Error, HashKv, KvFields, OpenError, Revision, hash::Hasher};

/// Why there is no hash.
#[derive(Debug, thiserror::Error)]
pub enum FileHashError {
    #[error(transparent)]
    Contents(#[from] OpenError),
    #[error(transparent)]
    Revision(#[from] Error),
}

/// So many keys take about 50 MB.
const KEYS_MAX: usize = 1 << 19;

/// What [`crate::Store::hash_kv`] gives for the same file. `progress` is told the bytes seen so far; each is seen twice, or more
/// often if there are many keys.
pub fn hash_file(file: &impl Read, rev: i64, progress: &mut dyn FnMut(u64)) -> Result<HashKv, FileHashError> {
    hash_file_within(file, rev, KEYS_MAX, progress)
}

/// [`hash_file`] with room for `keys_max` keys at a time.
pub fn hash_file_within(
    file: &impl Read,
    rev: i64,
    keys_max: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<HashKv, FileHashError> {
    let scheduled = meta::scheduled_compact_rev(file).map_err(OpenError::from)?;
    let finished = meta::finished_compact_rev(file).map_err(OpenError::from)?;
    let compact_revision = finished.max(scheduled).unwrap_or(-1);
    let mut seen = 0;
    let mut progress = |bytes| {
        seen += bytes;
        progress(seen);
    };
    let mut search = Search { rev, compact_revision, keys_max, last: 0, marks: Marks::default() };
    let mut shares = vec![Share { prefix: 0, depth: 0 }];
    while let Some(share) = shares.pop() {
        search.pass(file, share, &mut shares, &mut progress)?;
    }
    let current = search.current();
    if rev > 0 && rev < compact_revision {
        return Err(Error::Compacted { requested: rev, compact_revision }.into());
    }
    if rev > current {
        return Err(Error::FutureRevision { requested: rev, current }.into());
    }
    let rev = if rev == 0 { current } else { rev };
    let mut hasher = Hasher::with_marks(compact_revision, rev, search.marks);
    file.scan(Bucket::Key, b"", b"", &mut |key, value| {
        progress((key.len() + value.len()) as u64);
        match RevisionKey::decode(key) {
            Some(at) if at.main <= rev => hasher.write(at, key, value),
            _ => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    });
    Ok(hasher.finish(current))
}

/// The keys whose hashes end in `depth` bits of `prefix`.
#[derive(Clone, Copy)]
struct Share {
    prefix: u128,
    depth: u32,
}

impl Share {
    fn has(self, id: u128) -> bool {
        (id ^ self.prefix) & ((1 << self.depth) - 1) == 0
    }

    /// Two shares of about half the keys each.
    fn split(self) -> (Share, Share) {
        let depth = self.depth + 1;
        (Share { depth, ..self }, Share { prefix: self.prefix | 1 << self.depth, depth })
    }
}

/// Finds out which of the compacted records a hash counts.
struct Search {
    rev: i64,
    compact_revision: i64,
    keys_max: usize,
    /// The last revision of the file.
    last: i64,
    marks: Marks,
}

/// The newest change of a key.
#[derive(Clone, Copy)]
struct Change {
    at: Revision,
    /// The number of its record among those that are compacted.
    record: Option<u64>,
    tombstone: bool,
    /// A put after a deletion in the same request.
    reborn: bool,
}

/// The newest change of each key of a share, under 128 random bits of the key's hash: two keys would have to agree in all.
#[derive(Default)]
struct Newest {
    changes: HashMap<u128, Change>,
}

impl Newest {
    fn put(&mut self, id: u128, at: Revision, record: Option<u64>, tombstone: bool) {
        let change = self.changes.entry(id).or_insert(Change { at, record, tombstone, reborn: false });
        let reborn = !tombstone && (change.tombstone || change.reborn) && change.at.main == at.main;
        *change = Change { at, record, tombstone, reborn };
    }
}

impl Search {
    fn current(&self) -> i64 {
        self.last.max(1).max(self.compact_revision)
    }

    /// Marks what a compaction keeps of the share's keys. If they are too many, half of them are left for another pass.
    fn pass(
        &mut self,
        file: &impl Read,
        mut share: Share,
        shares: &mut Vec<Share>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), OpenError> {
        // The same in every pass: a key belongs to one share.
        let hashers = self.marks.hashers.clone();
        let mut newest = Newest::default();
        let (mut records, mut result) = (0, Ok::<(), OpenError>(()));
        let from = RevisionKey::new(1, 0).encode();
        let mut take = |key: &[u8], value: &[u8]| {
            let at = RevisionKey::decode(key).ok_or_else(|| OpenError::RevisionKey { key: key.to_vec() })?;
            let sub = u32::try_from(at.sub).map_err(|_| OpenError::SubRevision { main: at.main, sub: at.sub })?;
            let kv = KvFields::parse(value).ok_or(OpenError::KeyValue { main: at.main, sub: at.sub })?;
            self.last = at.main;
            let record = (at.main <= self.compact_revision).then_some(records);
            records += u64::from(record.is_some());
            // Only what is compacted is left out of a hash.
            if self.compact_revision <= 0 || self.rev != 0 && at.main > self.rev {
                return Ok(());
            }
            let [high, low] = [&hashers[0], &hashers[1]].map(|h| u128::from(h.hash_one(kv.key)));
            let id = high << 64 | low;
            if share.has(id) {
                newest.put(id, Revision::new(at.main, sub), record, at.tombstone);
            }
            if newest.changes.len() > self.keys_max {
                let (mine, other) = share.split();
                share = mine;
                shares.push(other);
                newest.changes.retain(|id, _| mine.has(*id));
            }
            Ok(())
        };
        file.scan(Bucket::Key, &from, b"", &mut |key, value| {
            progress((key.len() + value.len()) as u64);
            result = take(key, value);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        result?;
        self.mark(newest);
        Ok(())
    }

    /// As in etcd, a key that a request at the hash's revision deletes and puts again counts as deleted.
    fn mark(&mut self, newest: Newest) {
        let rev = if self.rev == 0 { self.current() } else { self.rev };
        for change in newest.changes.into_values() {
            if !(change.tombstone || change.reborn && change.at.main == rev) {
                self.marks.set(change.record);
            }
        }
    }
}

/// Which records count, by their number among those that are compacted.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    bits: Vec<u64>,
    /// Whether anything is kept, compacted or not.
    pub any: bool,
    hashers: [RandomState; 2],
}

impl Marks {
    fn set(&mut self, record: Option<u64>) {
        self.any = true;
        let Some(record) = record else { return };
        let word = (record / 64) as usize;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (record % 64);
    }

    pub(crate) fn has(&self, record: u64) -> bool {
        self.bits.get((record / 64) as usize).is_some_and(|word| word >> (record % 64) & 1 == 1)
    }
}
