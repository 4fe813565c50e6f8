//! The gRPC codec of all generated services and clients.

use std::marker::PhantomData;

use bytes::{Buf, BufMut};
use prost::Message;
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// Messages up to this size are encoded into a buffer of their own first.
const GATHERED_BYTES_MAX: usize = 4 << 10;

/// Sends `E`, receives `D`.
#[derive(Debug)]
pub struct MessageCodec<E, D>(PhantomData<(E, D)>);

impl<E, D> Default for MessageCodec<E, D> {
    fn default() -> Self {
        MessageCodec(PhantomData)
    }
}

impl<E, D> Codec for MessageCodec<E, D>
where
    E: Message + Send + 'static,
    D: Message + Default + Send + 'static,
{
    type Encode = E;
    type Decode = D;
    type Encoder = MessageEncoder<E>;
    type Decoder = MessageDecoder<D>;

    fn encoder(&mut self) -> MessageEncoder<E> {
        MessageEncoder(PhantomData)
    }

    fn decoder(&mut self) -> MessageDecoder<D> {
        MessageDecoder::default()
    }
}

/// The encoder of [`MessageCodec`].
#[derive(Debug)]
pub struct MessageEncoder<E>(PhantomData<E>);

impl<E: Message> Encoder for MessageEncoder<E> {
    type Item = E;
    type Error = Status;

    fn encode(&mut self, item: E, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        encode(&item, out);
        Ok(())
    }
}

/// Appends an encoded message.
///
/// prost writes byte by byte, and each write to an [`EncodeBuf`] is a call into another crate. A `Vec` is much cheaper to
/// write to, which outweighs the second copy of a small message.
pub fn encode(message: &impl Message, out: &mut EncodeBuf<'_>) {
    if message.encoded_len() <= GATHERED_BYTES_MAX {
        out.put_slice(&message.encode_to_vec());
    } else {
        message.encode(out).expect("an EncodeBuf grows as needed");
    }
}

/// The decoder of [`MessageCodec`].
#[derive(Debug)]
pub struct MessageDecoder<D>(PhantomData<D>);

impl<D> Default for MessageDecoder<D> {
    fn default() -> Self {
        MessageDecoder(PhantomData)
    }
}

impl<D: Message + Default> Decoder for MessageDecoder<D> {
    type Item = D;
    type Error = Status;

    /// The fields of type `Bytes` share the buffer of the whole message.
    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
        // `Bytes` is cheaper to read from than a `DecodeBuf`, for the same reason as in `encode`. This copies nothing.
        let message = buf.copy_to_bytes(buf.remaining());
        D::decode(message).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
