//! Received bytes that wait to be decoded.

use bytes::{Buf, Bytes, BytesMut};

/// A queue of bytes. As long as pieces hold whole messages nothing is copied; only a message that spans pieces is put
/// together. Memory grows with what has arrived, never with what a length field promises.
#[derive(Debug, Default)]
pub(super) struct Input {
    whole: Bytes,
    /// Used instead of `whole` once that held less than a message.
    joined: BytesMut,
}

impl Input {
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.joined.is_empty() && self.whole.is_empty() {
            self.whole = piece;
            return;
        }
        if !self.whole.is_empty() {
            self.joined.extend_from_slice(&self.whole);
            self.whole = Bytes::new();
        }
        self.joined.extend_from_slice(&piece);
    }

    pub(super) fn len(&self) -> usize {
        self.whole.len() + self.joined.len()
    }

    pub(super) fn take(&mut self, len: usize) -> Option<Bytes> {
        if self.len() < len {
            return None;
        }
        Some(if self.joined.is_empty() { self.whole.split_to(len) } else { self.joined.split_to(len).freeze() })
    }

    pub(super) fn take_u8(&mut self) -> Option<u8> {
        self.front(1)?;
        let byte = self.as_slice()[0];
        self.skip(1);
        Some(byte)
    }

    pub(super) fn take_u64(&mut self) -> Option<u64> {
        let value = self.peek_u64()?;
        self.skip(8);
        Some(value)
    }

    pub(super) fn peek_u64(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.front(8)?);
        Some(u64::from_be_bytes(bytes))
    }

    fn front(&self, len: usize) -> Option<&[u8]> {
        self.as_slice().get(..len)
    }

    fn as_slice(&self) -> &[u8] {
        if self.joined.is_empty() { &self.whole } else { &self.joined }
    }

    /// `len` bytes are there: the callers have looked at them.
    pub(super) fn skip(&mut self, len: usize) {
        if self.joined.is_empty() { self.whole.advance(len) } else { self.joined.advance(len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_only_when_they_must() {
        let piece = Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 3, 7, 8, 9, 1]);
        let mut input = Input::default();
        input.push(piece.clone());
        assert_eq!(input.take_u64(), Some(3));
        let taken = input.take(3).unwrap();
        assert_eq!(taken.as_ptr(), piece[8..].as_ptr(), "shared, not copied");
        assert_eq!(input.take(2), None);
        input.push(Bytes::from_static(&[2, 3]));
        assert_eq!(input.take(2).as_deref(), Some(&[1, 2][..]));
        assert_eq!((input.take_u8(), input.take_u8(), input.len()), (Some(3), None, 0));
    }
}
