//! Changing a tree in memory: put, delete, freeing whole subtrees, and merging what deletes left too small.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    disk::Map,
    error::Error,
    freelist::Span,
    node::{Arena, BranchItem, Child, Items, LeafItem, Level, Node, Source, child_index},
    page::{BUCKET_HEADER, DEPTH_MAX, ELEMENT_BUCKET, Page, Pages, u64_at},
};

/// What all trees of one write transaction share.
pub(crate) struct Work {
    pub map: Arc<Map>,
    /// Bytes of the map this transaction may look at.
    pub len: usize,
    pub page_size: usize,
    pub arena: Arena,
    /// Pages of the state before that the new state does not use.
    pub freed: Vec<Span>,
}

impl Work {
    pub(crate) fn source(&self) -> Source<'_> {
        Source { pages: self.pages(), arena: &self.arena }
    }

    pub(crate) fn pages(&self) -> Pages<'_> {
        // SAFETY: `len` is the high water mark of a committed state, which the file covers; its pages are not
        // written while this transaction, the only writer, works from them.
        Pages { data: unsafe { self.map.bytes(self.len) }, page_size: self.page_size }
    }

    fn free(&mut self, page: u64, pages: u64) {
        self.freed.push(Span { page, pages });
    }

    /// Turns a page into a node in place; the page is free once the transaction has committed.
    fn load<'t>(&mut self, child: &'t mut Child) -> Result<&'t mut Node, Error> {
        if let Child::Page(id) = *child {
            let page = self.pages().tree_page(id)?;
            let (node, pages) = (Node::of_page(page)?, page.span(self.page_size));
            self.free(id, pages);
            *child = Child::Node(Box::new(node));
        }
        match child {
            Child::Node(node) => Ok(node),
            Child::Page(id) => Err(Error::corrupt(*id, "a page was not loaded")),
        }
    }

    /// Every page below `child` that is still a page, nested buckets included.
    pub(crate) fn spans_below(&self, child: &Child) -> Result<Vec<Span>, Error> {
        let mut spans = Vec::new();
        spans_of_child(self.pages(), child, &mut spans)?;
        Ok(spans)
    }
}

fn spans_of_child(pages: Pages<'_>, child: &Child, spans: &mut Vec<Span>) -> Result<(), Error> {
    let node = match child {
        Child::Page(id) => {
            return each_page(pages, *id, 0, &mut |page| {
                spans.push(Span { page: page.id, pages: page.span(pages.page_size) });
            });
        }
        Child::Node(node) => node,
    };
    match &node.items {
        Items::Branch(items) => items.iter().try_for_each(|item| spans_of_child(pages, &item.child, spans)),
        Items::Leaf(items) => {
            // Nested buckets are never written here, so their values still lie in the file's map.
            let source = Source::of_pages(pages);
            items.iter().filter(|item| item.is_bucket()).try_for_each(|item| {
                match bucket_root(source.bytes(item.value))? {
                    0 => Ok(()),
                    root => spans_of_child(pages, &Child::Page(root), spans),
                }
            })
        }
    }
}

/// The root page in a bucket value; 0 for an inline bucket.
fn bucket_root(value: &[u8]) -> Result<u64, Error> {
    match value.len() {
        BUCKET_HEADER.. => Ok(u64_at(value, 0)),
        _ => Err(Error::corrupt(0, "a bucket value shorter than a bucket header")),
    }
}

/// Calls `f` with every page of a tree, parents first, nested buckets included.
fn each_page<'a>(pages: Pages<'a>, id: u64, depth: usize, f: &mut dyn FnMut(Page<'a>)) -> Result<(), Error> {
    if depth == DEPTH_MAX {
        return Err(Error::corrupt(id, "the tree is too deep: its pages form a ring"));
    }
    let page = pages.tree_page(id)?;
    f(page);
    for i in 0..page.count {
        if !page.is_leaf() {
            each_page(pages, page.branch_element(i)?.child, depth + 1, f)?;
            continue;
        }
        let (flags, _, value) = page.leaf(i)?;
        if flags & ELEMENT_BUCKET != 0 {
            let root = bucket_root(value)?;
            if root != 0 {
                each_page(pages, root, depth + 1, f)?;
            }
        }
    }
    Ok(())
}

/// A value on its way into a tree.
pub(crate) enum NewValue<'a> {
    /// To be copied, one part after the other.
    Parts([&'a [u8]; 2]),
    Given(Bytes),
}

/// One bucket's tree while it is changed.
pub(crate) struct Tree {
    pub root: Child,
    pub sequence: u64,
    /// How full pages are made when a node is split, from 0.1 to 1.
    pub fill: f32,
    pub dirty: bool,
}

impl Tree {
    pub(crate) fn new(root: Child, sequence: u64) -> Tree {
        Tree { root, sequence, fill: crate::FILL_DEFAULT, dirty: false }
    }

    pub(crate) fn level<'a>(&'a self, source: Source<'a>) -> Result<Level<'a>, Error> {
        Level::of_child(source, &self.root)
    }

    /// The leaf where `key` is or would be, loaded for a change.
    fn leaf_for<'t>(&'t mut self, work: &mut Work, key: &[u8]) -> Result<(&'t mut Vec<LeafItem>, &'t mut bool), Error> {
        self.dirty = true;
        let mut node = work.load(&mut self.root)?;
        for _ in 0..DEPTH_MAX {
            let next = child_index(match &node.items {
                Items::Leaf(_) => Ok(0),
                Items::Branch(_) => node.search(work.source(), key),
            });
            match node {
                Node { items: Items::Leaf(items), shrunk } => return Ok((items, shrunk)),
                Node { items: Items::Branch(items), .. } => node = work.load(&mut items[next].child)?,
            }
        }
        Err(Error::corrupt(0, "the tree is too deep: its pages form a ring"))
    }

    /// Sets `key` to `value`. Neither may turn a bucket into a plain value nor the other way round.
    pub(crate) fn put(&mut self, work: &mut Work, key: &[u8], value: NewValue<'_>, flags: u32) -> Result<(), Error> {
        let (items, _) = self.leaf_for(work, key)?;
        let source = work.source();
        let found = match items.last() {
            Some(last) if source.bytes(last.key) < key => Err(items.len()),
            _ => items.binary_search_by(|item| source.bytes(item.key).cmp(key)),
        };
        match found {
            Ok(i) if items[i].flags & ELEMENT_BUCKET != flags & ELEMENT_BUCKET => {
                Err(mixed_up(key, items[i].is_bucket()))
            }
            Ok(i) => {
                items[i].value = match value {
                    NewValue::Parts(parts) => work.arena.store(parts),
                    NewValue::Given(bytes) => work.arena.hold(bytes),
                };
                Ok(())
            }
            Err(i) => {
                let (key, value) = match value {
                    NewValue::Parts(parts) => work.arena.store_pair(key, parts),
                    NewValue::Given(bytes) => (work.arena.store([key]), work.arena.hold(bytes)),
                };
                items.insert(i, LeafItem { flags, key, value });
                Ok(())
            }
        }
    }

    /// Takes `key` out; `false` if it was not there.
    pub(crate) fn delete(&mut self, work: &mut Work, key: &[u8], flags: u32) -> Result<bool, Error> {
        let found = self.level(work.source())?.find(work.source(), key)?;
        let Some(found) = found else { return Ok(false) };
        if found.is_bucket != (flags & ELEMENT_BUCKET != 0) {
            return Err(mixed_up(key, found.is_bucket));
        }
        let (items, shrunk) = self.leaf_for(work, key)?;
        let source = work.source();
        if let Ok(i) = items.binary_search_by(|item| source.bytes(item.key).cmp(key)) {
            items.remove(i);
            *shrunk = true;
        }
        Ok(true)
    }

    /// Merges nodes that deletes have left too small, and takes off root levels with a single child.
    pub(crate) fn rebalance(&mut self, work: &mut Work) -> Result<(), Error> {
        let Child::Node(root) = &mut self.root else { return Ok(()) };
        rebalance(work, root)?;
        loop {
            let Child::Node(root) = &mut self.root else { return Ok(()) };
            let Items::Branch(items) = &mut root.items else { return Ok(()) };
            match items.len() {
                0 => **root = Node::empty_leaf(),
                1 => {
                    work.load(&mut items[0].child)?;
                    let Some(only) = items.pop() else { return Ok(()) };
                    self.root = only.child;
                }
                _ => return Ok(()),
            }
        }
    }
}

fn mixed_up(key: &[u8], is_bucket: bool) -> Error {
    let key = key.to_vec();
    if is_bucket { Error::IsBucket { key } } else { Error::NotBucket { key } }
}

fn rebalance(work: &mut Work, node: &mut Node) -> Result<(), Error> {
    let Items::Branch(items) = &mut node.items else { return Ok(()) };
    for item in items.iter_mut() {
        if let Child::Node(child) = &mut item.child {
            rebalance(work, child)?;
        }
    }
    let before = items.len();
    let mut i = 0;
    while i < items.len() {
        match &items[i].child {
            Child::Node(child) if child.shrunk && child.len() == 0 => {
                items.remove(i);
            }
            Child::Node(child) if items.len() > 1 && is_too_small(child, work.page_size) => {
                let left = i.saturating_sub(1);
                merge_with_next(work, items, left)?;
                // The merged node may still be too small, so it is looked at again.
                i = left;
            }
            _ => i += 1,
        }
    }
    node.shrunk |= items.len() < before;
    Ok(())
}

/// A quarter of a page, as in bbolt; a branch also needs two children to be worth its level.
fn is_too_small(node: &Node, page_size: usize) -> bool {
    let lone = matches!(node.items, Items::Branch(_)) && node.len() < 2;
    node.shrunk && (lone || node.size() <= page_size / 4)
}

fn merge_with_next(work: &mut Work, items: &mut Vec<BranchItem>, left: usize) -> Result<(), Error> {
    work.load(&mut items[left].child)?;
    work.load(&mut items[left + 1].child)?;
    let right = items.remove(left + 1);
    let (Child::Node(left), Child::Node(right)) = (&mut items[left].child, right.child) else { return Ok(()) };
    match (&mut left.items, right.items) {
        (Items::Leaf(to), Items::Leaf(from)) => to.extend(from),
        (Items::Branch(to), Items::Branch(from)) => to.extend(from),
        _ => return Err(Error::corrupt(0, "a leaf and a branch are siblings")),
    }
    left.shrunk = true;
    Ok(())
}
