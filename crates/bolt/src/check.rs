//! Looking a whole state over: page kinds, keys in order and between their parents' keys, no page used twice.

use std::fmt;

use crate::{
    error::Error,
    meta::{Meta, NO_FREELIST},
    page::{BUCKET_HEADER, DEPTH_MAX, ELEMENT_BUCKET, FLAG_FREELIST, PAGE_HEADER, Page, Pages, u64_at},
};

/// The largest number of problems that [`crate::ReadTx::check`] returns. A damaged file can have more than fit into
/// memory.
pub const PROBLEMS_MAX: usize = 100;

/// A fault that [`crate::ReadTx::check`] found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Number of the faulty page. 0 if the fault cannot be attributed to a page.
    pub page: u64,
    /// A description of the fault for people, without the page number.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}: {}", self.page, self.what)
    }
}

pub(crate) fn check(pages: Pages<'_>, meta: &Meta) -> Vec<Problem> {
    let mut check = Check { pages, used: vec![0; pages.hwm().div_ceil(64) as usize], problems: Vec::new() };
    check.tree(meta.root, None, None, 0);
    if meta.freelist != NO_FREELIST {
        check.stored_freelist(meta.freelist);
    }
    check.problems
}

struct Check<'a> {
    pages: Pages<'a>,
    used: Vec<u64>,
    problems: Vec<Problem>,
}

impl<'a> Check<'a> {
    fn report(&mut self, page: u64, what: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { page, what: what.into() });
        }
    }

    fn ok<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(Error::Corrupt { page, what }) => self.report(page, what),
            Err(e) => self.report(0, e.to_string()),
        }
        None
    }

    /// Checks the pages from `id` down; its keys must lie in `from..to`.
    fn tree(&mut self, id: u64, from: Option<&'a [u8]>, to: Option<&'a [u8]>, depth: usize) {
        let Some(page) = self.ok(self.pages.tree_page(id)) else { return };
        // Pages below one that was met before have been looked at then; this also ends rings.
        if self.claim(page) {
            self.elements(page, from, to, depth);
        }
    }

    /// Marks the pages as used; `false` if one was before. Pages after that one stay as they are, so that pages that
    /// are named many times cost little.
    fn claim(&mut self, page: Page<'_>) -> bool {
        for id in page.id..page.id + page.span(self.pages.page_size) {
            let (word, bit) = ((id / 64) as usize, 1 << (id % 64));
            if self.used[word] & bit != 0 {
                self.report(id, "the page is used in two places");
                return false;
            }
            self.used[word] |= bit;
        }
        true
    }

    fn elements(&mut self, page: Page<'a>, from: Option<&'a [u8]>, to: Option<&'a [u8]>, depth: usize) {
        // Inline buckets come here without passing `tree`.
        if depth == DEPTH_MAX {
            return self.report(page.id, "the tree is too deep");
        }
        let mut before: Option<&[u8]> = None;
        for i in 0..page.count {
            let Some(key) = self.ok(page.key(i)) else { continue };
            if before.is_some_and(|before| before >= key) {
                self.report(page.id, format!("key {i} is not greater than the one before it"));
            }
            if from.is_some_and(|from| key < from) || to.is_some_and(|to| key >= to) {
                self.report(page.id, format!("key {i} lies outside of the range its parent page gives"));
            }
            before = Some(key);
            if page.is_leaf() {
                self.leaf_element(page, i, depth);
            } else if let Some(element) = self.ok(page.branch_element(i)) {
                let next = if i + 1 < page.count { self.ok(page.key(i + 1)) } else { to };
                self.tree(element.child, Some(key), next, depth + 1);
            }
        }
    }

    fn leaf_element(&mut self, page: Page<'a>, i: usize, depth: usize) {
        let Some((flags, _, value)) = self.ok(page.leaf(i)) else { return };
        if flags & ELEMENT_BUCKET == 0 {
            return;
        }
        if value.len() < BUCKET_HEADER {
            return self.report(page.id, "a bucket value shorter than a bucket header");
        }
        match u64_at(value, 0) {
            0 => {
                let inline = self.pages.inline_page(page.id, 0, &value[BUCKET_HEADER..]);
                if let Some(inline) = self.ok(inline) {
                    self.elements(Page { id: page.id, ..inline }, None, None, depth + 1);
                }
            }
            root => self.tree(root, None, None, depth + 1),
        }
    }

    /// A stored free list must name exactly the pages that no tree uses.
    fn stored_freelist(&mut self, id: u64) {
        let Some(page) = self.ok(self.pages.any_page(id)) else { return };
        if page.flags != FLAG_FREELIST {
            return self.report(id, "expected a free list page");
        }
        self.claim(page);
        let words = &page.data[PAGE_HEADER..];
        // A count too large for its field is kept in the first word instead.
        let (skip, count) = if page.count == 0xFFFF { (1, u64_at(words, 0) as usize) } else { (0, page.count) };
        if count > words.len() / 8 - skip {
            return self.report(id, "a free list longer than its page");
        }
        for i in skip..skip + count {
            let free = u64_at(words, i * 8);
            if free < 2 || free >= self.pages.hwm() {
                self.report(id, format!("the free list names page {free}, which does not exist"));
                continue;
            }
            let (word, bit) = ((free / 64) as usize, 1 << (free % 64));
            if self.used[word] & bit != 0 {
                self.report(free, "the page is in the free list twice, or free and used");
            }
            self.used[word] |= bit;
        }
        for id in 2..self.pages.hwm() {
            if self.used[(id / 64) as usize] & (1 << (id % 64)) == 0 {
                self.report(id, "the page is neither used nor in the free list");
            }
        }
    }
}
