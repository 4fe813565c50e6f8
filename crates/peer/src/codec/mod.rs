//! What goes over a stream: frames of raft messages, in etcd's two encodings. Pure: bytes in, messages out, and back.

mod input;
mod message;
mod msgapp;

use bytes::{Bytes, BytesMut};
use membership::MemberId;
use proto::raftpb::{Message, MessageType};

use input::Input;
pub use message::{MessageDecoder, decode_message, encode_framed};
pub use msgapp::{MsgAppDecoder, MsgAppEncoder};

/// The two streams between each pair of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// MsgApp alone, in a short form.
    MsgApp,
    /// Everything else, except snapshots.
    Message,
}

impl StreamKind {
    /// The path under which the stream is served, without the dialler's id.
    pub fn path(self) -> &'static str {
        match self {
            StreamKind::MsgApp => "/raft/stream/msgapp",
            StreamKind::Message => "/raft/stream/message",
        }
    }

    /// As etcd's log calls it.
    pub fn name(self) -> &'static str {
        match self {
            StreamKind::MsgApp => "stream MsgApp v2",
            StreamKind::Message => "stream Message",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("a message of {found} bytes exceeds the limit of {max}")]
    TooLarge { found: u64, max: u64 },
    #[error("found type {0} in a msgappv2 stream; 0, 1 and 2 are the types there are")]
    UnknownType(u8),
    #[error("failed to decode a raft message")]
    Protobuf(#[from] prost::DecodeError),
}

/// Sent on idle streams so that a dead connection is found. Raft's own heartbeats have both ids.
pub fn link_heartbeat() -> Message {
    Message { r#type: Some(MessageType::MsgHeartbeat as i32), ..Message::default() }
}

pub fn is_link_heartbeat(message: &Message) -> bool {
    message.r#type() == MessageType::MsgHeartbeat && message.from() == 0 && message.to() == 0
}

/// The encoder of one stream.
#[derive(Debug)]
pub enum Encoder {
    MsgApp(MsgAppEncoder),
    Message,
}

impl Encoder {
    pub fn new(kind: StreamKind) -> Encoder {
        match kind {
            StreamKind::MsgApp => Encoder::MsgApp(MsgAppEncoder::default()),
            StreamKind::Message => Encoder::Message,
        }
    }

    /// Appends `message` to `out`.
    pub fn encode(&mut self, message: &Message, out: &mut BytesMut) {
        match self {
            Encoder::MsgApp(encoder) => encoder.encode(message, out),
            Encoder::Message => encode_framed(message, out),
        }
    }
}

/// The decoder of one stream: pieces of any size go in, whole messages come out.
#[derive(Debug)]
pub enum Decoder {
    MsgApp(Box<MsgAppDecoder>),
    Message(MessageDecoder),
}

impl Decoder {
    /// `message_bytes_max` bounds what one message may make us hold.
    pub fn new(kind: StreamKind, local: MemberId, remote: MemberId, message_bytes_max: u64) -> Decoder {
        match kind {
            StreamKind::MsgApp => Decoder::MsgApp(Box::new(MsgAppDecoder::new(local, remote, message_bytes_max))),
            StreamKind::Message => Decoder::Message(MessageDecoder::new(message_bytes_max)),
        }
    }

    pub fn push(&mut self, piece: Bytes) {
        match self {
            Decoder::MsgApp(decoder) => decoder.push(piece),
            Decoder::Message(decoder) => decoder.push(piece),
        }
    }

    /// The next whole message, `None` until more bytes are pushed. After an error the stream is of no use.
    pub fn next_message(&mut self) -> Result<Option<Message>, DecodeError> {
        match self {
            Decoder::MsgApp(decoder) => decoder.next_message(),
            Decoder::Message(decoder) => decoder.next_message(),
        }
    }
}
