//! The encoding of the general stream, also the head of a snapshot: u64 big-endian length, then the message.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message as _;
use proto::raftpb::Message;

use super::{DecodeError, Input};

pub fn encode_framed(message: &Message, out: &mut BytesMut) {
    let len = message.encoded_len();
    out.reserve(8 + len);
    out.put_u64(len as u64);
    message.encode_raw(out);
}

/// One message; its entries share the memory of `bytes`.
pub fn decode_message(bytes: Bytes) -> Result<Message, DecodeError> {
    Ok(Message::decode(bytes)?)
}

#[derive(Debug)]
pub struct MessageDecoder {
    input: Input,
    message_bytes_max: u64,
}

impl MessageDecoder {
    pub fn new(message_bytes_max: u64) -> MessageDecoder {
        MessageDecoder { input: Input::default(), message_bytes_max }
    }

    pub fn push(&mut self, piece: Bytes) {
        self.input.push(piece);
    }

    pub fn next_message(&mut self) -> Result<Option<Message>, DecodeError> {
        let Some(len) = self.input.peek_u64() else { return Ok(None) };
        if len > self.message_bytes_max {
            return Err(DecodeError::TooLarge { found: len, max: self.message_bytes_max });
        }
        if ((self.input.len() - 8) as u64) < len {
            return Ok(None);
        }
        self.input.skip(8);
        // The bytes are there, so their number fits a usize.
        let Some(bytes) = self.input.take(len as usize) else { return Ok(None) };
        decode_message(bytes).map(Some)
    }

    /// What was pushed and does not belong to a decoded message: the database after the head of a snapshot.
    pub fn into_rest(mut self) -> Bytes {
        let len = self.input.len();
        self.input.take(len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{is_link_heartbeat, link_heartbeat};

    #[test]
    fn bytes_are_etcds() {
        let mut out = BytesMut::new();
        encode_framed(&link_heartbeat(), &mut out);
        assert_eq!(&out[..], [0, 0, 0, 0, 0, 0, 0, 2, 8, 8]);
    }

    #[test]
    fn any_pieces_give_the_same_messages() {
        let mut bytes = BytesMut::new();
        let message = Message { to: Some(2), from: Some(1), context: Some(vec![5; 300].into()), ..Message::default() };
        encode_framed(&message, &mut bytes);
        encode_framed(&link_heartbeat(), &mut bytes);
        bytes.extend_from_slice(b"rest");
        for size in [1, 3, 8, 100, 1000] {
            let mut decoder = MessageDecoder::new(1000);
            let mut found = Vec::new();
            for piece in bytes.chunks(size) {
                decoder.push(Bytes::copy_from_slice(piece));
                while found.len() < 2
                    && let Some(message) = decoder.next_message().unwrap()
                {
                    found.push(message);
                }
            }
            assert_eq!(found[0], message);
            assert!(is_link_heartbeat(&found[1]));
            assert_eq!(decoder.into_rest(), b"rest"[..]);
        }
    }

    #[test]
    fn a_promised_length_is_checked_before_anything_is_held() {
        let mut decoder = MessageDecoder::new(1 << 20);
        decoder.push(Bytes::from_static(&[0, 0, 0, 0, 0, 16, 0, 1]));
        assert!(matches!(decoder.next_message(), Err(DecodeError::TooLarge { found: 1048577, max: 1048576 })));
        let mut decoder = MessageDecoder::new(10);
        decoder.push(Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 1, 8]));
        assert!(matches!(decoder.next_message(), Err(DecodeError::Protobuf(_))));
    }
}
