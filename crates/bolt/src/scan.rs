//! Finding every page a state uses, by walking its trees on all processors. What is left over is free.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use crate::{
    error::Error,
    page::{BUCKET_HEADER, ELEMENT_BUCKET, Page, Pages, u64_at},
};

/// One bit per page; a page found twice is an error, which also ends walks in a ring.
struct Used<'a> {
    pages: Pages<'a>,
    bits: Vec<AtomicU64>,
    visited: AtomicUsize,
    release: &'a (dyn Fn() + Sync),
}

/// After so many visits memory is let go of: each may have mapped in some pages around the one it needs.
const RELEASE_EVERY: usize = 1024;

/// The pages reachable from `root`, one bit each. `release` is called now and then, to let go of what reading has mapped in.
pub(crate) fn used_pages(pages: Pages<'_>, root: u64, release: &(dyn Fn() + Sync)) -> Result<Vec<u64>, Error> {
    let words = pages.hwm().div_ceil(64) as usize;
    let bits = (0..words).map(|_| AtomicU64::new(0)).collect();
    let used = Used { pages, bits, visited: AtomicUsize::new(0), release };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(8);
    // Widen the front until there is work for all; small files never get that far.
    let mut front = vec![root];
    while !front.is_empty() && front.len() < 64 * threads {
        let mut next = Vec::new();
        for id in front {
            used.visit(id, &mut |child| next.push(child))?;
        }
        front = next;
    }
    used.walk_all(&front, threads)?;
    Ok(used.bits.into_iter().map(AtomicU64::into_inner).collect())
}

impl Used<'_> {
    fn walk_all(&self, front: &[u64], threads: usize) -> Result<(), Error> {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let failed = Mutex::new(None);
        let work = || {
            while let Some(&id) = front.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                if let Err(e) = self.walk(id) {
                    stop.store(true, Ordering::Relaxed);
                    failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(e);
                }
            }
        };
        if front.len() <= 1 {
            work();
        } else {
            std::thread::scope(|scope| {
                for _ in 1..threads {
                    scope.spawn(work);
                }
                work();
            });
        }
        failed.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
    }

    fn walk(&self, id: u64) -> Result<(), Error> {
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            self.visit(id, &mut |child| todo.push(child))?;
        }
        Ok(())
    }

    /// Marks a page and names its children, roots of nested buckets included.
    fn visit(&self, id: u64, child: &mut dyn FnMut(u64)) -> Result<(), Error> {
        let page = self.pages.tree_page(id)?;
        for id in id..id + page.span(self.pages.page_size) {
            let bit = 1 << (id % 64);
            if self.bits[(id / 64) as usize].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                return Err(Error::corrupt(id, "the page is used in two places"));
            }
        }
        each_child(page, child)?;
        if self.visited.fetch_add(1, Ordering::Relaxed) % RELEASE_EVERY == RELEASE_EVERY - 1 {
            (self.release)();
        }
        Ok(())
    }
}

/// Names the pages a page refers to. Elements are checked to lie in the page, but values are looked at only where
/// they are buckets, so that a scan touches little memory.
pub(crate) fn each_child(page: Page<'_>, child: &mut dyn FnMut(u64)) -> Result<(), Error> {
    for i in 0..page.count {
        if !page.is_leaf() {
            child(page.branch_element(i)?.child);
            continue;
        }
        let element = page.leaf_element(i)?;
        if element.flags & ELEMENT_BUCKET == 0 {
            continue;
        }
        if element.value_len < BUCKET_HEADER {
            return Err(Error::corrupt(page.id, "a bucket value shorter than a bucket header"));
        }
        match u64_at(page.data, element.key_at + element.key_len) {
            0 => {}
            root => child(root),
        }
    }
    Ok(())
}
