//! The two meta pages: which tree is current, how far the file is used, and a checksum.
//!
//! Invariant: a commit with transaction id `t` writes page `t % 2`, so the other page keeps the state before it.
//! That state is durable before the commit writes anything: opening a file for writing makes it so.

use crate::page::{self, FLAG_META, PAGE_HEADER, u32_at, u64_at};

pub(crate) const MAGIC: u32 = 0xED0C_DAED;
pub(crate) const VERSION: u32 = 2;
/// Bytes of a meta record, its checksum included.
pub(crate) const META_BYTES: usize = 64;
/// `freelist` value saying that no free list is stored in the file.
pub(crate) const NO_FREELIST: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub page_size: u32,
    pub flags: u32,
    /// Page of the root bucket's tree, and that bucket's sequence.
    pub root: u64,
    pub sequence: u64,
    /// Page of the stored free list, or [`NO_FREELIST`].
    pub freelist: u64,
    /// High water mark: the first page number never used so far.
    pub hwm: u64,
    pub txid: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    Short,
    Magic,
    Version(u32),
    PageSize,
    Checksum,
}

impl Meta {
    /// Reads the meta record of a meta page, header included.
    pub(crate) fn read(page: &[u8]) -> Result<Meta, Invalid> {
        let m = page.get(PAGE_HEADER..PAGE_HEADER + META_BYTES).ok_or(Invalid::Short)?;
        if u32_at(m, 0) != MAGIC {
            return Err(Invalid::Magic);
        }
        if u32_at(m, 4) != VERSION {
            return Err(Invalid::Version(u32_at(m, 4)));
        }
        if u64_at(m, 56) != fnv1a(&m[..56]) {
            return Err(Invalid::Checksum);
        }
        let page_size = u32_at(m, 8);
        if !page::readable_page_size(page_size as usize) {
            return Err(Invalid::PageSize);
        }
        Ok(Meta {
            page_size,
            flags: u32_at(m, 12),
            root: u64_at(m, 16),
            sequence: u64_at(m, 24),
            freelist: u64_at(m, 32),
            hwm: u64_at(m, 40),
            txid: u64_at(m, 48),
        })
    }

    /// The whole meta page numbered `page`.
    pub(crate) fn page(&self, page: u64) -> Vec<u8> {
        let mut buf = vec![0; self.page_size as usize];
        buf[..PAGE_HEADER].copy_from_slice(&page::header(page, FLAG_META, 0, 0));
        let m = &mut buf[PAGE_HEADER..PAGE_HEADER + META_BYTES];
        m[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        m[4..8].copy_from_slice(&VERSION.to_le_bytes());
        m[8..12].copy_from_slice(&self.page_size.to_le_bytes());
        m[12..16].copy_from_slice(&self.flags.to_le_bytes());
        let words = [self.root, self.sequence, self.freelist, self.hwm, self.txid];
        for (at, word) in (16..).step_by(8).zip(words) {
            m[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let sum = fnv1a(&m[..56]);
        m[56..64].copy_from_slice(&sum.to_le_bytes());
        buf
    }

    /// Bytes of the file that this state may refer to.
    pub(crate) fn bytes(&self) -> u64 {
        self.hwm.saturating_mul(self.page_size as u64)
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ *b as u64).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> Meta {
        Meta { page_size: 4096, flags: 0, root: 3, sequence: 9, freelist: NO_FREELIST, hwm: 77, txid: 5 }
    }

    #[test]
    fn reads_what_it_wrote() {
        assert_eq!(Meta::read(&meta().page(1)), Ok(meta()));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let page = meta().page(0);
        for bit in 0..META_BYTES * 8 {
            let mut bad = page.clone();
            bad[PAGE_HEADER + bit / 8] ^= 1 << (bit % 8);
            assert!(Meta::read(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn checksum_is_fnv1a() {
        // Published test vectors of the 64-bit FNV-1a hash.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
