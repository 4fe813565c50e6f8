//! Keys of bucket `key`: revisions, in an order that bytes and numbers share.
//!
//! ```text
//! main (8, big endian) | '_' | sub (8, big endian) [ | 't' for a tombstone ]
//! ```

/// The key of one change: `main` is the revision, `sub` counts changes inside one request.
/// Invariant: values order as their encodings do (so neither number is negative).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RevisionKey {
    pub main: i64,
    pub sub: i64,
    /// Whether the change deleted its key.
    pub tombstone: bool,
}

impl RevisionKey {
    pub const LEN: usize = 17;
    pub const LEN_TOMBSTONE: usize = 18;

    pub const fn new(main: i64, sub: i64) -> Self {
        RevisionKey { main, sub, tombstone: false }
    }

    pub const fn tombstone(main: i64, sub: i64) -> Self {
        RevisionKey { main, sub, tombstone: true }
    }

    /// The encoding, on the stack.
    pub fn encode(self) -> EncodedRevision {
        let mut bytes = [0; Self::LEN_TOMBSTONE];
        bytes[..8].copy_from_slice(&self.main.to_be_bytes());
        bytes[8] = b'_';
        bytes[9..17].copy_from_slice(&self.sub.to_be_bytes());
        bytes[17] = b't';
        EncodedRevision { bytes, len: (Self::LEN + usize::from(self.tombstone)) as u8 }
    }

    /// `None` if the bytes are not a revision with the parts in place.
    pub fn decode(key: &[u8]) -> Option<Self> {
        let tombstone = match key.len() {
            Self::LEN => false,
            Self::LEN_TOMBSTONE if key[17] == b't' => true,
            _ => return None,
        };
        if key[8] != b'_' {
            return None;
        }
        let main = i64::from_be_bytes(key[..8].try_into().ok()?);
        let sub = i64::from_be_bytes(key[9..17].try_into().ok()?);
        (main >= 0 && sub >= 0).then_some(RevisionKey { main, sub, tombstone })
    }
}

/// The bytes of a [`RevisionKey`].
#[derive(Clone, Copy)]
pub struct EncodedRevision {
    bytes: [u8; RevisionKey::LEN_TOMBSTONE],
    len: u8,
}

impl std::ops::Deref for EncodedRevision {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

impl AsRef<[u8]> for EncodedRevision {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<RevisionKey> for bytes::Bytes {
    fn from(key: RevisionKey) -> Self {
        bytes::Bytes::copy_from_slice(&key.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_and_decodes() {
        let key = RevisionKey::new(0x0102, 3);
        assert_eq!(&key.encode()[..], b"\0\0\0\0\0\0\x01\x02_\0\0\0\0\0\0\0\x03");
        let gone = RevisionKey::tombstone(0x0102, 3);
        assert_eq!(gone.encode().last(), Some(&b't'));
        for key in [key, gone, RevisionKey::new(i64::MAX, i64::MAX), RevisionKey::default()] {
            assert_eq!(RevisionKey::decode(&key.encode()), Some(key));
        }
    }

    #[test]
    fn refuses_other_bytes() {
        let good = RevisionKey::tombstone(5, 6).encode();
        assert_eq!(RevisionKey::decode(&good[..16]), None);
        assert_eq!(RevisionKey::decode(&[&good[..], b"x"].concat()), None);
        for (at, byte) in [(8, b'-'), (17, b'x'), (0, 0x80), (9, 0xff)] {
            let mut bad = good.to_vec();
            bad[at] = byte;
            assert_eq!(RevisionKey::decode(&bad), None, "byte {at}");
        }
    }

    #[test]
    fn numbers_order_as_bytes_do() {
        let mut keys = [
            RevisionKey::tombstone(1, 0),
            RevisionKey::new(1, 1),
            RevisionKey::new(256, 0),
            RevisionKey::new(1, 0),
            RevisionKey::new(255, i64::MAX),
        ];
        keys.sort();
        assert!(keys.windows(2).all(|w| w[0].encode()[..] < w[1].encode()[..]));
    }
}
