//! The hash over all keys of a database, which a migration never changes.

use anyhow::bail;
use serde::Serialize;
use storage::ReadOnly;

use crate::progress::Progress;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hash {
    pub hash: u32,
    pub revision: i64,
    pub compact_revision: i64,
}

pub(super) fn of(file: &ReadOnly) -> anyhow::Result<Hash> {
    at(file, 0)
}

/// As of a revision; 0 for the newest.
pub(super) fn at(file: &ReadOnly, revision: i64) -> anyhow::Result<Hash> {
    let mut progress = Progress::bytes("hashing", 2 * file.size());
    let hashed = mvcc::hash_file(&file.view(), revision, &mut |done| {
        if progress.set(done) {
            file.release_memory();
        }
    });
    // A damaged page reads as if nothing were there.
    if let Some(failure) = file.failed() {
        bail!(failure);
    }
    let found = hashed?;
    Ok(Hash { hash: found.hash, revision: found.hash_revision, compact_revision: found.compact_revision })
}
