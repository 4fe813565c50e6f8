//! From nodes to pages: splitting, allocating, drawing page images, and writing them in file order.

use std::io::{self, IoSlice};

use crate::{
    disk::Disk,
    error::Error,
    freelist::{FreeList, Span},
    node::{BranchItem, Child, Items, LeafItem, Node, Size, Source},
    page::{self, ELEMENT, FLAG_BRANCH, FLAG_LEAF, PAGE_HEADER},
};

/// bbolt wants two keys on each side of a split.
const SPLIT_KEYS_MIN: usize = 2;
/// Element positions are 32 bits, so a page with many giant values is cut before this.
const PAGE_BYTES_MAX: usize = 1 << 31;

/// Turns the nodes of one commit into page images.
pub(crate) struct Spill<'a> {
    pub source: Source<'a>,
    pub out: &'a mut Out,
}

/// Where new pages come from and what was drawn on them.
pub(crate) struct Out {
    pub free: FreeList,
    /// Grows as pages are taken from beyond the end.
    pub hwm: u64,
    pub allocated: Vec<Span>,
    pub image: Image,
}

/// Pages one after the other as they were drawn; the buffer is reused from commit to commit.
#[derive(Default)]
pub(crate) struct Image {
    pub bytes: Vec<u8>,
    /// First page, and where its bytes start and end in `bytes`.
    pages: Vec<(u64, usize, usize)>,
}

impl Spill<'_> {
    /// Draws a whole tree and returns the page of its root.
    pub fn tree(&mut self, root: Node, fill: f32) -> Result<u64, Error> {
        let mut level = Vec::new();
        self.node(root, fill, &mut level)?;
        // More than one page: they need a parent, which may need to be split in turn.
        while level.len() > 1 {
            let parent = Node { items: Items::Branch(std::mem::take(&mut level)), shrunk: false };
            self.node(parent, fill, &mut level)?;
        }
        match level.first() {
            Some(BranchItem { child: Child::Page(id), .. }) => Ok(*id),
            _ => Ok(self.leaf(&[])),
        }
    }

    /// Draws a node and what is below it; appends an item for each page it became to `up`.
    fn node(&mut self, node: Node, fill: f32, up: &mut Vec<BranchItem>) -> Result<(), Error> {
        match node.items {
            Items::Leaf(items) => split(&items, self.source.pages.page_size, fill, |part| {
                let id = self.leaf(part);
                up.push(BranchItem { key: part[0].key, child: Child::Page(id) });
            }),
            Items::Branch(items) => {
                let mut drawn = Vec::with_capacity(items.len());
                for item in items {
                    match item.child {
                        Child::Page(_) => drawn.push(item),
                        Child::Node(child) => self.node(*child, fill, &mut drawn)?,
                    }
                }
                split(&drawn, self.source.pages.page_size, fill, |part| {
                    let id = self.branch(part);
                    up.push(BranchItem { key: part[0].key, child: Child::Page(id) });
                });
            }
        }
        Ok(())
    }

    fn leaf(&mut self, items: &[LeafItem]) -> u64 {
        let size = PAGE_HEADER + items.iter().map(Size::size).sum::<usize>();
        let source = self.source;
        self.page(size, FLAG_LEAF, items.len(), |buf| draw_leaf(source, buf, items))
    }

    fn branch(&mut self, items: &[BranchItem]) -> u64 {
        let size = PAGE_HEADER + items.iter().map(Size::size).sum::<usize>();
        let source = self.source;
        self.page(size, FLAG_BRANCH, items.len(), |buf| draw_branch(source, buf, items))
    }

    fn page(&mut self, size: usize, flags: u16, count: usize, draw: impl FnOnce(&mut [u8])) -> u64 {
        let page_size = self.source.pages.page_size;
        let pages = size.div_ceil(page_size) as u64;
        let id = self.out.allocate(pages);
        let image = &mut self.out.image;
        let start = image.bytes.len();
        image.bytes.resize(start + pages as usize * page_size, 0);
        let buf = &mut image.bytes[start..];
        page::write_header(buf, id, flags, count, pages - 1);
        draw(buf);
        image.pages.push((id, start, image.bytes.len()));
        id
    }
}

impl Out {
    /// Undoes every allocation since `hwm` was the high water mark: nothing of it was written.
    pub fn roll_back(&mut self, hwm: u64) {
        for span in std::mem::take(&mut self.allocated) {
            if span.page < hwm {
                self.free.give_back(span);
            }
        }
        self.hwm = hwm;
        self.image.clear();
    }

    fn allocate(&mut self, pages: u64) -> u64 {
        let page = self.free.allocate(pages).unwrap_or_else(|| {
            self.hwm += pages;
            self.hwm - pages
        });
        self.allocated.push(Span { page, pages });
        page
    }
}

/// Draws the page of an inline bucket: as a leaf page, but numbered 0 and no longer than its contents.
pub(crate) fn inline_page(source: Source<'_>, items: &[LeafItem]) -> Vec<u8> {
    let mut buf = vec![0; PAGE_HEADER + items.iter().map(Size::size).sum::<usize>()];
    page::write_header(&mut buf, 0, FLAG_LEAF, items.len(), 0);
    draw_leaf(source, &mut buf, items);
    buf
}

fn draw_leaf(source: Source<'_>, buf: &mut [u8], items: &[LeafItem]) {
    let (mut at, mut data) = (PAGE_HEADER, PAGE_HEADER + items.len() * ELEMENT);
    for item in items {
        let words = [item.flags, (data - at) as u32, item.key.len() as u32, item.value.len() as u32];
        for (to, word) in buf[at..at + ELEMENT].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        at += ELEMENT;
        for bytes in [source.bytes(item.key), source.bytes(item.value)] {
            buf[data..data + bytes.len()].copy_from_slice(bytes);
            data += bytes.len();
        }
    }
}

fn draw_branch(source: Source<'_>, buf: &mut [u8], items: &[BranchItem]) {
    let (mut at, mut data) = (PAGE_HEADER, PAGE_HEADER + items.len() * ELEMENT);
    for item in items {
        let key = source.bytes(item.key);
        let Child::Page(child) = item.child else { continue };
        buf[at..at + 4].copy_from_slice(&((data - at) as u32).to_le_bytes());
        buf[at + 4..at + 8].copy_from_slice(&(key.len() as u32).to_le_bytes());
        buf[at + 8..at + 16].copy_from_slice(&child.to_le_bytes());
        at += ELEMENT;
        buf[data..data + key.len()].copy_from_slice(key);
        data += key.len();
    }
}

/// Cuts items into pages filled up to `fill`. What fits one page, or is too few to cut, stays whole.
fn split<T: Size>(items: &[T], page_size: usize, fill: f32, mut emit: impl FnMut(&[T])) {
    let threshold = (page_size as f32 * fill.clamp(crate::FILL_MIN, 1.0)) as usize;
    let mut rest = items;
    let mut rest_size = PAGE_HEADER + items.iter().map(Size::size).sum::<usize>();
    while !rest.is_empty() {
        let whole = rest_size <= page_size || rest.len() <= 2 * SPLIT_KEYS_MIN && rest_size <= PAGE_BYTES_MAX;
        if whole {
            return emit(rest);
        }
        let (mut n, mut size) = (0, PAGE_HEADER);
        for item in &rest[..rest.len() - 1] {
            let next = size + item.size();
            let enough = n >= SPLIT_KEYS_MIN && next > threshold;
            if enough || n + SPLIT_KEYS_MIN >= rest.len() && n > 0 || n > 0 && next > PAGE_BYTES_MAX {
                break;
            }
            (n, size) = (n + 1, next);
        }
        emit(&rest[..n]);
        rest = &rest[n..];
        rest_size -= size - PAGE_HEADER;
    }
}

impl Image {
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    pub fn clear(&mut self) {
        // A rare giant commit should not keep its memory for good; those of a steady load of large values should, since
        // fresh pages cost more than what is drawn into them.
        const KEEP: usize = 16 << 20;
        self.bytes.clear();
        self.bytes.shrink_to(KEEP);
        self.pages.clear();
    }

    /// Writes all pages, adjacent ones in one call.
    pub fn write(&mut self, disk: &dyn Disk, page_size: usize) -> io::Result<()> {
        self.pages.sort_unstable();
        let mut i = 0;
        while i < self.pages.len() {
            let offset = self.pages[i].0 * page_size as u64;
            let mut end = offset;
            let mut slices: Vec<(usize, usize)> = Vec::new();
            while let Some(&(id, from, to)) = self.pages.get(i).filter(|page| page.0 * page_size as u64 == end) {
                match slices.last_mut() {
                    Some(last) if last.1 == from => last.1 = to,
                    _ => slices.push((from, to)),
                }
                end = id * page_size as u64 + (to - from) as u64;
                i += 1;
            }
            let mut slices: Vec<_> = slices.iter().map(|(from, to)| IoSlice::new(&self.bytes[*from..*to])).collect();
            disk.write_all_at(&mut slices, offset)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Item(usize);

    impl Size for Item {
        fn size(&self) -> usize {
            self.0
        }
    }

    fn cuts(sizes: &[usize], fill: f32) -> Vec<usize> {
        let items: Vec<_> = sizes.iter().map(|s| Item(*s)).collect();
        let mut cuts = Vec::new();
        split(&items, 4096, fill, |part| cuts.push(part.len()));
        assert_eq!(cuts.iter().sum::<usize>(), sizes.len());
        cuts
    }

    #[test]
    fn pages_are_cut_at_the_fill_mark() {
        assert_eq!(cuts(&[100; 40], 0.5), [40]);
        assert_eq!(cuts(&[100; 41], 0.5), [20, 21]);
        assert_eq!(cuts(&[100; 100], 0.9), [36, 36, 28]);
    }

    #[test]
    fn few_items_stay_whole_however_large() {
        assert_eq!(cuts(&[5000; 4], 0.5), [4]);
        assert_eq!(cuts(&[5000; 5], 0.5), [2, 3]);
        assert_eq!(cuts(&[PAGE_BYTES_MAX - 100; 3], 0.5), [1, 1, 1]);
    }
}
