//! A read transaction: one committed state, seen unchanged for as long as it is held.

use std::{
    io::{self, Write},
    sync::Arc,
};

use crate::{
    check::{self, Problem},
    copy::Copy,
    cursor::Bucket,
    db::Inner,
    disk::Map,
    error::Error,
    meta::Meta,
    node::{Level, Source},
    page::Pages,
};

/// A view of one committed state. Reads and the writer never wait for each other. The pages of the
/// view are not reused while it or a clone of it is alive, so the file grows during a long read.
#[derive(Clone)]
pub struct ReadTx {
    inner: Arc<View>,
}

pub(crate) struct View {
    pub db: Arc<Inner>,
    pub map: Arc<Map>,
    pub meta: Meta,
}

impl Drop for View {
    fn drop(&mut self) {
        self.db.end_read(self.meta.txid);
    }
}

impl ReadTx {
    pub(crate) fn new(view: View) -> ReadTx {
        ReadTx { inner: Arc::new(view) }
    }

    pub(crate) fn view(&self) -> &View {
        &self.inner
    }

    pub(crate) fn pages(&self) -> Pages<'_> {
        let meta = &self.inner.meta;
        // SAFETY: the file covers every committed high water mark and is never made shorter; pages this state
        // reaches are not written while the view is registered.
        Pages { data: unsafe { self.inner.map.bytes(meta.bytes() as usize) }, page_size: meta.page_size as usize }
    }

    /// The bucket of all buckets.
    pub(crate) fn root(&self) -> Result<Bucket<'_>, Error> {
        let pages = self.pages();
        let root = Level::Page(pages.tree_page(self.inner.meta.root)?);
        Ok(Bucket { source: Source::of_pages(pages), root, sequence: self.inner.meta.sequence })
    }

    /// Returns a top-level bucket, or `None` if there is none with this name.
    pub fn bucket(&self, name: &[u8]) -> Result<Option<Bucket<'_>>, Error> {
        self.root()?.bucket(name)
    }

    /// Names of all top-level buckets, in byte order.
    pub fn buckets(&self) -> Result<Vec<Vec<u8>>, Error> {
        bucket_names(self.root()?)
    }

    /// Id of the transaction that committed this state.
    pub fn txid(&self) -> u64 {
        self.inner.meta.txid
    }

    /// Size in bytes of this state, including free pages.
    pub fn size(&self) -> u64 {
        self.inner.meta.bytes()
    }

    /// Writes a database file with this state to `to`, and returns the number of bytes, which is
    /// [`ReadTx::size`].
    pub fn write_to(&self, to: &mut impl Write) -> io::Result<u64> {
        io::copy(&mut self.copy(), to)
    }

    /// Returns a reader of the bytes that [`ReadTx::write_to`] writes.
    pub fn copy(&self) -> Copy {
        Copy::new(self.clone())
    }

    /// Returns the faults of this state, at most [`crate::PROBLEMS_MAX`]. Empty if it is sound. Reads
    /// every page in use.
    pub fn check(&self) -> Vec<Problem> {
        check::check(self.pages(), &self.inner.meta)
    }
}

pub(crate) fn bucket_names(root: Bucket<'_>) -> Result<Vec<Vec<u8>>, Error> {
    let mut names = Vec::new();
    let mut cursor = root.cursor();
    let mut step = cursor.first()?;
    while let Some((name, _)) = step {
        if cursor.is_bucket() {
            names.push(name.to_vec());
        }
        step = cursor.next()?;
    }
    Ok(names)
}
