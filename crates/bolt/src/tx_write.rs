//! The write transaction: changes kept in memory, then written beside the old state and switched to by one meta page.

use std::{
    collections::BTreeMap,
    io::IoSlice,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use failpoint::failpoint;

use crate::{
    cursor::Bucket,
    db::{Inner, Writer},
    disk::Map,
    error::Error,
    meta::{Meta, NO_FREELIST},
    node::{Arena, Child, Items, LeafItem, Level, Node, Size},
    page::{ELEMENT_BUCKET, PAGE_HEADER},
    spill::{self, Spill},
    tree::{NewValue, Tree, Work},
    tx_read::bucket_names,
};

/// Growth of the file beyond the first megabytes.
const GROW_BYTES: u64 = 16 << 20;
/// Smaller values are copied: to write one from where it is costs a slice of its own.
const SHARE_BYTES_MIN: usize = 1 << 10;
/// A young file doubles from this size.
const GROW_BYTES_MIN: u64 = 32 << 10;

/// The size of a commit and the time that its steps took.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommitStats {
    /// Id of the new state. If the transaction changed nothing, the id of the old state.
    pub txid: u64,
    /// Pages written, without the meta page.
    pub pages: u64,
    /// Bytes written, without the meta page.
    pub bytes: u64,
    /// Time to rebalance the trees and to encode their pages.
    pub spill: Duration,
    /// Time to write the pages, before the first sync.
    pub write: Duration,
    /// Time from the sync of the pages to the end of the commit, including the write of the meta
    /// page.
    pub sync: Duration,
}

/// The one write transaction of a file. Dropping it without [`WriteTx::commit`] discards its
/// changes.
pub struct WriteTx {
    db: Arc<Inner>,
    /// Taken out only when the transaction ends.
    writer: Option<Box<Writer>>,
    meta: Meta,
    work: Work,
    root: Tree,
    /// Buckets opened for changes.
    open: BTreeMap<Box<[u8]>, Tree>,
}

impl WriteTx {
    pub(crate) fn new(db: Arc<Inner>, writer: Box<Writer>, map: Arc<Map>, meta: Meta) -> WriteTx {
        let (len, page_size) = (meta.bytes() as usize, meta.page_size as usize);
        let work = Work { map, len, page_size, arena: Arena::new(), freed: Vec::new() };
        let root = Tree::new(Child::Page(meta.root), meta.sequence);
        WriteTx { db, writer: Some(writer), meta, work, root, open: BTreeMap::new() }
    }

    /// The id that this transaction will have if it commits.
    pub fn txid(&self) -> u64 {
        self.meta.txid.saturating_add(1)
    }

    /// Size in bytes of the state before this transaction, including free pages.
    pub fn size(&self) -> u64 {
        self.meta.bytes()
    }

    /// Returns a top-level bucket for reading, including the changes made so far. `None` if there
    /// is none with this name.
    pub fn bucket(&self, name: &[u8]) -> Result<Option<Bucket<'_>>, Error> {
        let source = self.work.source();
        match self.open.get(name) {
            Some(tree) => Ok(Some(Bucket { source, root: tree.level(source)?, sequence: tree.sequence })),
            None => self.root_bucket()?.bucket(name),
        }
    }

    /// Names of all top-level buckets, in byte order.
    pub fn buckets(&self) -> Result<Vec<Vec<u8>>, Error> {
        bucket_names(self.root_bucket()?)
    }

    fn root_bucket(&self) -> Result<Bucket<'_>, Error> {
        let source = self.work.source();
        Ok(Bucket { source, root: self.root.level(source)?, sequence: self.root.sequence })
    }

    /// Returns the value of `key` in a top-level bucket, including the changes made so far. `None`
    /// if the key is absent or holds a nested bucket. A missing bucket is [`Error::NoBucket`].
    pub fn get(&self, bucket: &[u8], key: &[u8]) -> Result<Option<&[u8]>, Error> {
        match self.bucket(bucket)? {
            Some(bucket) => bucket.get(key),
            None => Err(Error::NoBucket { name: bucket.into() }),
        }
    }

    /// Returns a top-level bucket for writing. Fails with [`Error::NoBucket`] if there is none.
    pub fn bucket_mut(&mut self, name: &[u8]) -> Result<BucketMut<'_>, Error> {
        if !self.open.contains_key(name) {
            let Some(bucket) = self.root_bucket()?.bucket(name)? else {
                return Err(Error::NoBucket { name: name.into() });
            };
            let tree = tree_of(bucket)?;
            self.open.insert(name.into(), tree);
        }
        match self.open.get_mut(name) {
            Some(tree) => Ok(BucketMut { work: &mut self.work, tree }),
            None => Err(Error::NoBucket { name: name.into() }),
        }
    }

    /// Returns the top-level bucket `name` for writing, creating it if there is none.
    pub fn create_bucket_if_missing(&mut self, name: &[u8]) -> Result<BucketMut<'_>, Error> {
        check_key(name)?;
        if self.bucket(name)?.is_none() {
            // The name is in the root tree at once; the value is put at commit.
            self.root.put(&mut self.work, name, NewValue::Parts([&[0; 16], &[]]), ELEMENT_BUCKET)?;
            let mut tree = Tree::new(Child::Node(Box::new(Node::empty_leaf())), 0);
            tree.dirty = true;
            self.open.insert(name.into(), tree);
        }
        self.bucket_mut(name)
    }

    /// Deletes a top-level bucket with its contents. Returns false if there is none.
    pub fn delete_bucket(&mut self, name: &[u8]) -> Result<bool, Error> {
        if self.bucket(name)?.is_none() {
            return Ok(false);
        }
        self.bucket_mut(name)?;
        // All that can fail comes first, so that an error leaves the bucket whole.
        let spans = match self.open.get(name) {
            Some(tree) => self.work.spans_below(&tree.root)?,
            None => Vec::new(),
        };
        let deleted = self.root.delete(&mut self.work, name, ELEMENT_BUCKET)?;
        self.work.freed.extend(spans);
        self.open.remove(name);
        Ok(deleted)
    }

    /// Sets `key` to `value` in the top-level bucket `bucket`, which must exist. Fails if the key
    /// holds a nested bucket.
    pub fn put(&mut self, bucket: &[u8], key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.bucket_mut(bucket)?.put(key, value)
    }

    /// Deletes a key of a top-level bucket. Returns false if the key is absent.
    pub fn delete(&mut self, bucket: &[u8], key: &[u8]) -> Result<bool, Error> {
        self.bucket_mut(bucket)?.delete(key)
    }

    /// Makes the changes durable, and visible to transactions that begin later.
    ///
    /// After an error the changes are not visible. If a write failed, the disk may hold the old or
    /// the new state, so the file must be reopened before the next commit.
    pub fn commit(mut self) -> Result<CommitStats, Error> {
        let mut stats = CommitStats { txid: self.meta.txid, ..CommitStats::default() };
        if !self.root.dirty && self.open.values().all(|tree| !tree.dirty) {
            return Ok(stats);
        }
        let Some(mut writer) = self.writer.take() else { return Ok(stats) };
        let result = self.commit_with(&mut writer, &mut stats);
        if result.is_err() {
            writer.out.roll_back(self.meta.hwm);
        }
        self.db.give_back(writer);
        result.map(|()| stats)
    }

    fn commit_with(&mut self, writer: &mut Writer, stats: &mut CommitStats) -> Result<(), Error> {
        let start = Instant::now();
        let txid = self.meta.txid.checked_add(1).ok_or(Error::NoMoreIds)?;
        let root = self.spill(writer)?;
        let hwm = writer.out.hwm;
        let meta = Meta { root, hwm, txid, freelist: NO_FREELIST, ..self.meta };
        stats.spill = start.elapsed();
        (stats.txid, stats.pages) = (txid, writer.out.image.pages() as u64);
        stats.bytes = writer.out.image.len() as u64;
        let map = self.db.map_for(self.work.map.clone(), meta.bytes());
        let map = map.map_err(|source| Error::Io { op: "map the grown file", source })?;
        self.write(writer, &map, &meta, stats).inspect_err(|e| {
            writer.poisoned = Some(match e {
                Error::Io { op, source } => format!("{op}: {source}"),
                e => e.to_string(),
            });
        })?;
        self.work.freed.extend(writer.stored_freelist.take());
        let out = &mut writer.out;
        out.free.committed(txid, &out.allocated, &self.work.freed, self.db.oldest_reader());
        out.allocated.clear();
        out.image.clear();
        self.db.publish(meta, map, &out.free);
        Ok(())
    }

    /// Draws all changed trees and returns the page of the new root.
    fn spill(&mut self, writer: &mut Writer) -> Result<u64, Error> {
        for (name, mut tree) in std::mem::take(&mut self.open) {
            if !tree.dirty {
                continue;
            }
            tree.rebalance(&mut self.work)?;
            let mut spill = Spill { source: self.work.source(), out: &mut writer.out };
            let (root, inline) = match tree.root {
                Child::Page(id) => (id, Vec::new()),
                Child::Node(node) => match inlinable(&node, self.work.page_size) {
                    Some(items) => (0, spill::inline_page(spill.source, items)),
                    None => (spill.tree(*node, tree.fill)?, Vec::new()),
                },
            };
            let mut header = [0; 16];
            header[..8].copy_from_slice(&root.to_le_bytes());
            header[8..].copy_from_slice(&tree.sequence.to_le_bytes());
            self.root.put(&mut self.work, &name, NewValue::Parts([&header, &inline]), ELEMENT_BUCKET)?;
        }
        self.root.rebalance(&mut self.work)?;
        match std::mem::replace(&mut self.root.root, Child::Page(self.meta.root)) {
            Child::Page(id) => Ok(id),
            Child::Node(node) => {
                let mut spill = Spill { source: self.work.source(), out: &mut writer.out };
                spill.tree(*node, self.root.fill)
            }
        }
    }

    /// Data, sync, meta, sync; the second half happens only if the first is safely down. Where a point returns a text, that is
    /// the error, and what it stands before is not done.
    fn write(&self, writer: &mut Writer, map: &Map, meta: &Meta, stats: &mut CommitStats) -> Result<(), Error> {
        let fail = |op| move |source| Error::Io { op, source };
        let (disk, no_sync) = (&*self.db.disk, self.db.options.no_sync);
        let start = Instant::now();
        if meta.bytes() > writer.file_len {
            let len = grown_len(meta.bytes());
            failpoint!("lackOfDiskSpace", |text| return Err(fail("grow the file")(std::io::Error::other(text))));
            failpoint!("resizeFileError", |text| return Err(fail("grow the file")(std::io::Error::other(text))));
            disk.set_len(len).map_err(fail("grow the file"))?;
            writer.file_len = len;
            if self.db.options.mlock {
                failpoint!("mlockError", |text| return Err(fail("lock the grown file in memory")(
                    std::io::Error::other(text)
                )));
                map.lock_memory(len as usize).map_err(fail("lock the grown file in memory"))?;
            }
        }
        writer.out.image.write(disk, self.work.source()).map_err(fail("write pages"))?;
        let written = Instant::now();
        failpoint!("beforeSyncDataPages", |text| return Err(fail("sync pages")(std::io::Error::other(text))));
        if !no_sync {
            disk.sync().map_err(fail("sync pages"))?;
        }
        failpoint!("beforeWriteMetaError", |text| return Err(fail("write a meta page")(std::io::Error::other(text))));
        let slot = meta.txid % 2;
        let page = meta.page(slot);
        disk.write_all_at(&mut [IoSlice::new(&page)], slot * meta.page_size as u64)
            .map_err(fail("write a meta page"))?;
        failpoint!("beforeSyncMetaPage", |text| return Err(fail("sync a meta page")(std::io::Error::other(text))));
        if !no_sync {
            disk.sync().map_err(fail("sync a meta page"))?;
        }
        (stats.write, stats.sync) = (written - start, written.elapsed());
        Ok(())
    }
}

impl Drop for WriteTx {
    fn drop(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            writer.out.roll_back(self.meta.hwm);
            self.db.give_back(writer);
        }
    }
}

/// A top-level bucket that a write transaction changes.
pub struct BucketMut<'a> {
    work: &'a mut Work,
    tree: &'a mut Tree,
}

impl BucketMut<'_> {
    /// Sets `key` to `value`. Fails if the key holds a nested bucket.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        check_key(key)?;
        check_value(value)?;
        failpoint!("beforeBucketPut");
        self.tree.put(self.work, key, NewValue::Parts([value, &[]]), 0)
    }

    /// Sets `key` to `value`, as [`BucketMut::put`] does. A large value is kept as the given
    /// `Bytes` and written to disk without a copy.
    pub fn put_shared(&mut self, key: &[u8], value: &Bytes) -> Result<(), Error> {
        if value.len() < SHARE_BYTES_MIN {
            return self.put(key, value);
        }
        check_key(key)?;
        check_value(value)?;
        failpoint!("beforeBucketPut");
        self.tree.put(self.work, key, NewValue::Given(value.clone()), 0)
    }

    /// Deletes a key. Returns false if it is absent.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.tree.delete(self.work, key, 0)
    }

    /// Returns the bucket for reading, including the changes made so far.
    pub fn read(&self) -> Result<Bucket<'_>, Error> {
        let source = self.work.source();
        Ok(Bucket { source, root: self.tree.level(source)?, sequence: self.tree.sequence })
    }

    /// Sets the fraction of a page that splits in this transaction fill; the default is
    /// [`crate::FILL_DEFAULT`]. Use a high value for keys that are only appended.
    pub fn set_fill(&mut self, fill: f32) {
        self.tree.fill = fill;
    }

    /// Sets the number that [`Bucket::sequence`] returns.
    pub fn set_sequence(&mut self, sequence: u64) {
        self.tree.dirty |= self.tree.sequence != sequence;
        self.tree.sequence = sequence;
    }
}

/// The tree of a bucket as it is in the file; the page of an inline bucket is loaded, because it has no number.
fn tree_of(bucket: Bucket<'_>) -> Result<Tree, Error> {
    let root = match bucket.root {
        Level::Page(page) if page.id == 0 => Child::Node(Box::new(Node::of_page(page)?)),
        Level::Page(page) => Child::Page(page.id),
        Level::Node(_) => return Err(Error::corrupt(0, "a bucket was opened twice")),
    };
    Ok(Tree::new(root, bucket.sequence))
}

/// The items of a bucket that is small enough to live in its parent's leaf: one leaf, a quarter page, nothing nested.
fn inlinable(node: &Node, page_size: usize) -> Option<&[LeafItem]> {
    let Items::Leaf(items) = &node.items else { return None };
    let size = PAGE_HEADER + items.iter().map(Size::size).sum::<usize>();
    (size <= page_size / 4 && items.iter().all(|item| !item.is_bucket())).then_some(items)
}

fn check_value(value: &[u8]) -> Result<(), Error> {
    match value.len() {
        len if len > crate::VALUE_BYTES_MAX => Err(Error::ValueTooLong { len }),
        _ => Ok(()),
    }
}

fn check_key(key: &[u8]) -> Result<(), Error> {
    match key.len() {
        0 => Err(Error::EmptyKey),
        len if len > crate::KEY_BYTES_MAX => Err(Error::KeyTooLong { len }),
        _ => Ok(()),
    }
}

fn grown_len(bytes: u64) -> u64 {
    if bytes <= GROW_BYTES { bytes.next_power_of_two().max(GROW_BYTES_MIN) } else { bytes.next_multiple_of(GROW_BYTES) }
}
