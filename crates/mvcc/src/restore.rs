//! Reading the index back from the file.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use storage::{
    Bucket, Read,
    schema::{RevisionKey, meta},
};

use crate::{CompactionJob, OpenError, Revision, contents::Contents, index::Index, raw_kv::KvFields};

/// What a file holds.
pub(crate) struct Restored {
    pub index: Index,
    pub revision: i64,
    pub compact_revision: i64,
    pub leases: BTreeMap<Bytes, i64>,
    finished: Option<i64>,
}

impl Restored {
    /// What to publish, with its newest revision and the compaction that is not finished.
    pub(crate) fn into_contents(self, generation: u64) -> (Arc<Contents>, i64, Option<CompactionJob>) {
        let Restored { index, revision, compact_revision, finished, .. } = self;
        let contents = Arc::new(Contents::new(generation, index, compact_revision));
        let finished = finished.unwrap_or(-1);
        let pending =
            (compact_revision > finished).then(|| CompactionJob::resume(&contents, compact_revision, finished));
        (contents, revision, pending)
    }
}

pub(crate) fn read(file: &impl Read) -> Result<Restored, OpenError> {
    let (compact_revision, finished) = compactions(file)?;
    let leases = BTreeMap::new();
    let mut restored = Restored { index: Index::default(), revision: 1, compact_revision, leases, finished };
    each_change(file, |at, kv| restored.take(at, kv))?;
    // Compaction may have removed the newest revisions (tombstones), also one that did not finish. Revisions must not
    // be given out twice.
    restored.revision = restored.revision.max(compact_revision);
    Ok(restored)
}

/// The revision up to which the file is compacted, -1 if it never was, and the last compaction that was finished.
pub(crate) fn compactions(file: &impl Read) -> Result<(i64, Option<i64>), OpenError> {
    let finished = meta::finished_compact_rev(file)?;
    let scheduled = meta::scheduled_compact_rev(file)?;
    Ok((finished.max(scheduled).unwrap_or(-1), finished))
}

pub(crate) fn revision_of(at: RevisionKey) -> Result<Revision, OpenError> {
    let sub = u32::try_from(at.sub).map_err(|_| OpenError::SubRevision { main: at.main, sub: at.sub })?;
    Ok(Revision::new(at.main, sub))
}

/// Visits all that the file holds of keys, in the order of revisions.
pub(crate) fn each_change(
    file: &impl Read,
    mut f: impl FnMut(RevisionKey, KvFields<'_>) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let mut result = Ok(());
    let from = RevisionKey::new(1, 0).encode();
    file.scan(Bucket::Key, &from, b"", &mut |key, value| {
        result = parse(key, value).and_then(|(at, kv)| f(at, kv));
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    result
}

fn parse<'a>(key: &[u8], value: &'a [u8]) -> Result<(RevisionKey, KvFields<'a>), OpenError> {
    let at = RevisionKey::decode(key).ok_or_else(|| OpenError::RevisionKey { key: key.to_vec() })?;
    // A snapshot restored with a higher revision holds an empty value at that revision, which is a put of the empty
    // key to etcd; no request can name it.
    let kv = KvFields::parse(value).filter(|kv| !kv.key.is_empty() || value.is_empty());
    Ok((at, kv.ok_or(OpenError::KeyValue { main: at.main, sub: at.sub })?))
}

impl Restored {
    fn take(&mut self, at: RevisionKey, kv: KvFields<'_>) -> Result<(), OpenError> {
        let revision = revision_of(at)?;
        self.revision = at.main;
        let lease = if at.tombstone { 0 } else { kv.lease };
        let stored = (!at.tombstone).then_some((kv.create_revision, kv.version, lease != 0));
        self.index.restore(kv.key, revision, stored);
        if lease != 0 {
            self.leases.insert(Bytes::copy_from_slice(kv.key), lease);
        } else if !self.leases.is_empty() {
            self.leases.remove(kv.key);
        }
        Ok(())
    }
}
