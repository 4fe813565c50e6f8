//! Compressed messages are unpacked before anybody reads them, so that what is wrong with them is said in the words of
//! grpc-go, and never takes more memory than a message may have.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName};
use tonic::{Code, Status};

use super::gzip;

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const HEADER_BYTES: usize = 5;

/// How the messages of a request may be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    Gzip,
}

impl Packing {
    /// As the headers say. What is unpacked here is not announced any further.
    pub(super) fn take(headers: &mut HeaderMap) -> Result<Packing, Status> {
        match headers.remove(ENCODING) {
            None => Ok(Packing::None),
            Some(value) if value == "identity" || value.is_empty() => Ok(Packing::None),
            Some(value) if value == "gzip" => Ok(Packing::Gzip),
            Some(value) => {
                let name = String::from_utf8_lossy(value.as_bytes());
                Err(Status::unimplemented(format!("grpc: Decompressor is not installed for grpc-encoding {name:?}")))
            }
        }
    }
}

/// Follows messages over any cutting into chunks. Each is held until it is whole; how long it may be is asked before.
pub(super) struct Unpacker {
    waiting: BytesMut,
    bytes_max: usize,
}

impl Unpacker {
    pub(super) fn new(bytes_max: usize) -> Unpacker {
        Unpacker { waiting: BytesMut::new(), bytes_max }
    }

    /// The messages that are whole with this chunk, none of them compressed.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<Bytes, Status> {
        self.waiting.extend_from_slice(chunk);
        let mut out = BytesMut::new();
        while let Some(message) = self.next() {
            if message[0] == 1 {
                let unpacked = gzip::unpack(&message[HEADER_BYTES..], self.bytes_max).map_err(|e| self.refusal(e))?;
                out.extend_from_slice(&[0]);
                out.extend_from_slice(&(unpacked.len() as u32).to_be_bytes());
                out.extend_from_slice(&unpacked);
            } else {
                out.extend_from_slice(&message);
            }
        }
        Ok(out.freeze())
    }

    /// A whole message with its header.
    fn next(&mut self) -> Option<BytesMut> {
        let [_, a, b, c, d] = *self.waiting.first_chunk::<HEADER_BYTES>()?;
        let length = HEADER_BYTES + u32::from_be_bytes([a, b, c, d]) as usize;
        (self.waiting.len() >= length).then(|| self.waiting.split_to(length))
    }

    fn refusal(&self, error: gzip::Error) -> Status {
        match error {
            gzip::Error::Begin(why) => Status::internal(format!("grpc: failed to decompress the message: {why}")),
            gzip::Error::Read(why) => Status::internal(format!("grpc: failed to read decompressed data: {why}")),
            gzip::Error::TooLarge => {
                let max = self.bytes_max;
                let text = format!("grpc: received message after decompression larger than max {max}");
                Status::new(Code::ResourceExhausted, text)
            }
        }
    }
}

/// What a message is answered with whose flag says something else than the headers do.
pub(super) fn bad_flag(flag: u8, packing: Packing) -> Option<Status> {
    match (flag, packing) {
        (0, _) | (1, Packing::Gzip) => None,
        (1, Packing::None) => Some(Status::internal("grpc: compressed flag set with identity or empty encoding")),
        (flag, _) => Some(Status::internal(format!("grpc: received unexpected payload format {flag}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use http::HeaderValue;

    use super::*;

    fn frame(flag: u8, message: &[u8]) -> Vec<u8> {
        [&[flag][..], &(message.len() as u32).to_be_bytes(), message].concat()
    }

    fn packed(message: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(message).expect("to memory");
        frame(1, &encoder.finish().expect("to memory"))
    }

    #[test]
    fn messages_in_any_chunks() {
        let large = [7; 1000];
        let wire = [packed(b"one"), frame(0, b"two"), frame(0, b""), packed(&large), packed(b"")].concat();
        let want = [frame(0, b"one"), frame(0, b"two"), frame(0, b""), frame(0, &large), frame(0, b"")].concat();
        for size in [1, 2, 5, 7, 100, wire.len()] {
            let mut unpacker = Unpacker::new(1000);
            let out: Vec<_> = wire.chunks(size).flat_map(|chunk| unpacker.feed(chunk).expect("good")).collect();
            assert_eq!(out, want, "chunks of {size}");
        }
        let refused = Unpacker::new(999).feed(&wire).expect_err("too large");
        let text = "grpc: received message after decompression larger than max 999";
        assert_eq!((refused.code(), refused.message()), (Code::ResourceExhausted, text));
    }

    #[test]
    fn encodings() {
        let take = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ENCODING, HeaderValue::from_static(value));
            let packing = Packing::take(&mut headers).map_err(|status| status.message().to_owned());
            assert!(headers.is_empty());
            packing
        };
        assert_eq!(take("identity"), Ok(Packing::None));
        assert_eq!(take("gzip"), Ok(Packing::Gzip));
        let text = "grpc: Decompressor is not installed for grpc-encoding \"snappy\"";
        assert_eq!(take("snappy"), Err(text.to_owned()));
        assert_eq!(Packing::take(&mut HeaderMap::new()).expect("none"), Packing::None);
    }
}
