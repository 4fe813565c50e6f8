//! Bucket `meta`: how far the file is, and in which form.

use proto::raftpb;
use serde::{Deserialize, Serialize};

use super::{Bucket, DecodeError, RevisionKey, Version, error::u64_of, go_json};
use crate::{Batch, Read};

pub const CONSISTENT_INDEX: &[u8] = b"consistent_index";
pub const TERM: &[u8] = b"term";
pub const CONF_STATE: &[u8] = b"confState";
pub const STORAGE_VERSION: &[u8] = b"storageVersion";
pub const SCHEDULED_COMPACT_REV: &[u8] = b"scheduledCompactRev";
pub const FINISHED_COMPACT_REV: &[u8] = b"finishedCompactRev";

/// Index and term of the last applied entry whose changes the file holds; zeros in a new file.
/// Written by [`Batch::set_consistent`] alone.
pub fn consistent(read: &impl Read) -> Result<(u64, u64), DecodeError> {
    Ok((number(read, CONSISTENT_INDEX)?, number(read, TERM)?))
}

/// The voters and learners as of [`consistent`].
pub fn conf_state(read: &impl Read) -> Result<Option<raftpb::ConfState>, DecodeError> {
    let decode = |v: &[u8]| {
        serde_json::from_slice::<ConfStateJson>(v)
            .map(Into::into)
            .map_err(|e| DecodeError::new(Bucket::Meta, CONF_STATE, "a configuration as JSON", e))
    };
    read.get_with(Bucket::Meta, CONF_STATE, decode).transpose()
}

pub fn put_conf_state(batch: &mut Batch, state: &raftpb::ConfState) {
    // Numbers and flags always serialize.
    if let Ok(json) = go_json::to_vec(&ConfStateJson::from(state)) {
        batch.put(Bucket::Meta, CONF_STATE, json);
    }
}

/// The version whose fields the file has, as written since 3.6.
pub fn storage_version(read: &impl Read) -> Result<Option<Version>, DecodeError> {
    read.get_with(Bucket::Meta, STORAGE_VERSION, |v| super::version::decode(Bucket::Meta, STORAGE_VERSION, v))
        .transpose()
}

pub fn put_storage_version(batch: &mut Batch, version: Version) {
    batch.put(Bucket::Meta, STORAGE_VERSION, version.stored());
}

/// Going down to 3.5, which knows no storage version.
pub fn clear_storage_version(batch: &mut Batch) {
    batch.delete(Bucket::Meta, STORAGE_VERSION);
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

fn number(read: &impl Read, key: &[u8]) -> Result<u64, DecodeError> {
    Ok(read.get_with(Bucket::Meta, key, |v| u64_of(Bucket::Meta, key, v)).transpose()?.unwrap_or(0))
}

fn compact_rev(read: &impl Read, key: &[u8]) -> Result<Option<i64>, DecodeError> {
    let decode = |v: &[u8]| {
        RevisionKey::decode(v)
            .map(|r| r.main)
            .ok_or_else(|| DecodeError::value(Bucket::Meta, key, "a revision of 17 bytes", v))
    };
    read.get_with(Bucket::Meta, key, decode).transpose()
}

/// The field order and omissions of real etcd up to 3.7, which always writes `auto_leave`.
#[derive(Serialize, Deserialize)]
struct ConfStateJson {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    voters: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    learners: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    voters_outgoing: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    learners_next: Vec<u64>,
    #[serde(default)]
    auto_leave: Option<bool>,
}

impl From<&raftpb::ConfState> for ConfStateJson {
    fn from(s: &raftpb::ConfState) -> Self {
        ConfStateJson {
            voters: s.voters.clone(),
            learners: s.learners.clone(),
            voters_outgoing: s.voters_outgoing.clone(),
            learners_next: s.learners_next.clone(),
            auto_leave: Some(s.auto_leave.unwrap_or(false)),
        }
    }
}

impl From<ConfStateJson> for raftpb::ConfState {
    fn from(s: ConfStateJson) -> Self {
        raftpb::ConfState {
            voters: s.voters,
            learners: s.learners,
            voters_outgoing: s.voters_outgoing,
            learners_next: s.learners_next,
            auto_leave: Some(s.auto_leave.unwrap_or(false)),
        }
    }
}
