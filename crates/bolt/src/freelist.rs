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

/// Run lengths whose searches remember where they stopped.
const LENGTHS: usize = 64;

#[derive(Default)]
pub(crate) struct FreeList {
    /// One bit per page below the high water mark, set if the page is free.
    bits: Vec<u64>,
    free: u64,
    /// For each run length: no run that long starts before this word. Saves walking over the same small gaps for
    /// every large value. Lengths from the last one on share its entry.
    starts: Vec<usize>,
    /// Lowest word with pages that came back since the last search.
    came_back: Option<usize>,
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
    pub(crate) fn from_used(used: &[u64], hwm: u64) -> FreeList {
        let mut list = FreeList { no_run: u64::MAX, starts: vec![0; LENGTHS], ..FreeList::default() };
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

    pub(crate) fn free_pages(&self) -> u64 {
        self.free
    }

    pub(crate) fn held_pages(&self) -> u64 {
        self.held
    }

    /// Takes `pages` adjacent free pages, the lowest there are.
    pub(crate) fn allocate(&mut self, pages: u64) -> Option<u64> {
        if pages > self.free || pages >= self.no_run {
            return None;
        }
        if let Some(word) = self.came_back.take() {
            // A run that now reaches the returned pages may start a little before them.
            self.starts.iter_mut().for_each(|start| *start = (*start).min(word.saturating_sub(2)));
        }
        let slot = (pages as usize).min(LENGTHS - 1);
        let found = if pages == 1 { self.find_one(self.starts[slot]) } else { self.find_run(pages, self.starts[slot]) };
        match found {
            Some(page) => {
                if pages as usize == slot {
                    self.starts[slot] = (page / 64) as usize;
                }
                self.mark(Span { page, pages }, false);
            }
            None => self.no_run = pages,
        }
        found
    }

    fn find_one(&self, from: usize) -> Option<u64> {
        let (i, word) = self.bits.iter().enumerate().skip(from).find(|(_, word)| **word != 0)?;
        Some(i as u64 * 64 + word.trailing_zeros() as u64)
    }

    fn find_run(&self, pages: u64, from: usize) -> Option<u64> {
        let (mut start, mut len) = (0, 0);
        for (i, &word) in self.bits.iter().enumerate().skip(from) {
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
    pub(crate) fn give_back(&mut self, span: Span) {
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
            let word = (span.page / 64) as usize;
            self.came_back = Some(self.came_back.map_or(word, |low| low.min(word)));
            self.no_run = u64::MAX;
        } else {
            self.free -= span.pages;
        }
    }

    /// Takes note of a commit: what it allocated, what it freed. `oldest` is the oldest reader open during it.
    pub(crate) fn committed(&mut self, txid: u64, allocated: &[Span], freed: &[Span], oldest: Option<u64>) {
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
    pub(crate) fn release<V>(&mut self, readers: &BTreeMap<u64, V>) {
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

    /// First fit by looking at every page, to compare with.
    fn first_fit(free: &[bool], pages: usize) -> Option<u64> {
        (0..free.len().saturating_sub(pages - 1))
            .find(|at| free[*at..at + pages].iter().all(|f| *f))
            .map(|at| at as u64)
    }

    #[test]
    fn the_lowest_fit_is_found_whatever_happened_before() {
        let (hwm, mut seed) = (3000u64, 12345u64);
        let mut random = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let mut free: Vec<bool> = (0..hwm).map(|page| page > 1 && random(3) > 0).collect();
        let mut list = list(&(0..hwm).filter(|page| free[*page as usize]).collect::<Vec<_>>(), hwm);
        let mut taken = Vec::new();
        // Miri is some hundred times slower.
        let steps = if cfg!(miri) { 40 } else { 4000 };
        for step in 0..steps {
            let pages = [1, 1, 2, 3, 5, 17, 63, 64, 90][random(9) as usize];
            let expected = first_fit(&free, pages as usize);
            assert_eq!(list.allocate(pages), expected, "step {step}: {pages} pages");
            if let Some(page) = expected {
                free[page as usize..(page + pages) as usize].fill(false);
                taken.push(Span { page, pages });
            }
            while random(2) == 0 && !taken.is_empty() {
                let span = taken.swap_remove(random(taken.len() as u64) as usize);
                list.give_back(span);
                free[span.page as usize..(span.page + span.pages) as usize].fill(true);
            }
            assert_eq!(list.free_pages(), free.iter().filter(|f| **f).count() as u64);
        }
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
