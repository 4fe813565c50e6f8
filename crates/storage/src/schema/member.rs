//! Buckets `members` and `members_removed`: who belongs to the cluster and who may never return.

use std::ops::ControlFlow;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Bucket, DecodeError, go_json};
use crate::{Batch, Read};

/// A member as it is stored, sent to joining peers and carried in configuration changes: field order and omissions
/// are etcd's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    #[serde(default)]
    pub id: u64,
    #[serde(rename = "peerURLs", default, deserialize_with = "null_is_empty")]
    pub peer_urls: Vec<String>,
    #[serde(rename = "isLearner", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_learner: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(rename = "clientURLs", default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub client_urls: Vec<String>,
}

impl MemberRecord {
    pub fn to_json(&self) -> Vec<u8> {
        // Text and numbers always serialize.
        go_json::to_vec(self).unwrap_or_default()
    }

    pub fn from_json(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(json)
    }
}

/// Members in the order of their keys.
pub fn all(read: &impl Read) -> Result<Vec<MemberRecord>, DecodeError> {
    let mut members = Vec::new();
    each(read, Bucket::Members, |key, id, value| {
        let record = MemberRecord::from_json(value)
            .map_err(|e| DecodeError::new(Bucket::Members, key, "a member as JSON", e))?;
        members.push(MemberRecord { id, ..record });
        Ok(())
    })?;
    Ok(members)
}

pub fn put(batch: &mut Batch, member: &MemberRecord) {
    batch.put(Bucket::Members, key_of(member.id), member.to_json());
}

/// Takes the member out and remembers its id, which can never be used again.
pub fn remove(batch: &mut Batch, id: u64) {
    batch.delete(Bucket::Members, &key_of(id));
    batch.put(Bucket::MembersRemoved, key_of(id), REMOVED);
}

/// Ids of removed members.
pub fn removed(read: &impl Read) -> Result<Vec<u64>, DecodeError> {
    let mut ids = Vec::new();
    each(read, Bucket::MembersRemoved, |_, id, _| {
        ids.push(id);
        Ok(())
    })?;
    Ok(ids)
}

/// Forgets members and removed members, as a restored snapshot needs, which starts a new cluster.
pub fn clear(batch: &mut Batch) {
    for bucket in [Bucket::Members, Bucket::MembersRemoved] {
        let mut keys = Vec::new();
        batch.scan(bucket, b"", b"", &mut |k, _| {
            keys.push(k.to_vec());
            ControlFlow::Continue(())
        });
        keys.iter().for_each(|k| batch.delete(bucket, k));
    }
}

const REMOVED: &[u8] = b"removed";

/// Lower-case hex without leading zeros.
fn key_of(id: u64) -> Vec<u8> {
    format!("{id:x}").into_bytes()
}

pub(super) fn id_of(bucket: Bucket, key: &[u8]) -> Result<u64, DecodeError> {
    let text = std::str::from_utf8(key).ok().filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()));
    text.and_then(|t| u64::from_str_radix(t, 16).ok())
        .ok_or_else(|| DecodeError::new(bucket, key, "a member id in hex as key", "another key"))
}

fn each(
    read: &impl Read,
    bucket: Bucket,
    mut f: impl FnMut(&[u8], u64, &[u8]) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut result = Ok(());
    read.scan(bucket, b"", b"", &mut |k, v| {
        result = id_of(bucket, k).and_then(|id| f(k, id, v));
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    result
}

/// Go writes an empty list that was never set as `null`.
fn null_is_empty<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_etcds() {
        let mut m = MemberRecord {
            id: 17088423831775458271,
            peer_urls: vec!["http://10.0.0.1:2380".into()],
            ..Default::default()
        };
        assert_eq!(m.to_json(), br#"{"id":17088423831775458271,"peerURLs":["http://10.0.0.1:2380"]}"#);
        m.is_learner = true;
        m.name = "a&b".into();
        m.client_urls = vec!["http://10.0.0.1:2379".into()];
        let json = m.to_json();
        assert_eq!(
            String::from_utf8(json.clone()).unwrap(),
            r#"{"id":17088423831775458271,"peerURLs":["http://10.0.0.1:2380"],"isLearner":true,"name":"a\u0026b","clientURLs":["http://10.0.0.1:2379"]}"#
        );
        assert_eq!(MemberRecord::from_json(&json).unwrap(), m);
        assert_eq!(MemberRecord::from_json(br#"{"id":7,"peerURLs":null}"#).unwrap().peer_urls, Vec::<String>::new());
    }

    #[test]
    fn keys_are_hex_without_padding() {
        assert_eq!(key_of(0xab), b"ab");
        assert_eq!(id_of(Bucket::Members, b"00ab"), Ok(0xab));
        for bad in [&b"+ab"[..], b"", b"xyz", b"11112222333344445"] {
            assert!(id_of(Bucket::Members, bad).is_err());
        }
    }
}
