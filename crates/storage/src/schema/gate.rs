//! Bucket `cluster`, keys of 3.8: the cluster feature gate, what each member proposes for it, and its history.
//!
//! They stand under keys of their own, so that member records stay byte-equal to etcd's and going down removes
//! exactly them.

use std::ops::ControlFlow;

use prost::Message;
use proto::membershippb::{FeatureGateChange, FeatureGateProposalRecord, FeatureGateRecord};

use super::{Bucket, DecodeError};
use crate::{Batch, Read};

pub const GATE: &[u8] = b"featureGate";
pub const HISTORY: &[u8] = b"featureGateHistory/";
pub const PROPOSAL: &[u8] = b"featureGateProposal/";

/// All that the file holds of the gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    pub gate: Option<FeatureGateRecord>,
    /// By member id.
    pub proposals: Vec<(u64, FeatureGateProposalRecord)>,
    /// Oldest first.
    pub history: Vec<FeatureGateChange>,
}

pub fn load(read: &impl Read) -> Result<Stored, DecodeError> {
    let gate = read.get_with(Bucket::Cluster, GATE, |v| decode(GATE, v)).transpose()?;
    let mut stored = Stored { gate, ..Stored::default() };
    each(read, PROPOSAL, |key, id, value| {
        stored.proposals.push((id, decode(key, value)?));
        Ok(())
    })?;
    each(read, HISTORY, |key, _, value| {
        stored.history.push(decode(key, value)?);
        Ok(())
    })?;
    Ok(stored)
}

pub fn put_gate(batch: &mut Batch, gate: &FeatureGateRecord) {
    batch.put(Bucket::Cluster, GATE, gate.encode_to_vec());
}

pub fn put_proposal(batch: &mut Batch, member: u64, proposal: &FeatureGateProposalRecord) {
    batch.put(Bucket::Cluster, key_of(PROPOSAL, member), proposal.encode_to_vec());
}

pub fn delete_proposal(batch: &mut Batch, member: u64) {
    batch.delete(Bucket::Cluster, &key_of(PROPOSAL, member));
}

pub fn put_change(batch: &mut Batch, change: &FeatureGateChange) {
    batch.put(Bucket::Cluster, key_of(HISTORY, change.index), change.encode_to_vec());
}

pub fn delete_change(batch: &mut Batch, index: u64) {
    batch.delete(Bucket::Cluster, &key_of(HISTORY, index));
}

/// Forgets all of it: for versions that have no gate, and for databases that begin a new life.
pub fn clear(batch: &mut Batch) {
    let mut keys = vec![GATE.to_vec()];
    for prefix in [PROPOSAL, HISTORY] {
        batch.scan(Bucket::Cluster, prefix, &end_of(prefix), &mut |k, _| {
            keys.push(k.to_vec());
            ControlFlow::Continue(())
        });
    }
    keys.iter().for_each(|key| batch.delete(Bucket::Cluster, key));
}

/// Sixteen digits, so that the order of keys is the order of numbers.
fn key_of(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, format!("{number:016x}").as_bytes()].concat()
}

pub(super) fn is_key(prefix: &[u8], key: &[u8]) -> bool {
    number_of(prefix, key).is_some()
}

fn number_of(prefix: &[u8], key: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(key.strip_prefix(prefix)?).ok()?;
    let is_plain = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    is_plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// The first key behind all that begin with `prefix`, which ends in a slash.
pub(super) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

fn each(
    read: &impl Read,
    prefix: &[u8],
    mut f: impl FnMut(&[u8], u64, &[u8]) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut result = Ok(());
    read.scan(Bucket::Cluster, prefix, &end_of(prefix), &mut |k, v| {
        let number = number_of(prefix, k)
            .ok_or_else(|| DecodeError::new(Bucket::Cluster, k, "16 hex digits behind the slash", "another key"));
        result = number.and_then(|number| f(k, number, v));
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    result
}

pub(super) fn decode<M: Message + Default + prost::Name>(key: &[u8], value: &[u8]) -> Result<M, DecodeError> {
    M::decode(value).map_err(|e| DecodeError::new(Bucket::Cluster, key, "a record of the feature gate", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_numbers() {
        assert_eq!(key_of(HISTORY, 0xab), b"featureGateHistory/00000000000000ab");
        assert!(key_of(HISTORY, 9) < key_of(HISTORY, 10));
        assert!(is_key(HISTORY, &key_of(HISTORY, u64::MAX)));
        assert!(!is_key(HISTORY, b"featureGateHistory/1") && !is_key(PROPOSAL, &key_of(HISTORY, 1)));
        assert_eq!(end_of(HISTORY), b"featureGateHistory0");
    }
}
