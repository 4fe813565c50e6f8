//! From nodes to pages: splitting, allocating, drawing page images, and writing them in file order.

use std::io::{self, IoSlice};

use crate::{
    disk::Disk,
    error::Error,
    freelist::{FreeList, Span},
    node::{BranchItem, Child, Items, LeafItem, Node, Place, Size, Source},
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
    /// All but the values that were given to the transaction.
    drawn: Vec<u8>,
    /// What the pages are made of, in their order.
    pieces: Vec<Piece>,
    pages: Vec<Drawn>,
    /// Of all pages.
    len: usize,
}

/// The image of a page, with its overflow pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Drawn {
    page: u64,
    len: usize,
    /// Where it begins and ends in [`Image::pieces`].
    pieces: (usize, usize),
}

#[derive(Clone, Copy)]
enum Piece {
    /// Of [`Image::drawn`], from and to.
    Drawn(usize, usize),
    /// A value that is written from where it is.
    Given(Place),
}

impl Spill<'_> {
    /// Draws a whole tree and returns the page of its root.
    pub(crate) fn tree(&mut self, root: Node, fill: f32) -> Result<u64, Error> {
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
        self.page(size, FLAG_LEAF, items.len(), |image| draw_leaf(source, image, items))
    }

    fn branch(&mut self, items: &[BranchItem]) -> u64 {
        let size = PAGE_HEADER + items.iter().map(Size::size).sum::<usize>();
        let source = self.source;
        self.page(size, FLAG_BRANCH, items.len(), |image| draw_branch(source, &mut image.drawn, items))
    }

    fn page(&mut self, size: usize, flags: u16, count: usize, draw: impl FnOnce(&mut Image)) -> u64 {
        let page_size = self.source.pages.page_size;
        let pages = size.div_ceil(page_size);
        let id = self.out.allocate(pages as u64);
        let image = &mut self.out.image;
        let first = image.pieces.len();
        image.begin_piece();
        image.drawn.extend_from_slice(&page::header(id, flags, count, pages as u64 - 1));
        draw(image);
        let rest = pages * page_size - size;
        image.drawn.resize(image.drawn.len() + rest, 0);
        image.end_piece();
        image.len += pages * page_size;
        image.pages.push(Drawn { page: id, len: pages * page_size, pieces: (first, image.pieces.len()) });
        id
    }
}

impl Out {
    /// Undoes every allocation since `hwm` was the high water mark: nothing of it was written.
    pub(crate) fn roll_back(&mut self, hwm: u64) {
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
    let mut image = Image::default();
    image.begin_piece();
    image.drawn.extend_from_slice(&page::header(0, FLAG_LEAF, items.len(), 0));
    draw_leaf(source, &mut image, items);
    image.end_piece();
    image.slices_of(&image.pieces, source).concat()
}

fn draw_leaf(source: Source<'_>, image: &mut Image, items: &[LeafItem]) {
    let (mut at, mut data) = (PAGE_HEADER, PAGE_HEADER + items.len() * ELEMENT);
    for item in items {
        let words = [item.flags, (data - at) as u32, item.key.len() as u32, item.value.len() as u32];
        words.iter().for_each(|word| image.drawn.extend_from_slice(&word.to_le_bytes()));
        at += ELEMENT;
        data += item.key.len() + item.value.len();
    }
    for item in items {
        image.drawn.extend_from_slice(source.bytes(item.key));
        if item.value.is_given() {
            image.give(item.value);
        } else {
            image.drawn.extend_from_slice(source.bytes(item.value));
        }
    }
}

fn draw_branch(source: Source<'_>, out: &mut Vec<u8>, items: &[BranchItem]) {
    let (mut at, mut data) = (PAGE_HEADER, PAGE_HEADER + items.len() * ELEMENT);
    for item in items {
        let Child::Page(child) = item.child else { unreachable!("children are drawn before their parent") };
        out.extend_from_slice(&((data - at) as u32).to_le_bytes());
        out.extend_from_slice(&(item.key.len() as u32).to_le_bytes());
        out.extend_from_slice(&child.to_le_bytes());
        at += ELEMENT;
        data += item.key.len();
    }
    items.iter().for_each(|item| out.extend_from_slice(source.bytes(item.key)));
}

/// Cuts items into pages filled up to `fill`. What fits one page, or is too few to cut, stays whole.
fn split<T: Size>(items: &[T], page_size: usize, fill: f32, mut emit: impl FnMut(&[T])) {
    let threshold = (page_size as f32 * fill.clamp(crate::FILL_MIN, 1.0)) as usize;
    let mut rest = items;
    let mut rest_size = PAGE_HEADER + items.iter().map(Size::size).sum::<usize>();
    while !rest.is_empty() {
        let few = rest.len() <= 2 * SPLIT_KEYS_MIN && rest_size <= PAGE_BYTES_MAX;
        // The position of a single item fits into 32 bits, however large the item is.
        let whole = rest_size <= page_size || few || rest.len() == 1;
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
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Bytes of all pages.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        // A rare giant commit should not keep its memory for good; those of a steady load of large values should, since
        // fresh pages cost more than what is drawn into them.
        const KEEP: usize = 16 << 20;
        self.drawn.clear();
        self.drawn.shrink_to(KEEP);
        self.pieces.clear();
        self.pages.clear();
        self.len = 0;
    }

    /// From here on what is drawn belongs to a new piece.
    fn begin_piece(&mut self) {
        self.pieces.push(Piece::Drawn(self.drawn.len(), self.drawn.len()));
    }

    /// What was drawn since the piece began is all of it.
    fn end_piece(&mut self) {
        if let Some(Piece::Drawn(_, to)) = self.pieces.last_mut() {
            *to = self.drawn.len();
        }
    }

    fn give(&mut self, value: Place) {
        self.end_piece();
        self.pieces.push(Piece::Given(value));
        self.begin_piece();
    }

    /// Writes all pages, adjacent ones in one call.
    pub(crate) fn write(&mut self, disk: &dyn Disk, source: Source<'_>) -> io::Result<()> {
        self.pages.sort_unstable();
        let page_size = source.pages.page_size as u64;
        let mut rest = &self.pages[..];
        while let Some(first) = rest.first() {
            let mut end = first.page;
            let adjacent = rest.iter().take_while(|drawn| {
                drawn.page == end && {
                    end += drawn.len as u64 / page_size;
                    true
                }
            });
            let (now, later) = rest.split_at(adjacent.count());
            let pieces = now.iter().flat_map(|page| &self.pieces[page.pieces.0..page.pieces.1]);
            let slices = self.slices_of(pieces, source);
            let mut slices: Vec<_> = slices.into_iter().map(IoSlice::new).collect();
            disk.write_all_at(&mut slices, first.page * page_size)?;
            rest = later;
        }
        Ok(())
    }

    /// What is drawn in one stretch is one slice.
    fn slices_of<'a>(&'a self, pieces: impl IntoIterator<Item = &'a Piece>, source: Source<'a>) -> Vec<&'a [u8]> {
        let mut slices = Vec::new();
        let mut open = (0, 0);
        for piece in pieces {
            match *piece {
                Piece::Drawn(from, to) if open.1 == from => open.1 = to,
                Piece::Drawn(from, to) => {
                    slices.push(&self.drawn[open.0..open.1]);
                    open = (from, to);
                }
                Piece::Given(value) => {
                    slices.extend([&self.drawn[open.0..open.1], source.bytes(value)]);
                    open = (open.1, open.1);
                }
            }
        }
        slices.push(&self.drawn[open.0..open.1]);
        slices.retain(|slice| !slice.is_empty());
        slices
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
        assert_eq!(cuts(&[PAGE_BYTES_MAX], 0.5), [1]);
        assert_eq!(cuts(&[100, PAGE_BYTES_MAX, 100], 0.5), [1, 1, 1]);
    }
}
