//! A gRPC codec for answers that are already bytes: what the store keeps encoded is sent as it is.

use std::marker::PhantomData;

use prost::Message;
use proto::codec::MessageDecoder;
use tonic::{
    Status,
    codec::{Codec, EncodeBuf, Encoder},
};

/// Something that writes itself as a protobuf message.
pub(crate) trait Wire: Send + 'static {
    fn write(self, out: &mut EncodeBuf<'_>);
}

/// Sends `E`, receives `D`.
pub(crate) struct WireCodec<E, D>(PhantomData<(E, D)>);

impl<E, D> Default for WireCodec<E, D> {
    fn default() -> Self {
        WireCodec(PhantomData)
    }
}

impl<E: Wire, D: Message + Default + Send + 'static> Codec for WireCodec<E, D> {
    type Encode = E;
    type Decode = D;
    type Encoder = WireEncoder<E>;
    type Decoder = MessageDecoder<D>;

    fn encoder(&mut self) -> WireEncoder<E> {
        WireEncoder(PhantomData)
    }

    fn decoder(&mut self) -> MessageDecoder<D> {
        MessageDecoder::default()
    }
}

pub(crate) struct WireEncoder<E>(PhantomData<E>);

impl<E: Wire> Encoder for WireEncoder<E> {
    type Item = E;
    type Error = Status;

    fn encode(&mut self, item: E, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.write(out);
        Ok(())
    }
}
