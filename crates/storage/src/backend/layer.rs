//! Changes that are applied but not yet committed.

use std::{
    collections::BTreeMap,
    ops::{Bound, Deref},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::{ArcRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard};

use crate::schema::{Bucket, RevisionKey, meta};

/// A layer as the writer and all readers hold it.
#[derive(Clone)]
pub(super) struct SharedLayer {
    lock: Arc<RwLock<Layer>>,
    floor: Arc<AtomicI64>,
}

impl Default for SharedLayer {
    fn default() -> Self {
        let layer = Layer::default();
        SharedLayer { floor: layer.floor.clone(), lock: Arc::new(RwLock::new(layer)) }
    }
}

impl SharedLayer {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Layer> {
        self.lock.read()
    }

    pub(super) fn write(&self) -> ArcRwLockWriteGuard<RawRwLock, Layer> {
        self.lock.write_arc()
    }

    /// [`Layer::get`]. Most reads are of revisions older than the layer: those need no lock.
    pub(super) fn get(&self, bucket: Bucket, key: &[u8]) -> Option<Option<Bytes>> {
        if bucket == Bucket::Key
            && let Some(main) = key.first_chunk::<8>()
            && i64::from_be_bytes(*main) < self.floor.load(Ordering::Acquire)
        {
            return None;
        }
        self.read().get(bucket, key)
    }
}

/// Changes of one batch interval, by bucket. `None` as value is a deletion.
pub(super) struct Layer {
    /// Bucket `key`, as long as revisions arrive in order, which is nearly always: appending to a sorted list is far
    /// cheaper than a tree. Invariant: strictly increasing, and no key is also in the tree of the bucket.
    run: Vec<(RevisionKey, Option<Bytes>)>,
    trees: [BTreeMap<Bytes, Option<Bytes>>; 10],
    /// Index and term of the last applied entry; reads as the keys of bucket `meta` that the commit writes.
    pub consistent: Option<Consistent>,
    /// Changes made, counting each one.
    pub ops: usize,
    /// Keys and values held.
    pub bytes: usize,
    /// No key of bucket `key` here begins with a smaller number. Changes under the lock, is read without it.
    floor: Arc<AtomicI64>,
    floor_known: i64,
}

impl Default for Layer {
    fn default() -> Self {
        Layer {
            run: Vec::new(),
            trees: Default::default(),
            consistent: None,
            ops: 0,
            bytes: 0,
            floor: Arc::new(AtomicI64::new(i64::MAX)),
            floor_known: i64::MAX,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Consistent {
    pub index: u64,
    pub term: u64,
}

/// A change inside a [`Layer`].
pub(super) struct Change {
    pub key: ChangeKey,
    pub value: Option<Bytes>,
}

/// A key without an allocation of its own where it is a revision.
pub(super) enum ChangeKey {
    Revision(crate::schema::EncodedRevision),
    Bytes(Bytes),
}

impl Deref for ChangeKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            ChangeKey::Revision(r) => r,
            ChangeKey::Bytes(b) => b,
        }
    }
}

impl Layer {
    pub(super) fn is_empty(&self) -> bool {
        self.ops == 0 && self.consistent.is_none()
    }

    pub(super) fn put(&mut self, bucket: Bucket, key: Bytes, value: Option<Bytes>) {
        if bucket == Bucket::Key {
            if let Some(revision) = RevisionKey::decode(&key) {
                return self.put_revision(revision, value);
            }
            self.lower_floor(i64::MIN);
        }
        self.count(key.len(), &value);
        self.trees[bucket as usize].insert(key, value);
    }

    pub(super) fn put_revision(&mut self, key: RevisionKey, value: Option<Bytes>) {
        self.count(RevisionKey::LEN, &value);
        self.lower_floor(key.main);
        if self.run.last().is_none_or(|(last, _)| *last < key) {
            return self.run.push((key, value));
        }
        match self.run.binary_search_by_key(&key, |(k, _)| *k) {
            Ok(at) => self.run[at].1 = value,
            Err(_) => {
                self.trees[Bucket::Key as usize].insert(key.into(), value);
            }
        }
    }

    /// `None` if this layer does not know the key; `Some(None)` if it was deleted here.
    pub(super) fn get(&self, bucket: Bucket, key: &[u8]) -> Option<Option<Bytes>> {
        match bucket {
            Bucket::Key => {
                if let Some(value) = self.in_run(key) {
                    return Some(value);
                }
            }
            Bucket::Meta => {
                if let Some(change) = self.consistent_changes().find(|c| *c.key == *key) {
                    return Some(change.value);
                }
            }
            _ => {}
        }
        let tree = &self.trees[bucket as usize];
        if tree.is_empty() { None } else { tree.get(key).cloned() }
    }

    /// Appends the changes in `from..to` (an empty `to` means to the end), in order.
    pub(super) fn range(&self, bucket: Bucket, from: &[u8], to: &[u8]) -> Vec<Change> {
        let mut out = Vec::new();
        if bucket == Bucket::Meta {
            out.extend(self.consistent_changes().filter(|c| *c.key >= *from && (to.is_empty() || *c.key < *to)));
        }
        if bucket == Bucket::Key {
            out.extend(
                self.run_range(from, to)
                    .iter()
                    .map(|(k, v)| Change { key: ChangeKey::Revision(k.encode()), value: v.clone() }),
            );
        }
        let first = out.len();
        let upper = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
        if to.is_empty() || from < to {
            let tree = self.trees[bucket as usize].range::<[u8], _>((Bound::Included(from), upper));
            out.extend(tree.map(|(k, v)| Change { key: ChangeKey::Bytes(k.clone()), value: v.clone() }));
        }
        if first > 0 && first < out.len() {
            settle(&mut out);
        }
        out
    }

    fn count(&mut self, key_bytes: usize, value: &Option<Bytes>) {
        self.ops += 1;
        self.bytes += key_bytes + value.as_ref().map_or(0, |v| v.len());
    }

    fn lower_floor(&mut self, main: i64) {
        if main < self.floor_known {
            self.floor_known = main;
            self.floor.store(main, Ordering::Release);
        }
    }

    fn in_run(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let (first, last) = (self.run.first()?.0, self.run.last()?.0);
        let key = RevisionKey::decode(key)?;
        if key < first || key > last {
            return None;
        }
        // Mostly each revision has one change, and then its place is known.
        let guess = (key.main - first.main) as usize;
        if let Some((_, value)) = self.run.get(guess).filter(|(k, _)| *k == key) {
            return Some(value.clone());
        }
        let at = self.run.binary_search_by_key(&key, |(k, _)| *k).ok()?;
        Some(self.run[at].1.clone())
    }

    fn run_range(&self, from: &[u8], to: &[u8]) -> &[(RevisionKey, Option<Bytes>)] {
        let start = self.run.partition_point(|(k, _)| k.encode()[..] < *from);
        let rest = &self.run[start..];
        let end = if to.is_empty() { rest.len() } else { rest.partition_point(|(k, _)| k.encode()[..] < *to) };
        &rest[..end]
    }

    /// What the commit will write for [`Layer::consistent`]. As in etcd, a term of zero is not written.
    fn consistent_changes(&self) -> impl Iterator<Item = Change> {
        let fields = self.consistent.map(|c| [(meta::CONSISTENT_INDEX, c.index), (meta::TERM, c.term)]);
        fields.into_iter().flatten().filter(|(key, n)| *key != meta::TERM || *n > 0).map(|(key, n)| Change {
            key: ChangeKey::Bytes(Bytes::from_static(key)),
            value: Some(Bytes::copy_from_slice(&n.to_be_bytes())),
        })
    }
}

/// The changes of both, where `newer` wins.
pub(super) fn overlay(newer: Vec<Change>, older: Vec<Change>) -> Vec<Change> {
    if newer.is_empty() {
        return older;
    }
    if older.is_empty() {
        return newer;
    }
    let mut all = newer;
    all.extend(older);
    settle(&mut all);
    all
}

/// Sorts by key; of equal keys the first stays. The sort is stable and takes sorted stretches as they are.
fn settle(changes: &mut Vec<Change>) {
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    changes.dedup_by(|later, first| *later.key == *first.key);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rev(main: i64) -> RevisionKey {
        RevisionKey::new(main, 0)
    }

    fn value(text: &str) -> Option<Bytes> {
        Some(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn mains(changes: &[Change]) -> Vec<i64> {
        changes.iter().map(|c| RevisionKey::decode(&c.key).unwrap().main).collect()
    }

    #[test]
    fn revisions_out_of_order_are_found_and_listed_in_order() {
        let mut layer = Layer::default();
        for main in [5, 6, 9, 3, 7, 6] {
            layer.put_revision(rev(main), value(&format!("{main}/{}", layer.ops)));
        }
        layer.put(Bucket::Key, rev(9).into(), None);
        assert_eq!(mains(&layer.range(Bucket::Key, b"", b"")), [3, 5, 6, 7, 9]);
        assert_eq!(mains(&layer.range(Bucket::Key, &rev(5).encode(), &rev(9).encode())), [5, 6, 7]);
        assert_eq!(layer.get(Bucket::Key, &rev(6).encode()), Some(value("6/5")));
        assert_eq!(layer.get(Bucket::Key, &rev(3).encode()), Some(value("3/3")));
        assert_eq!(layer.get(Bucket::Key, &rev(9).encode()), Some(None));
        assert_eq!(layer.get(Bucket::Key, &rev(4).encode()), None);
        assert_eq!(layer.ops, 7);
        assert!(layer.range(Bucket::Key, &rev(9).encode(), &rev(5).encode()).is_empty());
    }

    #[test]
    fn what_is_below_the_floor_is_not_here() {
        let shared = SharedLayer::default();
        shared.write().put_revision(rev(5), value("5"));
        shared.write().put_revision(rev(9), value("9"));
        assert_eq!(shared.get(Bucket::Key, &rev(4).encode()), None);
        assert_eq!(shared.get(Bucket::Key, &rev(9).encode()), Some(value("9")));
        shared.write().put_revision(rev(3), None);
        assert_eq!(shared.get(Bucket::Key, &rev(3).encode()), Some(None));
        shared.write().put(Bucket::Key, Bytes::from_static(b"\0\0\0\0\0\0\0\0odd"), value("odd"));
        assert_eq!(shared.get(Bucket::Key, b"\0\0\0\0\0\0\0\0odd"), Some(value("odd")));
    }

    #[test]
    fn keys_that_are_no_revisions_are_kept_too() {
        let mut layer = Layer::default();
        layer.put_revision(rev(5), value("5"));
        layer.put(Bucket::Key, Bytes::from_static(b"odd"), value("odd"));
        assert_eq!(layer.get(Bucket::Key, b"odd"), Some(value("odd")));
        assert_eq!(layer.range(Bucket::Key, b"", b"").len(), 2);
    }

    #[test]
    fn the_consistent_index_reads_as_keys_of_meta() {
        let mut layer = Layer { consistent: Some(Consistent { index: 7, term: 2 }), ..Layer::default() };
        layer.put(Bucket::Meta, Bytes::from_static(b"storageVersion"), value("3.8.0"));
        assert_eq!(layer.get(Bucket::Meta, meta::TERM), Some(value("\0\0\0\0\0\0\0\x02")));
        let keys: Vec<_> = layer.range(Bucket::Meta, b"", b"").iter().map(|c| c.key.to_vec()).collect();
        assert_eq!(keys, [b"consistent_index".to_vec(), b"storageVersion".to_vec(), b"term".to_vec()]);
        assert_eq!(layer.range(Bucket::Meta, b"d", b"t").len(), 1);
        layer.consistent = Some(Consistent { index: 7, term: 0 });
        assert_eq!(layer.get(Bucket::Meta, meta::TERM), None);
    }

    #[test]
    fn the_newer_layer_wins() {
        let (mut newer, mut older) = (Layer::default(), Layer::default());
        older.put_revision(rev(1), value("old"));
        older.put_revision(rev(2), value("old"));
        newer.put_revision(rev(2), None);
        newer.put_revision(rev(3), value("new"));
        let all = overlay(newer.range(Bucket::Key, b"", b""), older.range(Bucket::Key, b"", b""));
        assert_eq!(mains(&all), [1, 2, 3]);
        assert!(all[1].value.is_none());
    }
}
