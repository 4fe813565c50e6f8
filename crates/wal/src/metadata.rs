//! The metadata record: which member of which cluster the log belongs to.

use bytes::Bytes;
use prost::Message;
use proto::etcdserverpb;

/// The identity of the member that a log belongs to: `etcdserverpb.Metadata`. Every segment repeats
/// this record byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// The member's id, `NodeID` in etcd.
    pub node_id: u64,
    /// The id of the member's cluster, `ClusterID` in etcd.
    pub cluster_id: u64,
}

impl Metadata {
    /// Encodes the record. Both fields are written even if they are 0, as in etcd, because all
    /// segments of a log must agree in these bytes.
    pub fn encode(&self) -> Bytes {
        let message = etcdserverpb::Metadata { node_id: Some(self.node_id), cluster_id: Some(self.cluster_id) };
        message.encode_to_vec().into()
    }

    /// Decodes the metadata of a log, as in [`crate::ReadAll::metadata`]. An absent field is 0.
    pub fn decode(data: &[u8]) -> Result<Self, prost::DecodeError> {
        let message = etcdserverpb::Metadata::decode(data)?;
        Ok(Self { node_id: message.node_id(), cluster_id: message.cluster_id() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ids_are_written_even_when_zero() {
        let metadata = Metadata { node_id: 0, cluster_id: 300 };
        assert_eq!(&metadata.encode()[..], [0x08, 0x00, 0x10, 0xac, 0x02]);
        assert_eq!(Metadata::decode(&metadata.encode()), Ok(metadata));
        assert!(Metadata::decode(&[0xff]).is_err());
    }
}
