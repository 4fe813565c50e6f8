//! Pages as they lie in the file: header, branch and leaf elements, every access bounds-checked.
//!
//! Invariants: integers are little endian; element positions count from the element's own first byte; a page and its
//! overflow pages lie below the high water mark of the transaction that reads them.

use std::cmp::Ordering;

use crate::error::Error;

pub(crate) const PAGE_HEADER: usize = 16;
/// Branch and leaf elements have the same size.
pub(crate) const ELEMENT: usize = 16;
pub(crate) const BUCKET_HEADER: usize = 16;
/// Maps are reserved in units of the largest memory page that is usual.
pub(crate) const MAP_UNIT: u64 = 64 << 10;

pub(crate) const FLAG_BRANCH: u16 = 0x01;
pub(crate) const FLAG_LEAF: u16 = 0x02;
pub(crate) const FLAG_META: u16 = 0x04;
pub(crate) const FLAG_FREELIST: u16 = 0x10;
/// Flag of a leaf element whose value is a bucket.
pub(crate) const ELEMENT_BUCKET: u32 = 1;

/// Deepest tree that is followed. Two keys to a branch page fill any file long before this; more is a cycle.
pub(crate) const DEPTH_MAX: usize = 64;

/// Whether files of this page size are read. bbolt itself takes the size of the machine's memory pages.
pub(crate) fn readable_page_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && (1024..=crate::PAGE_SIZE_MAX).contains(&bytes)
}

pub(crate) fn u16_at(d: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([d[at], d[at + 1]])
}

pub(crate) fn u32_at(d: &[u8], at: usize) -> u32 {
    let d = &d[at..at + 4];
    u32::from_le_bytes([d[0], d[1], d[2], d[3]])
}

pub(crate) fn u64_at(d: &[u8], at: usize) -> u64 {
    let d = &d[at..at + 8];
    u64::from_le_bytes([d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]])
}

pub(crate) fn header(id: u64, flags: u16, count: usize, overflow: u64) -> [u8; PAGE_HEADER] {
    let mut buf = [0; PAGE_HEADER];
    buf[0..8].copy_from_slice(&id.to_le_bytes());
    buf[8..10].copy_from_slice(&flags.to_le_bytes());
    buf[10..12].copy_from_slice(&(count as u16).to_le_bytes());
    buf[12..16].copy_from_slice(&(overflow as u32).to_le_bytes());
    buf
}

/// The bytes of a file up to one transaction's high water mark.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'a> {
    pub data: &'a [u8],
    pub page_size: usize,
}

impl<'a> Pages<'a> {
    /// First page number that does not exist for this transaction.
    pub(crate) fn hwm(&self) -> u64 {
        (self.data.len() / self.page_size) as u64
    }

    /// The branch or leaf page `id` with its overflow pages.
    pub(crate) fn tree_page(&self, id: u64) -> Result<Page<'a>, Error> {
        let page = self.any_page(id)?;
        match page.flags {
            FLAG_BRANCH if page.count == 0 => Err(Error::corrupt(id, "a branch page without children")),
            FLAG_BRANCH | FLAG_LEAF => Ok(page),
            _ => Err(Error::corrupt(id, "expected a branch or leaf page")),
        }
    }

    /// The page `id` of whatever kind; its elements are known to fit only if it is a branch or leaf page.
    pub(crate) fn any_page(&self, id: u64) -> Result<Page<'a>, Error> {
        if id < 2 || id >= self.hwm() {
            return Err(Error::corrupt(id, "page number outside of the used part of the file"));
        }
        let at = id as usize * self.page_size;
        let head = &self.data[at..at + PAGE_HEADER];
        if u64_at(head, 0) != id {
            return Err(Error::corrupt(id, "the page carries another page's number"));
        }
        let overflow = u32_at(head, 12) as u64;
        if overflow >= self.hwm() - id {
            return Err(Error::corrupt(id, "overflow pages reach beyond the used part of the file"));
        }
        let data = &self.data[at..at + (overflow as usize + 1) * self.page_size];
        Page::parse(id, at, data)
    }

    /// The page held inside the value of an inline bucket; `at` is where that page starts in the file.
    pub(crate) fn inline_page(&self, owner: u64, at: usize, data: &'a [u8]) -> Result<Page<'a>, Error> {
        if data.len() < PAGE_HEADER {
            return Err(Error::corrupt(owner, "an inline bucket shorter than a page header"));
        }
        let page = Page::parse(0, at, data).map_err(|_| Error::corrupt(owner, "damaged inline bucket"))?;
        if page.flags != FLAG_LEAF {
            return Err(Error::corrupt(owner, "an inline bucket that is not a leaf"));
        }
        Ok(page)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    /// Page number; 0 for the page of an inline bucket.
    pub id: u64,
    /// Offset of the page in the file.
    pub at: usize,
    pub data: &'a [u8],
    pub flags: u16,
    pub count: usize,
}

/// A leaf element, as offsets into the page.
#[derive(Clone, Copy)]
pub(crate) struct LeafElement {
    pub flags: u32,
    pub key_at: usize,
    pub key_len: usize,
    pub value_len: usize,
}

/// A branch element, as offsets into the page.
#[derive(Clone, Copy)]
pub(crate) struct BranchElement {
    pub key_at: usize,
    pub key_len: usize,
    pub child: u64,
}

impl<'a> Page<'a> {
    fn parse(id: u64, at: usize, data: &'a [u8]) -> Result<Page<'a>, Error> {
        let page = Page { id, at, data, flags: u16_at(data, 8), count: u16_at(data, 10) as usize };
        let has_elements = page.flags == FLAG_BRANCH || page.flags == FLAG_LEAF;
        if has_elements && PAGE_HEADER + page.count * ELEMENT > data.len() {
            return Err(Error::corrupt(id, "more elements than fit into the page"));
        }
        Ok(page)
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.flags == FLAG_LEAF
    }

    /// Pages taken in the file, overflow included.
    pub(crate) fn span(&self, page_size: usize) -> u64 {
        (self.data.len() / page_size) as u64
    }

    pub(crate) fn leaf_element(&self, i: usize) -> Result<LeafElement, Error> {
        let at = PAGE_HEADER + i * ELEMENT;
        let d = &self.data[at..at + ELEMENT];
        let key_at = at + u32_at(d, 4) as usize;
        let (key_len, value_len) = (u32_at(d, 8) as usize, u32_at(d, 12) as usize);
        if key_at + key_len + value_len > self.data.len() {
            return Err(Error::corrupt(self.id, "a leaf element reaches out of its page"));
        }
        Ok(LeafElement { flags: u32_at(d, 0), key_at, key_len, value_len })
    }

    pub(crate) fn branch_element(&self, i: usize) -> Result<BranchElement, Error> {
        let at = PAGE_HEADER + i * ELEMENT;
        let d = &self.data[at..at + ELEMENT];
        let (key_at, key_len) = (at + u32_at(d, 0) as usize, u32_at(d, 4) as usize);
        if key_at + key_len > self.data.len() {
            return Err(Error::corrupt(self.id, "a branch element reaches out of its page"));
        }
        Ok(BranchElement { key_at, key_len, child: u64_at(d, 8) })
    }

    /// Flags, key and value of leaf element `i`.
    pub(crate) fn leaf(&self, i: usize) -> Result<(u32, &'a [u8], &'a [u8]), Error> {
        let e = self.leaf_element(i)?;
        let value_at = e.key_at + e.key_len;
        Ok((e.flags, &self.data[e.key_at..value_at], &self.data[value_at..value_at + e.value_len]))
    }

    pub(crate) fn key(&self, i: usize) -> Result<&'a [u8], Error> {
        let (at, len) = if self.is_leaf() {
            let e = self.leaf_element(i)?;
            (e.key_at, e.key_len)
        } else {
            let e = self.branch_element(i)?;
            (e.key_at, e.key_len)
        };
        Ok(&self.data[at..at + len])
    }

    /// `Ok(i)` if element `i` has this key, else `Err(i)` with the place where it would be.
    pub(crate) fn search(&self, key: &[u8]) -> Result<Result<usize, usize>, Error> {
        if self.is_leaf() {
            self.prefetch_keys();
            self.search_by(key, |i| self.leaf_element(i).map(|e| (e.key_at, e.key_len)))
        } else {
            self.search_by(key, |i| self.branch_element(i).map(|e| (e.key_at, e.key_len)))
        }
    }

    fn search_by(
        &self,
        key: &[u8],
        place: impl Fn(usize) -> Result<(usize, usize), Error>,
    ) -> Result<Result<usize, usize>, Error> {
        let (mut low, mut high) = (0, self.count);
        let head = head(key);
        while low < high {
            let mid = (low + high) / 2;
            let (at, len) = place(mid)?;
            match compare(&self.data[at..at + len], key, head) {
                Ordering::Less => low = mid + 1,
                Ordering::Greater => high = mid,
                Ordering::Equal => return Ok(Ok(mid)),
            }
        }
        Ok(Err(low))
    }

    /// Keys of a leaf lie far apart, between values. Asking for all of them at once costs less than waiting for
    /// those that a binary search happens to visit one after the other.
    fn prefetch_keys(&self) {
        const KEYS_MAX: usize = 24;
        #[cfg(target_arch = "x86_64")]
        for i in 0..self.count.min(KEYS_MAX) {
            let at = PAGE_HEADER + i * ELEMENT;
            let key = self.data.as_ptr().wrapping_add(at + u32_at(self.data, at + 4) as usize);
            // SAFETY: a prefetch is a hint; it never faults, whatever the address.
            unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(key.cast()) };
        }
    }
}

/// The first 8 bytes as a number that orders as they do; `None` for shorter keys.
fn head(key: &[u8]) -> Option<u64> {
    key.first_chunk().map(|head| u64::from_be_bytes(*head))
}

/// As `a.cmp(b)`, where `b_head` is `head(b)`: one comparison of numbers mostly decides.
fn compare(a: &[u8], b: &[u8], b_head: Option<u64>) -> Ordering {
    match (head(a), b_head) {
        (Some(a_head), Some(b_head)) if a_head != b_head => a_head.cmp(&b_head),
        _ => a.cmp(b),
    }
}
