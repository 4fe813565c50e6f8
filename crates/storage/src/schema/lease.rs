//! Bucket `lease`: granted leases.

use std::ops::ControlFlow;

use prost::Message;
use proto::leasepb::Lease;

use super::{Bucket, DecodeError};
use crate::{Batch, Read};

/// Leases in the order of their ids.
pub fn all(read: &impl Read) -> Result<Vec<Lease>, DecodeError> {
    let mut leases = Vec::new();
    let mut error = None;
    read.scan(Bucket::Lease, b"", b"", &mut |k, v| match decode(k, v) {
        Ok(lease) => {
            leases.push(lease);
            ControlFlow::Continue(())
        }
        Err(e) => {
            error = Some(e);
            ControlFlow::Break(())
        }
    });
    error.map_or(Ok(leases), Err)
}

pub fn put(batch: &mut Batch, lease: &Lease) {
    batch.put(Bucket::Lease, key_of(lease.id), lease.encode_to_vec());
}

pub fn delete(batch: &mut Batch, id: i64) {
    batch.delete(Bucket::Lease, &key_of(id));
}

pub(super) fn decode(key: &[u8], value: &[u8]) -> Result<Lease, DecodeError> {
    let lease =
        Lease::decode(value).map_err(|e| DecodeError::new(Bucket::Lease, key, "a lease as leasepb.Lease", e))?;
    if key != key_of(lease.id) {
        return Err(DecodeError::new(
            Bucket::Lease,
            key,
            "the id of the lease as key",
            format!("lease {:x}", lease.id),
        ));
    }
    Ok(lease)
}

pub(super) fn is_key(key: &[u8]) -> bool {
    key.len() == 8
}

fn key_of(id: i64) -> Vec<u8> {
    id.to_be_bytes().to_vec()
}
