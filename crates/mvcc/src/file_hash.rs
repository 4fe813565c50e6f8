//! The hash of a file that nobody serves: two passes over it, and memory for one small entry per key, none for values
//! and history.

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

/// What [`crate::Store::hash_kv`] gives for the same file. `progress` is told the bytes seen so far; each is seen twice.
pub fn hash_file(file: &impl Read, rev: i64, progress: &mut dyn FnMut(u64)) -> Result<HashKv, FileHashError> {
    let scheduled = meta::scheduled_compact_rev(file).map_err(OpenError::from)?;
    let finished = meta::finished_compact_rev(file).map_err(OpenError::from)?;
    let compact_revision = finished.max(scheduled).unwrap_or(-1);
    let mut seen = 0;
    let (newest, last) = read_newest(file, rev, compact_revision, &mut |n| {
        seen += n;
        progress(seen);
    })?;
    let current = last.max(1).max(compact_revision);
    if rev > 0 && rev < compact_revision {
        return Err(Error::Compacted { requested: rev, compact_revision }.into());
    }
    if rev > current {
        return Err(Error::FutureRevision { requested: rev, current }.into());
    }
    let rev = if rev == 0 { current } else { rev };
    let mut hasher = Hasher::new(compact_revision, rev, &newest.kept_at(rev));
    file.scan(Bucket::Key, b"", b"", &mut |key, value| {
        seen += (key.len() + value.len()) as u64;
        progress(seen);
        match RevisionKey::decode(key) {
            Some(at) if at.main <= rev => hasher.write(at, key, value),
            _ => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    });
    Ok(hasher.finish(current))
}

/// The newest change of each key, under 128 random bits of its hash: two keys would have to agree in all of them.
struct Newest {
    changes: HashMap<u128, Change>,
    hashers: [RandomState; 2],
}

#[derive(Clone, Copy)]
struct Change {
    at: Revision,
    tombstone: bool,
    /// A put after a deletion in the same request.
    reborn: bool,
}

impl Newest {
    fn put(&mut self, key: &[u8], at: Revision, tombstone: bool) {
        let [high, low] = [&self.hashers[0], &self.hashers[1]].map(|h| u128::from(h.hash_one(key)));
        let change = self.changes.entry(high << 64 | low).or_insert(Change { at, tombstone, reborn: false });
        let reborn = !tombstone && (change.tombstone || change.reborn) && change.at.main == at.main;
        *change = Change { at, tombstone, reborn };
    }

    /// What a compaction at `rev` keeps, ascending. As in etcd, a key that a request at `rev` deletes and puts again
    /// counts as deleted.
    fn kept_at(self, rev: i64) -> Vec<Revision> {
        let kept = |c: &Change| !(c.tombstone || c.reborn && c.at.main == rev);
        let mut keep: Vec<_> = self.changes.into_values().filter(kept).map(|c| c.at).collect();
        keep.sort_unstable();
        keep
    }
}

/// The newest changes up to `rev`, zero for all, and the last revision of the file.
fn read_newest(
    file: &impl Read,
    rev: i64,
    compact_revision: i64,
    progress: &mut dyn FnMut(u64),
) -> Result<(Newest, i64), OpenError> {
    let mut newest = Newest { changes: HashMap::new(), hashers: Default::default() };
    let mut last = 0;
    let mut result = Ok(());
    let mut take = |key: &[u8], value: &[u8]| {
        let at = RevisionKey::decode(key).ok_or_else(|| OpenError::RevisionKey { key: key.to_vec() })?;
        let sub = u32::try_from(at.sub).map_err(|_| OpenError::SubRevision { main: at.main, sub: at.sub })?;
        let kv = KvFields::parse(value).ok_or(OpenError::KeyValue { main: at.main, sub: at.sub })?;
        last = at.main;
        // Only what is compacted is left out of a hash.
        if compact_revision > 0 && (rev == 0 || at.main <= rev) {
            newest.put(kv.key, Revision::new(at.main, sub), at.tombstone);
        }
        Ok(())
    };
    let from = RevisionKey::new(1, 0).encode();
    file.scan(Bucket::Key, &from, b"", &mut |key, value| {
        progress((key.len() + value.len()) as u64);
        result = take(key, value);
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    result.map(|()| (newest, last))
}
