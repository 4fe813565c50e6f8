//! Headers of HTTP/2 frames in a stream of bytes that may be cut anywhere (RFC 9113, section 4.1).

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;

/// Of DATA and HEADERS.
pub(super) const END_STREAM: u8 = 1;
/// Of PING.
pub(super) const ACK: u8 = 1;

const HEADER_BYTES: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

/// Where in a frame the stream is.
#[derive(Default)]
pub(super) struct Frames {
    header: [u8; HEADER_BYTES],
    header_len: usize,
    /// Bytes of the payload still to come.
    left: usize,
}

impl Frames {
    /// Tells of each frame whose header ends in these bytes.
    pub(super) fn read(&mut self, mut bytes: &[u8], mut each: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                self.left -= taken;
                bytes = &bytes[taken..];
                continue;
            }
            let taken = (HEADER_BYTES - self.header_len).min(bytes.len());
            self.header[self.header_len..self.header_len + taken].copy_from_slice(&bytes[..taken]);
            self.header_len += taken;
            bytes = &bytes[taken..];
            if self.header_len == HEADER_BYTES {
                let [l0, l1, l2, kind, flags, stream @ ..] = self.header;
                self.left = u32::from_be_bytes([0, l0, l1, l2]) as usize;
                self.header_len = 0;
                each(Frame { kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff });
            }
        }
    }

    /// Whether a frame could begin here.
    pub(super) fn is_between(&self) -> bool {
        self.left == 0 && self.header_len == 0
    }
}

/// Tells the client why it is left.
pub(super) fn goaway(last_stream: u32, code: u32, why: &[u8]) -> Vec<u8> {
    let length = (8 + why.len()) as u32;
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([GOAWAY, 0, 0, 0, 0, 0]);
    frame.extend(last_stream.to_be_bytes());
    frame.extend(code.to_be_bytes());
    frame.extend(why);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_any_pieces() {
        let mut wire = vec![0, 0, 3, HEADERS, 4, 0x80, 0, 0, 5, 1, 2, 3];
        wire.extend([0, 0, 0, DATA, 1, 0, 0, 0, 5]);
        wire.extend([0, 0, 8, PING, 0, 0, 0, 0, 0, 6, 6, 6, 6, 6, 6, 6, 6]);
        wire.extend(goaway(5, 11, b"why"));
        let frame = |kind, flags, stream| Frame { kind, flags, stream };
        let wanted = [frame(HEADERS, 4, 5), frame(DATA, 1, 5), frame(PING, 0, 0), frame(GOAWAY, 0, 0)];
        for size in [1, 2, 5, 9, 10, wire.len()] {
            let (mut frames, mut seen) = (Frames::default(), Vec::new());
            for piece in wire.chunks(size) {
                frames.read(piece, |frame| seen.push(frame));
            }
            assert_eq!(seen, wanted, "pieces of {size}");
            assert!(frames.is_between());
        }
    }
}
