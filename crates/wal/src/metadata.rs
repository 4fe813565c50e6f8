//! The metadata record: which member of which cluster the log belongs to.

use bytes::Bytes;
use prost::Message;
use proto::etcdserverpb;

/// `etcdserverpb.Metadata`, the payload of the metadata record that every segment repeats byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    pub node_id: u64,
    pub cluster_id: u64,
}

impl Metadata {
    /// Both fields are always written: segments of one log must agree in bytes, and etcd writes both.
    pub fn encode(&self) -> Bytes {
        let message = etcdserverpb::Metadata { node_id: Some(self.node_id), cluster_id: Some(self.cluster_id) };
        message.encode_to_vec().into()
    }

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
