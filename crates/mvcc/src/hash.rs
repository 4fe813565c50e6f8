//! The hash over bucket `key`, by which members find out whether they hold the same.

use std::ops::ControlFlow;

use storage::{Bucket, Read, schema::RevisionKey};

use crate::{
    Error, KeyRange, Revision, contents::Contents, file_hash::Marks, index::visit_in_steps, store::Shared,
    values::Published,
};

/// Equal on members that hold the same revisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashKv {
    pub hash: u32,
    /// What was compacted when the hash was made; hashes with different ones cannot be compared.
    pub compact_revision: i64,
    /// The last revision that the hash covers.
    pub hash_revision: i64,
    /// The newest revision of the store.
    pub revision: i64,
}

/// Hashes that compactions left, by revision; the newest ten.
#[derive(Debug, Default)]
pub(crate) struct Hashes(Vec<HashKv>);

const HASHES_MAX: usize = 10;

impl Hashes {
    pub(crate) fn store(&mut self, hash: HashKv) {
        let at = self.0.partition_point(|h| h.hash_revision <= hash.hash_revision);
        self.0.insert(at, hash);
        if self.0.len() > HASHES_MAX {
            self.0.remove(0);
        }
    }

    fn at(&self, revision: i64) -> Option<HashKv> {
        self.0.iter().find(|h| h.hash_revision == revision).copied()
    }
}

/// Hashes records of bucket `key`, given in order.
#[derive(Debug)]
pub(crate) struct Hasher {
    crc: u32,
    compact_revision: i64,
    hash_revision: i64,
    keep: Keep,
    /// As in etcd, if nothing at all is kept then nothing is left out.
    skips: bool,
}

/// Of the revisions up to the compacted one, those that count.
#[derive(Debug)]
enum Keep {
    /// Ascending, from `next` on.
    List { revisions: Vec<Revision>, next: usize },
    /// By the number of their record, of which `next` comes next.
    Marks { marks: Marks, next: u64 },
}

impl Hasher {
    /// `keep` are the revisions that compaction at `hash_revision` keeps, in ascending order.
    pub(crate) fn new(compact_revision: i64, hash_revision: i64, keep: &[Revision]) -> Self {
        let skips = !keep.is_empty();
        let revisions = keep[..keep.partition_point(|r| r.main <= compact_revision)].to_vec();
        Self::begin(compact_revision, hash_revision, Keep::List { revisions, next: 0 }, skips)
    }

    /// The same with marks in place of a list; every record must be written, from revision 1 on.
    pub(crate) fn with_marks(compact_revision: i64, hash_revision: i64, marks: Marks) -> Self {
        let skips = marks.any;
        Self::begin(compact_revision, hash_revision, Keep::Marks { marks, next: 0 }, skips)
    }

    fn begin(compact_revision: i64, hash_revision: i64, keep: Keep, skips: bool) -> Self {
        let crc = crc32c::crc32c(Bucket::Key.name().as_bytes());
        Hasher { crc, compact_revision, hash_revision, keep, skips }
    }

    pub(crate) fn write(&mut self, at: RevisionKey, key: &[u8], value: &[u8]) {
        if at.main > self.hash_revision {
            return;
        }
        if at.main <= self.compact_revision && self.skips && !self.is_kept(at) {
            return;
        }
        // Releases before 3.5.16 removed a tombstone at the compacted revision.
        if at.main == self.compact_revision && at.tombstone {
            return;
        }
        self.crc = crc32c::crc32c_append(self.crc, key);
        self.crc = crc32c::crc32c_append(self.crc, value);
    }

    pub(crate) fn finish(self, revision: i64) -> HashKv {
        HashKv { hash: self.crc, compact_revision: self.compact_revision, hash_revision: self.hash_revision, revision }
    }

    fn is_kept(&mut self, at: RevisionKey) -> bool {
        match &mut self.keep {
            Keep::List { revisions, next } => {
                let at = Revision::new(at.main, at.sub as u32);
                while revisions.get(*next).is_some_and(|kept| *kept < at) {
                    *next += 1;
                }
                revisions.get(*next) == Some(&at)
            }
            // No key has been written before revision 1.
            Keep::Marks { .. } if at.main < 1 => false,
            Keep::Marks { marks, next } => {
                *next += 1;
                marks.has(*next - 1)
            }
        }
    }
}

impl Shared {
    pub(crate) fn hash_kv(&self, rev: i64) -> Result<HashKv, Error> {
        // Also for 0, which asks for the newest: as in etcd, what a compaction at revision 0 has left answers it.
        let known = self.contents().hashes.lock().at(rev);
        match known {
            Some(known) => Ok(HashKv { revision: self.revision(), ..known }),
            None => self.compute_hash(rev),
        }
    }

    /// The hash of what is there now, whatever compactions have left behind.
    pub(crate) fn compute_hash(&self, rev: i64) -> Result<HashKv, Error> {
        loop {
            // Before the view is opened: what is compacted later is not missing in it.
            let compact_revision = self.compact_revision();
            let (current, values) = self.snapshot();
            let contents = &*values.tail.contents;
            let hash = compute_hash(rev, compact_revision, current, &values)?;
            // Otherwise a compaction removed some of what was to be hashed, or it is of another file.
            if contents.compact_revision() == compact_revision {
                return Ok(hash);
            }
        }
    }

    pub(crate) fn compaction_hashes(&self) -> Vec<HashKv> {
        let revision = self.revision();
        self.contents().hashes.lock().0.iter().map(|h| HashKv { revision, ..*h }).collect()
    }
}

fn compute_hash(rev: i64, compact_revision: i64, current: i64, values: &Published) -> Result<HashKv, Error> {
    if rev > 0 && rev < compact_revision {
        return Err(Error::Compacted { requested: rev, compact_revision });
    }
    if rev > current {
        return Err(Error::FutureRevision { requested: rev, current });
    }
    let rev = if rev == 0 { current } else { rev };
    let mut hasher = Hasher::new(compact_revision, rev, &kept_at(&values.tail.contents, rev));
    let tail_key = RevisionKey::new(values.tail.revision, 0).encode();
    let to = if values.tail.changes.is_empty() { &b""[..] } else { &tail_key };
    values.view.scan(Bucket::Key, b"", to, &mut |key, value| {
        match RevisionKey::decode(key) {
            Some(at) if at.main <= rev => hasher.write(at, key, value),
            _ => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    });
    for (at, value) in values.tail.records() {
        hasher.write(at, &at.encode(), value);
    }
    Ok(hasher.finish(current))
}

/// The newest revision up to `rev` of each key that exists then, ascending.
fn kept_at(contents: &Contents, rev: i64) -> Vec<Revision> {
    let mut keep = Vec::new();
    // Also the empty key, which no request can name: a restored snapshot with a raised revision has it.
    visit_in_steps(&contents.index, KeyRange::new(b"", b"\0"), |_, ki| {
        keep.extend(ki.keep(rev));
        ControlFlow::Continue(())
    });
    keep.sort_unstable();
    keep
}
