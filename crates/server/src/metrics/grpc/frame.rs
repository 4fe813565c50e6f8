//! gRPC's frames: where messages begin and end.

use tonic::Status;

/// Follows length-prefixed messages over any cutting into chunks.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    /// Bytes of the header read so far: a flag and four bytes of length.
    header_bytes: u8,
    flag: u8,
    length: u32,
    /// Bytes of the message still to come.
    left: usize,
    /// The longest message announced.
    pub largest: usize,
    messages: u64,
    /// The first flag of a whole message that is not zero, as far as it was not taken.
    pub strange: Option<u8>,
}

impl FrameReader {
    /// Messages whose header ended in this chunk, and bytes of messages in it.
    pub(super) fn read(&mut self, mut chunk: &[u8]) -> (u64, u64) {
        let (before, mut bytes) = (self.messages, 0);
        while !chunk.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(chunk.len());
                self.left -= taken;
                bytes += taken as u64;
                chunk = &chunk[taken..];
                self.note_flag();
                continue;
            }
            match self.header_bytes {
                0 => self.flag = chunk[0],
                _ => self.length = self.length << 8 | u32::from(chunk[0]),
            }
            self.header_bytes += 1;
            chunk = &chunk[1..];
            if self.header_bytes == 5 {
                self.messages += 1;
                self.left = self.length as usize;
                self.largest = self.largest.max(self.left);
                (self.header_bytes, self.length) = (0, 0);
                self.note_flag();
            }
        }
        (self.messages - before, bytes)
    }

    /// Asked for when the message is whole: one that is cut short is answered with that.
    fn note_flag(&mut self) {
        if self.left == 0 && self.flag != 0 {
            self.strange = self.strange.or(Some(self.flag));
        }
    }

    /// What a request that ends here is answered with; codes and words are grpc-go's.
    pub(super) fn cut_short(&self, kind: &str) -> Option<Status> {
        match kind {
            "unary" if self.left > 0 => Some(Status::unknown("unexpected EOF")),
            "unary" if self.messages == 0 => Some(Status::unknown("EOF")),
            _ if self.left > 0 => Some(Status::internal("unexpected EOF")),
            "server_stream" if self.messages == 0 => Some(Status::internal(
                "cardinality violation: received no request message from non-client-streaming RPC",
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_any_chunks() {
        let mut wire = Vec::new();
        for message in [&b"hello"[..], b"", &[7; 300]] {
            wire.push(0);
            wire.extend_from_slice(&(message.len() as u32).to_be_bytes());
            wire.extend_from_slice(message);
        }
        for size in [1, 2, 3, 5, 7, 100, wire.len()] {
            let mut reader = FrameReader::default();
            let total = wire.chunks(size).map(|chunk| reader.read(chunk)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            assert_eq!((total, reader.largest), ((3, 305), 300), "chunks of {size}");
        }
    }

    #[test]
    fn flags_of_whole_messages() {
        let strange = |wire: &[u8]| {
            let mut reader = FrameReader::default();
            reader.read(wire);
            reader.strange
        };
        assert_eq!(strange(b"\0\0\0\0\x02ab\0\0\0\0\0"), None);
        assert_eq!(strange(b"\0\0\0\0\x02ab\x01\0\0\0\x02a"), None, "not whole");
        assert_eq!(strange(b"\0\0\0\0\x02ab\x01\0\0\0\x02ab"), Some(1));
        assert_eq!(strange(b"\x02\0\0\0\0"), Some(2));
    }

    #[test]
    fn requests_that_end_early() {
        let complaint = |wire: &[u8], kind| {
            let mut reader = FrameReader::default();
            reader.read(wire);
            reader.cut_short(kind).map(|status| (status.code() as i32, status.message().to_owned()))
        };
        let (cut, half_header, whole) = (b"\0\0\0\0\x05ab", b"\0\0", b"\0\0\0\0\x02ab");
        assert_eq!(complaint(cut, "unary"), Some((2, "unexpected EOF".to_owned())));
        assert_eq!(complaint(cut, "bidi_stream"), Some((13, "unexpected EOF".to_owned())));
        assert_eq!(complaint(b"", "unary"), Some((2, "EOF".to_owned())));
        assert_eq!(complaint(half_header, "unary"), Some((2, "EOF".to_owned())));
        assert_eq!(complaint(b"", "bidi_stream"), None);
        assert_eq!(complaint(b"", "server_stream").map(|(code, _)| code), Some(13));
        for kind in ["unary", "server_stream", "bidi_stream"] {
            assert_eq!(complaint(whole, kind), None);
        }
    }
}
