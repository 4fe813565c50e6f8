//! Reading a bucket: one key, a walk in either direction, a range.

use crate::{
    error::Error,
    node::{Level, Source, child_index},
    page::{BUCKET_HEADER, DEPTH_MAX, ELEMENT_BUCKET, u64_at},
};

/// A key and its value, borrowed from the transaction.
pub type Pair<'a> = (&'a [u8], &'a [u8]);

/// A bucket in the state that a transaction sees. Cheap to copy; the slices that it returns live as
/// long as the transaction.
#[derive(Clone, Copy)]
pub struct Bucket<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) root: Level<'a>,
    pub(crate) sequence: u64,
}

impl<'a> Bucket<'a> {
    /// The bucket that a value of leaf `owner` describes; `value` lies in the file's map.
    pub(crate) fn of_value(source: Source<'a>, value: &'a [u8], owner: u64) -> Result<Bucket<'a>, Error> {
        if value.len() < BUCKET_HEADER {
            return Err(Error::corrupt(owner, "a bucket value shorter than a bucket header"));
        }
        let (page, sequence) = (u64_at(value, 0), u64_at(value, 8));
        let root = if page == 0 {
            // Places inside an inline page count from the beginning of the map.
            let start = value.as_ptr() as usize;
            let at = start.wrapping_sub(source.pages.data.as_ptr() as usize) + BUCKET_HEADER;
            source.pages.inline_page(owner, at, &value[BUCKET_HEADER..])?
        } else {
            source.pages.tree_page(page)?
        };
        Ok(Bucket { source, root: Level::Page(root), sequence })
    }

    /// Returns the value of `key`, or `None` if it is absent or holds a nested bucket.
    pub fn get(&self, key: &[u8]) -> Result<Option<&'a [u8]>, Error> {
        let found = self.root.find(self.source, key)?;
        Ok(found.filter(|found| !found.is_bucket).map(|found| found.value))
    }

    /// Returns a nested bucket, or `None` if `name` is absent. A plain value under `name` is
    /// [`Error::NotBucket`].
    pub fn bucket(&self, name: &[u8]) -> Result<Option<Bucket<'a>>, Error> {
        match self.root.find(self.source, name)? {
            None => Ok(None),
            Some(found) if !found.is_bucket => Err(Error::NotBucket { key: name.to_vec() }),
            Some(found) => Bucket::of_value(self.source, found.value, found.page).map(Some),
        }
    }

    /// Returns a cursor without a position. Place it with [`Cursor::first`], [`Cursor::last`] or
    /// [`Cursor::seek`].
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor { source: self.source, root: self.root, stack: Vec::new(), toward: Edge::Last, met: 0 }
    }

    /// Iterates over the pairs with `from <= key`, and `key < to` if `to` is given, in key order.
    pub fn range(&self, from: &[u8], to: Option<&[u8]>) -> Range<'a> {
        Range { cursor: self.cursor(), start: Some(from.into()), to: to.map(Into::into) }
    }

    /// Iterates over all pairs in key order. Nested buckets are omitted.
    pub fn iter(&self) -> Range<'a> {
        self.range(b"", None)
    }

    /// The bucket's sequence number (bbolt's `Bucket.Sequence`). The engine stores it and never
    /// changes it itself.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl<'a> IntoIterator for Bucket<'a> {
    type Item = Result<Pair<'a>, Error>;
    type IntoIter = Range<'a>;

    fn into_iter(self) -> Range<'a> {
        self.iter()
    }
}

/// A position in a bucket. For a nested bucket it returns the name with an empty value; see
/// [`Cursor::is_bucket`].
#[derive(Clone)]
pub struct Cursor<'a> {
    source: Source<'a>,
    root: Level<'a>,
    /// Levels from the root to the leaf with the item looked at in each; empty before the first move.
    stack: Vec<(Level<'a>, usize)>,
    /// The direction of the last moves.
    toward: Edge,
    /// Pages met since the cursor was placed or turned round. A walk in one direction meets each page at most once; in
    /// a damaged file, where pages are used in several places, it would not end.
    met: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    First,
    Last,
}

impl<'a> Cursor<'a> {
    /// Moves to the first pair. `None` if the bucket is empty.
    pub fn first(&mut self) -> Result<Option<Pair<'a>>, Error> {
        self.restart();
        self.descend(self.root, Edge::First)?;
        self.settle_forward()
    }

    /// Moves to the last pair. `None` if the bucket is empty.
    pub fn last(&mut self) -> Result<Option<Pair<'a>>, Error> {
        self.restart();
        self.descend(self.root, Edge::Last)?;
        self.settle_backward()
    }

    /// Moves to `key`, or to the next greater key if `key` is absent. Returns `None` if there is no
    /// such key; the cursor is then past the end, and [`Cursor::prev`] returns `None`, too: call
    /// [`Cursor::last`] instead.
    pub fn seek(&mut self, key: &[u8]) -> Result<Option<Pair<'a>>, Error> {
        self.restart();
        let mut level = self.root;
        loop {
            let found = level.search(self.source, key)?;
            if level.is_leaf() {
                self.push(level, found.unwrap_or_else(|i| i))?;
                return self.settle_forward();
            }
            let i = child_index(found);
            self.push(level, i)?;
            level = level.child(self.source, i)?;
        }
    }

    /// Moves to the next pair. `None` at the end, and before the cursor was first placed.
    #[expect(clippy::should_implement_trait, reason = "a cursor also goes back and fails; `Range` is the iterator")]
    pub fn next(&mut self) -> Result<Option<Pair<'a>>, Error> {
        self.turn(Edge::Last);
        match self.stack.last_mut() {
            Some((_, i)) => *i += 1,
            None => return Ok(None),
        }
        self.settle_forward()
    }

    /// Moves to the pair before. `None` at the beginning, and if the cursor has no position.
    pub fn prev(&mut self) -> Result<Option<Pair<'a>>, Error> {
        if self.stack.is_empty() {
            return Ok(None);
        }
        self.turn(Edge::First);
        self.step_back()?;
        self.settle_backward()
    }

    /// Whether the current key holds a nested bucket.
    pub fn is_bucket(&self) -> bool {
        let Some((level, i)) = self.stack.last() else { return false };
        *i < level.count() && level.leaf(self.source, *i).is_ok_and(|(flags, ..)| flags & ELEMENT_BUCKET != 0)
    }

    fn restart(&mut self) {
        self.stack.clear();
        self.met = 0;
    }

    fn turn(&mut self, toward: Edge) {
        if self.toward != toward {
            (self.toward, self.met) = (toward, 0);
        }
    }

    fn push(&mut self, level: Level<'a>, i: usize) -> Result<(), Error> {
        if self.stack.len() == DEPTH_MAX {
            return Err(Error::corrupt(level.id(), "the tree is too deep: its pages form a ring"));
        }
        if matches!(level, Level::Page(_)) {
            self.met += 1;
            if self.met > self.source.pages.hwm() {
                return Err(Error::corrupt(level.id(), "pages are used in several places"));
            }
        }
        self.stack.push((level, i));
        Ok(())
    }

    /// From `level` down to a leaf along one edge.
    fn descend(&mut self, mut level: Level<'a>, edge: Edge) -> Result<(), Error> {
        loop {
            let i = match edge {
                Edge::First => 0,
                Edge::Last => level.count().saturating_sub(1),
            };
            self.push(level, i)?;
            if level.is_leaf() {
                return Ok(());
            }
            level = level.child(self.source, i)?;
        }
    }

    /// The item at the position, or the first one after it if the position is past the end of its leaf.
    fn settle_forward(&mut self) -> Result<Option<Pair<'a>>, Error> {
        while let Some((level, i)) = self.stack.last().copied() {
            if i >= level.count() {
                self.stack.pop();
                if let Some((_, i)) = self.stack.last_mut() {
                    *i += 1;
                }
            } else if level.is_leaf() {
                return self.item(level, i).map(Some);
            } else {
                let child = level.child(self.source, i)?;
                self.descend(child, Edge::First)?;
            }
        }
        Ok(None)
    }

    /// The item at the position, or the last one before it if its leaf is empty.
    fn settle_backward(&mut self) -> Result<Option<Pair<'a>>, Error> {
        while let Some((level, i)) = self.stack.last().copied() {
            if level.is_leaf() && i < level.count() {
                return self.item(level, i).map(Some);
            }
            self.step_back()?;
        }
        Ok(None)
    }

    /// One item back, across leaves if need be; leaves the stack empty at the beginning.
    fn step_back(&mut self) -> Result<(), Error> {
        while let Some((level, i)) = self.stack.last_mut() {
            if *i == 0 || level.count() == 0 {
                self.stack.pop();
                continue;
            }
            *i -= 1;
            let (level, i) = (*level, *i);
            if !level.is_leaf() {
                let child = level.child(self.source, i)?;
                self.descend(child, Edge::Last)?;
            }
            return Ok(());
        }
        Ok(())
    }

    fn item(&self, level: Level<'a>, i: usize) -> Result<Pair<'a>, Error> {
        let (flags, key, value) = level.leaf(self.source, i)?;
        Ok((key, if flags & ELEMENT_BUCKET == 0 { value } else { &[] }))
    }
}

/// An iterator over a key range of a bucket. It omits nested buckets, and ends after an error.
pub struct Range<'a> {
    cursor: Cursor<'a>,
    start: Option<Box<[u8]>>,
    to: Option<Box<[u8]>>,
}

impl<'a> Iterator for Range<'a> {
    type Item = Result<Pair<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let step = match self.start.take() {
                Some(from) => self.cursor.seek(&from),
                None => self.cursor.next(),
            };
            return match step {
                Ok(Some((key, _))) if self.to.as_ref().is_some_and(|to| key >= &**to) => {
                    self.cursor.restart();
                    None
                }
                Ok(Some((_, value))) if value.is_empty() && self.cursor.is_bucket() => continue,
                Ok(pair) => pair.map(Ok),
                Err(e) => {
                    self.cursor.restart();
                    Some(Err(e))
                }
            };
        }
    }
}
