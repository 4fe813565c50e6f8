//! Bucket `cluster`: the cluster version and the downgrade job.

use serde::{Deserialize, Serialize};

use super::{Bucket, DecodeError, Version, go_json};
use crate::{Batch, Read};

pub const CLUSTER_VERSION: &[u8] = b"clusterVersion";
pub const DOWNGRADE: &[u8] = b"downgrade";

/// The downgrade job as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downgrade {
    /// `X.Y.0`, or empty when no job was ever begun.
    #[serde(rename = "target-version", default)]
    pub target_version: String,
    #[serde(default)]
    pub enabled: bool,
}

/// The version all members agreed on; none until the first leader has decided it.
pub fn version(read: &impl Read) -> Result<Option<Version>, DecodeError> {
    read.get_with(Bucket::Cluster, CLUSTER_VERSION, |v| super::version::decode(Bucket::Cluster, CLUSTER_VERSION, v))
        .transpose()
}

pub fn put_version(batch: &mut Batch, version: Version) {
    batch.put(Bucket::Cluster, CLUSTER_VERSION, version.stored());
}

pub fn downgrade(read: &impl Read) -> Result<Option<Downgrade>, DecodeError> {
    let decode = |v: &[u8]| {
        serde_json::from_slice(v)
            .map_err(|e| DecodeError::new(Bucket::Cluster, DOWNGRADE, "a downgrade job as JSON", e))
    };
    read.get_with(Bucket::Cluster, DOWNGRADE, decode).transpose()
}

pub fn put_downgrade(batch: &mut Batch, job: &Downgrade) {
    // Text and flags always serialize.
    if let Ok(json) = go_json::to_vec(job) {
        batch.put(Bucket::Cluster, DOWNGRADE, json);
    }
}
