//! The parts of a tree that a write transaction has changed, held in memory until commit.
//!
//! A node owns its loaded children; a child nobody touched stays a page number. Keys and values are places in the
//! file's map or in the transaction's arena, so loading a page copies none of its contents.

use bytes::Bytes;

use crate::{
    error::Error,
    page::{DEPTH_MAX, ELEMENT, ELEMENT_BUCKET, PAGE_HEADER, Page, Pages},
};

/// Bytes put by a write transaction. Nothing is moved or dropped before the transaction ends.
#[derive(Default)]
pub(crate) struct Arena {
    chunks: Vec<Vec<u8>>,
    /// Values that are held rather than copied.
    given: Vec<Bytes>,
}

/// Chunks double from the first size to the last, so that a small transaction stays small.
const CHUNK_MIN: usize = 4 << 10;
const CHUNK_MAX: usize = 256 << 10;
const IN_ARENA: u64 = 1 << 63;
const GIVEN: u64 = 1 << 62;

/// Where some bytes are: in the file's map, or (top bit set) in the arena: in chunk and offset, or (next bit set) given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    at: u64,
    len: u32,
}

impl Place {
    pub(crate) fn len(self) -> usize {
        self.len as usize
    }

    /// Whether these are bytes that were given to the transaction, and that it has not copied.
    pub(crate) fn is_given(self) -> bool {
        self.at & GIVEN != 0
    }

    fn split_at(self, mid: usize) -> (Place, Place) {
        let mid = mid as u32;
        (Place { len: mid, ..self }, Place { at: self.at + mid as u64, len: self.len - mid })
    }
}

impl Arena {
    pub(crate) const fn new() -> Arena {
        Arena { chunks: Vec::new(), given: Vec::new() }
    }

    /// Holds bytes without copying them.
    pub(crate) fn hold(&mut self, bytes: Bytes) -> Place {
        let place = Place { at: IN_ARENA | GIVEN | self.given.len() as u64, len: bytes.len() as u32 };
        self.given.push(bytes);
        place
    }

    pub(crate) fn store<const N: usize>(&mut self, parts: [&[u8]; N]) -> Place {
        let len = parts.iter().map(|part| part.len()).sum();
        if self.chunks.last().is_none_or(|chunk| chunk.capacity() - chunk.len() < len) {
            let size = (CHUNK_MIN << self.chunks.len().min(16)).min(CHUNK_MAX);
            self.chunks.push(Vec::with_capacity(len.max(size)));
        }
        let number = self.chunks.len() as u64 - 1;
        let chunk = &mut self.chunks[number as usize];
        let at = chunk.len() as u64;
        parts.iter().for_each(|part| chunk.extend_from_slice(part));
        Place { at: IN_ARENA | number << 32 | at, len: len as u32 }
    }

    /// A key and, right behind it, its value, which comes in two parts.
    pub(crate) fn store_pair(&mut self, key: &[u8], value: [&[u8]; 2]) -> (Place, Place) {
        self.store([key, value[0], value[1]]).split_at(key.len())
    }
}

/// Where places are looked up.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub pages: Pages<'a>,
    pub arena: &'a Arena,
}

static NO_ARENA: Arena = Arena::new();

impl<'a> Source<'a> {
    pub(crate) fn of_pages(pages: Pages<'a>) -> Source<'a> {
        Source { pages, arena: &NO_ARENA }
    }

    pub(crate) fn bytes(&self, place: Place) -> &'a [u8] {
        let len = place.len as usize;
        if place.at & IN_ARENA == 0 {
            return &self.pages.data[place.at as usize..place.at as usize + len];
        }
        if place.is_given() {
            return &self.arena.given[(place.at & !(IN_ARENA | GIVEN)) as usize];
        }
        let chunk = &self.arena.chunks[((place.at & !IN_ARENA) >> 32) as usize];
        let at = (place.at & u32::MAX as u64) as usize;
        &chunk[at..at + len]
    }
}

#[derive(Clone, Copy)]
pub(crate) struct LeafItem {
    pub flags: u32,
    pub key: Place,
    pub value: Place,
}

impl LeafItem {
    pub(crate) fn is_bucket(&self) -> bool {
        self.flags & ELEMENT_BUCKET != 0
    }
}

pub(crate) enum Child {
    Page(u64),
    Node(Box<Node>),
}

pub(crate) struct BranchItem {
    pub key: Place,
    pub child: Child,
}

pub(crate) enum Items {
    Leaf(Vec<LeafItem>),
    Branch(Vec<BranchItem>),
}

pub(crate) struct Node {
    pub items: Items,
    /// Something was taken out, so it may be too small to keep.
    pub shrunk: bool,
}

/// Bytes an element takes in a page.
pub(crate) trait Size {
    fn size(&self) -> usize;
}

impl Size for LeafItem {
    fn size(&self) -> usize {
        ELEMENT + self.key.len() + self.value.len()
    }
}

impl Size for BranchItem {
    fn size(&self) -> usize {
        ELEMENT + self.key.len()
    }
}

impl Node {
    pub(crate) fn empty_leaf() -> Node {
        Node { items: Items::Leaf(Vec::new()), shrunk: false }
    }

    pub(crate) fn of_page(page: Page<'_>) -> Result<Node, Error> {
        let place = |at: usize, len: usize| Place { at: (page.at + at) as u64, len: len as u32 };
        let items = if page.is_leaf() {
            let item = |i| {
                let e = page.leaf_element(i)?;
                let (key, value) = (place(e.key_at, e.key_len), place(e.key_at + e.key_len, e.value_len));
                Ok(LeafItem { flags: e.flags, key, value })
            };
            Items::Leaf((0..page.count).map(item).collect::<Result<_, _>>()?)
        } else {
            let item = |i| {
                let e = page.branch_element(i)?;
                Ok(BranchItem { key: place(e.key_at, e.key_len), child: Child::Page(e.child) })
            };
            Items::Branch((0..page.count).map(item).collect::<Result<_, _>>()?)
        };
        let node = Node { items, shrunk: false };
        if node.size() > page.data.len() {
            // Elements that share bytes would blow up when they are written apart.
            return Err(Error::corrupt(page.id, "elements overlap"));
        }
        Ok(node)
    }

    pub(crate) fn len(&self) -> usize {
        match &self.items {
            Items::Leaf(items) => items.len(),
            Items::Branch(items) => items.len(),
        }
    }

    /// Bytes the node takes as one page.
    pub(crate) fn size(&self) -> usize {
        PAGE_HEADER
            + match &self.items {
                Items::Leaf(items) => items.iter().map(Size::size).sum::<usize>(),
                Items::Branch(items) => items.iter().map(Size::size).sum::<usize>(),
            }
    }

    /// `Ok(i)` if item `i` has this key, else `Err(i)` with the place where it would be.
    pub(crate) fn search(&self, source: Source<'_>, key: &[u8]) -> Result<usize, usize> {
        match &self.items {
            Items::Leaf(items) => search(items, |item| source.bytes(item.key), key),
            Items::Branch(items) => search(items, |item| source.bytes(item.key), key),
        }
    }
}

/// Binary search that looks at the last item first, because keys mostly come in rising order.
fn search<'a, T>(items: &[T], key_of: impl Fn(&T) -> &'a [u8], key: &[u8]) -> Result<usize, usize> {
    match items.last().map(|last| key_of(last).cmp(key)) {
        None => Err(0),
        Some(std::cmp::Ordering::Less) => Err(items.len()),
        Some(std::cmp::Ordering::Equal) => Ok(items.len() - 1),
        Some(std::cmp::Ordering::Greater) => items.binary_search_by(|item| key_of(item).cmp(key)),
    }
}

/// The child that a search in a branch leads to: keys before the first one belong to the first child.
pub(crate) fn child_index(found: Result<usize, usize>) -> usize {
    found.unwrap_or_else(|i| i.saturating_sub(1))
}

/// What a search in a whole tree came upon.
pub(crate) struct Found<'a> {
    pub is_bucket: bool,
    pub value: &'a [u8],
    pub page: u64,
}

/// One level of a tree: a page of the file or a changed node.
#[derive(Clone, Copy)]
pub(crate) enum Level<'a> {
    Page(Page<'a>),
    Node(&'a Node),
}

impl<'a> Level<'a> {
    pub(crate) fn of_child(source: Source<'a>, child: &'a Child) -> Result<Level<'a>, Error> {
        match child {
            Child::Page(id) => Ok(Level::Page(source.pages.tree_page(*id)?)),
            Child::Node(node) => Ok(Level::Node(node)),
        }
    }

    pub(crate) fn is_leaf(&self) -> bool {
        match self {
            Level::Page(page) => page.is_leaf(),
            Level::Node(node) => matches!(node.items, Items::Leaf(_)),
        }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Level::Page(page) => page.count,
            Level::Node(node) => node.len(),
        }
    }

    pub(crate) fn search(&self, source: Source<'a>, key: &[u8]) -> Result<Result<usize, usize>, Error> {
        match self {
            Level::Page(page) => page.search(key),
            Level::Node(node) => Ok(node.search(source, key)),
        }
    }

    /// The child `i` of a branch.
    pub(crate) fn child(&self, source: Source<'a>, i: usize) -> Result<Level<'a>, Error> {
        match self {
            Level::Page(page) => Ok(Level::Page(source.pages.tree_page(page.branch_element(i)?.child)?)),
            Level::Node(Node { items: Items::Branch(items), .. }) => Level::of_child(source, &items[i].child),
            Level::Node(_) => Err(Error::corrupt(0, "a leaf was followed as a branch")),
        }
    }

    /// Flags, key and value of item `i` of a leaf.
    pub(crate) fn leaf(&self, source: Source<'a>, i: usize) -> Result<(u32, &'a [u8], &'a [u8]), Error> {
        match self {
            Level::Page(page) => page.leaf(i),
            Level::Node(Node { items: Items::Leaf(items), .. }) => {
                Ok((items[i].flags, source.bytes(items[i].key), source.bytes(items[i].value)))
            }
            Level::Node(_) => Err(Error::corrupt(0, "a branch was read as a leaf")),
        }
    }

    /// Page number for messages; 0 if the level has none, being inline or changed.
    pub(crate) fn id(&self) -> u64 {
        match self {
            Level::Page(page) => page.id,
            Level::Node(_) => 0,
        }
    }

    /// The item with exactly this key in the tree below.
    pub(crate) fn find(self, source: Source<'a>, key: &[u8]) -> Result<Option<Found<'a>>, Error> {
        let mut level = self;
        for _ in 0..DEPTH_MAX {
            let found = level.search(source, key)?;
            if level.is_leaf() {
                let Ok(i) = found else { return Ok(None) };
                let (flags, _, value) = level.leaf(source, i)?;
                return Ok(Some(Found { is_bucket: flags & ELEMENT_BUCKET != 0, value, page: level.id() }));
            }
            level = level.child(source, child_index(found))?;
        }
        Err(Error::corrupt(level.id(), "the tree is too deep: its pages form a ring"))
    }
}
