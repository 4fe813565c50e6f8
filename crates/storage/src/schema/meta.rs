//! Bucket `meta`: how far the file is, and in which form.

use super::{Bucket, RevisionKey};
use crate::{Batch, Read};

pub const SCHEDULED_COMPACT_REV: &[u8] = b"scheduledCompactRev";
pub const FINISHED_COMPACT_REV: &[u8] = b"finishedCompactRev";

/// A value of the file that is not what the schema says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bucket meta, key {key}: expected a revision of 17 bytes")]
pub struct DecodeError {
    pub key: String,
}

/// The revision up to which a compaction was begun.
pub fn scheduled_compact_rev(read: &impl Read) -> Result<Option<i64>, DecodeError> {
    compact_rev(read, SCHEDULED_COMPACT_REV)
}

pub fn put_scheduled_compact_rev(batch: &mut Batch, revision: i64) {
    batch.put(Bucket::Meta, SCHEDULED_COMPACT_REV, RevisionKey::new(revision, 0));
}

/// The revision up to which a compaction was completed.
pub fn finished_compact_rev(read: &impl Read) -> Result<Option<i64>, DecodeError> {
    compact_rev(read, FINISHED_COMPACT_REV)
}

pub fn put_finished_compact_rev(batch: &mut Batch, revision: i64) {
    batch.put(Bucket::Meta, FINISHED_COMPACT_REV, RevisionKey::new(revision, 0));
}

fn compact_rev(read: &impl Read, key: &[u8]) -> Result<Option<i64>, DecodeError> {
    let decode = |v: &[u8]| {
        RevisionKey::decode(v)
            .map(|r| r.main)
            .ok_or_else(|| DecodeError { key: String::from_utf8_lossy(key).into_owned() })
    };
    read.get_with(Bucket::Meta, key, decode).transpose()
}
