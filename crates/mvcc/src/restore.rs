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
    pub fn into_contents(self, generation: u64) -> (Arc<Contents>, i64, Option<CompactionJob>) {
        let Restored { index, revision, compact_revision, finished, .. } = self;
        let contents = Arc::new(Contents::new(generation, index, compact_revision));
        let finished = finished.unwrap_or(-1);
        let pending =
            (compact_revision > finished).then(|| CompactionJob::resume(&contents, compact_revision, finished));
        (contents, revision, pending)
    }
}

pub(crate) fn read(file: &impl Read) -> Result<Restored, OpenError> {
    let finished = meta::finished_compact_rev(file)?;
    let scheduled = meta::scheduled_compact_rev(file)?;
    let compact_revision = finished.max(scheduled).unwrap_or(-1);
    let mut restored =
        Restored { index: Index::default(), revision: 1, compact_revision, leases: BTreeMap::new(), finished };
    let mut failed = None;
    let from = RevisionKey::new(1, 0).encode();
    file.scan(Bucket::Key, &from, b"", &mut |key, value| match restored.take(key, value) {
        Ok(()) => ControlFlow::Continue(()),
        Err(e) => {
            failed = Some(e);
            ControlFlow::Break(())
        }
    });
    if let Some(e) = failed {
        return Err(e);
    }
    // Compaction may have removed the newest revisions (tombstones), also one that did not finish. Revisions must not
    // be given out twice.
    restored.revision = restored.revision.max(compact_revision);
    Ok(restored)
}

impl Restored {
    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), OpenError> {
        let at = RevisionKey::decode(key).ok_or_else(|| OpenError::RevisionKey { key: key.to_vec() })?;
        let sub = u32::try_from(at.sub).map_err(|_| OpenError::SubRevision { main: at.main, sub: at.sub })?;
        // A snapshot restored with a higher revision holds an empty value at that revision, which is a put of the empty
        // key to etcd; no request can name it.
        let kv = KvFields::parse(value)
            .filter(|kv| !kv.key.is_empty() || value.is_empty())
            .ok_or(OpenError::KeyValue { main: at.main, sub: at.sub })?;
        let lease = if at.tombstone { 0 } else { kv.lease };
        let stored = (!at.tombstone).then_some((kv.create_revision, kv.version, lease != 0));
        self.index.restore(kv.key, Revision::new(at.main, sub), stored);
        self.revision = at.main;
        if lease != 0 {
            self.leases.insert(Bytes::copy_from_slice(kv.key), lease);
        } else if !self.leases.is_empty() {
            self.leases.remove(kv.key);
        }
        Ok(())
    }
}
