//! Which pages may be written: a bitmap of free pages, and freed pages that open readers still hold back.
//!
//! Invariants: a page is free only if no open transaction and neither the current state reaches it; a page freed by
//! transaction `b` that was allocated by `a` is held back by readers with `a <= txid < b` and by no others.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// A run of pages: first page and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub page: u64,
    pub pages: u64,
}

#[derive(Default)]
pub(crate) struct FreeList {
    /// One bit per page below the high water mark, set if the page is free.
    bits: Vec<u64>,
    free: u64,
    /// No word before this one has a free page.
    low: usize,
    /// No run of this length exists; learned from a failed search, forgotten when pages come back.
    no_run: u64,
    /// Freed since the last release, not yet looked at.
    fresh: Vec<Held>,
    /// Freed pages by the reader that holds them back.
    pinned: BTreeMap<u64, Vec<Held>>,
    held: u64,
    /// Transaction that allocated a page, for pages younger than the oldest reader. Lets a long reader hold back
    /// only what it can see instead of everything that changes while it is open.
    born: HashMap<u64, u64>,
    born_order: VecDeque<(u64, Vec<u64>)>,
}

#[derive(Clone, Copy)]
struct Held {
    span: Span,
    born: u64,
    freed: u64,
}

impl FreeList {
    /// Every page from 2 to `hwm` whose bit in `used` is not set.
    pub fn from_used(used: &[u64], hwm: u64) -> FreeList {
        let mut list = FreeList { no_run: u64::MAX, ..FreeList::default() };
        list.bits = used.iter().map(|word| !word).collect();
        list.bits.resize(hwm.div_ceil(64) as usize, 0);
        if let Some(first) = list.bits.first_mut() {
            *first &= !0b11;
        }
        if let Some(last) = list.bits.last_mut().filter(|_| !hwm.is_multiple_of(64)) {
            *last &= (1 << (hwm % 64)) - 1;
        }
        list.free = list.bits.iter().map(|word| word.count_ones() as u64).sum();
        list
    }

    pub fn free_pages(&self) -> u64 {
        self.free
    }

    pub fn held_pages(&self) -> u64 {
        self.held
    }

    /// Takes `pages` adjacent free pages, the lowest there are.
    pub fn allocate(&mut self, pages: u64) -> Option<u64> {
        if pages > self.free || pages >= self.no_run {
            return None;
        }
        let found = if pages == 1 { self.find_one() } else { self.find_run(pages) };
        match found {
            Some(page) => self.mark(Span { page, pages }, false),
            None => self.no_run = pages,
        }
        found
    }

    fn find_one(&mut self) -> Option<u64> {
        while self.low < self.bits.len() {
            let word = self.bits[self.low];
            if word != 0 {
                return Some(self.low as u64 * 64 + word.trailing_zeros() as u64);
            }
            self.low += 1;
        }
        None
    }

    fn find_run(&mut self, pages: u64) -> Option<u64> {
        self.find_one()?;
        let (mut start, mut len) = (0, 0);
        for (i, &word) in self.bits.iter().enumerate().skip(self.low) {
            let base = i as u64 * 64;
            let mut bit = 0;
            while bit < 64 {
                let rest = word >> bit;
                let ones = (!rest).trailing_zeros().min(64 - bit);
                if ones == 0 {
                    len = 0;
                    bit += rest.trailing_zeros().min(64 - bit);
                    continue;
                }
                if len == 0 {
                    start = base + bit as u64;
                }
                len += ones as u64;
                bit += ones;
                if len >= pages {
                    return Some(start);
                }
            }
        }
        None
    }

    /// Gives pages back that were allocated but never written into a committed state.
    pub fn give_back(&mut self, span: Span) {
        self.mark(span, true);
    }

    fn mark(&mut self, span: Span, free: bool) {
        let end = span.page + span.pages;
        if self.bits.len() * 64 < end as usize {
            self.bits.resize(end.div_ceil(64) as usize, 0);
        }
        for page in span.page..end {
            let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
            debug_assert_eq!(self.bits[word] & bit == 0, free, "page {page}");
            if free {
                self.bits[word] |= bit;
            } else {
                self.bits[word] &= !bit;
            }
        }
        if free {
            self.free += span.pages;
            self.low = self.low.min((span.page / 64) as usize);
            self.no_run = u64::MAX;
        } else {
            self.free -= span.pages;
        }
    }

    /// Takes note of a commit: what it allocated, what it freed. `oldest` is the oldest reader open during it.
    pub fn committed(&mut self, txid: u64, allocated: &[Span], freed: &[Span], oldest: Option<u64>) {
        for &span in freed {
            let born = self.born.remove(&span.page).unwrap_or(0);
            self.held += span.pages;
            self.fresh.push(Held { span, born, freed: txid });
        }
        // A reader of the state just before this one is usual and short; only an older one makes the note worthwhile.
        if oldest.is_some_and(|oldest| oldest + 1 < txid) {
            self.born.extend(allocated.iter().map(|span| (span.page, txid)));
            self.born_order.push_back((txid, allocated.iter().map(|span| span.page).collect()));
        }
        while self.born_order.front().is_some_and(|(born, _)| oldest.is_none_or(|oldest| *born <= oldest)) {
            let Some((txid, pages)) = self.born_order.pop_front() else { break };
            for page in pages {
                if self.born.get(&page) == Some(&txid) {
                    self.born.remove(&page);
                }
            }
        }
    }

    /// Makes freed pages free that none of the open `readers` can see. Readers that come later see newer states only.
    pub fn release<V>(&mut self, readers: &BTreeMap<u64, V>) {
        let mut look = std::mem::take(&mut self.fresh);
        let gone: Vec<u64> = self.pinned.keys().filter(|txid| !readers.contains_key(txid)).copied().collect();
        for txid in gone {
            look.extend(self.pinned.remove(&txid).unwrap_or_default());
        }
        for held in look {
            match readers.range(held.born..held.freed).next() {
                Some((&reader, _)) => self.pinned.entry(reader).or_default().push(held),
                None => {
                    self.held -= held.span.pages;
                    self.mark(held.span, true);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(free: &[u64], hwm: u64) -> FreeList {
        let mut used = vec![u64::MAX; hwm.div_ceil(64) as usize];
        for page in free {
            used[(page / 64) as usize] &= !(1 << (page % 64));
        }
        FreeList::from_used(&used, hwm)
    }

    fn readers(txids: &[u64]) -> BTreeMap<u64, usize> {
        txids.iter().map(|t| (*t, 1)).collect()
    }

    #[test]
    fn meta_pages_and_pages_beyond_the_mark_are_never_free() {
        let list = FreeList::from_used(&[0, 0], 70);
        assert_eq!(list.free_pages(), 68);
    }

    #[test]
    fn runs_cross_words() {
        let mut list = list(&[3, 5, 6, 62, 63, 64, 65, 130], 200);
        assert_eq!(list.allocate(4), Some(62));
        assert_eq!(list.allocate(3), None);
        assert_eq!(list.allocate(2), Some(5));
        assert_eq!(list.allocate(1), Some(3));
        assert_eq!(list.allocate(1), Some(130));
        assert_eq!(list.allocate(1), None);
        list.give_back(Span { page: 62, pages: 4 });
        assert_eq!(list.allocate(3), Some(62));
    }

    #[test]
    fn whole_words_make_one_run() {
        let mut list = list(&(10..400).collect::<Vec<_>>(), 401);
        assert_eq!(list.allocate(390), Some(10));
        assert_eq!(list.free_pages(), 0);
    }

    #[test]
    fn a_reader_holds_back_what_it_sees() {
        let mut list = list(&[], 20);
        list.committed(8, &[], &[Span { page: 9, pages: 1 }], Some(7));
        list.release(&readers(&[7]));
        assert_eq!((list.free_pages(), list.held_pages()), (0, 1));
        list.release(&readers(&[8]));
        assert_eq!((list.free_pages(), list.held_pages()), (1, 0));
    }

    #[test]
    fn a_long_reader_does_not_hold_back_pages_younger_than_it() {
        let mut list = list(&[], 20);
        list.committed(9, &[Span { page: 12, pages: 2 }], &[], Some(3));
        list.committed(10, &[], &[Span { page: 12, pages: 2 }, Span { page: 5, pages: 1 }], Some(3));
        list.release(&readers(&[3, 10]));
        assert_eq!((list.free_pages(), list.held_pages()), (2, 1));
    }
}
