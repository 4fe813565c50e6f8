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

/// A view of one committed state. It never waits for the writer, nor the writer for it, but pages it can see are
/// not reused while it (or a clone) is alive, so the file grows under a view held for long.
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

    pub fn bucket(&self, name: &[u8]) -> Result<Option<Bucket<'_>>, Error> {
        self.root()?.bucket(name)
    }

    /// Names of all buckets, in order.
    pub fn buckets(&self) -> Result<Vec<Vec<u8>>, Error> {
        bucket_names(self.root()?)
    }

    /// Number of the commit this view shows.
    pub fn txid(&self) -> u64 {
        self.inner.meta.txid
    }

    /// Bytes of the file that this state spans, free pages included.
    pub fn size(&self) -> u64 {
        self.inner.meta.bytes()
    }

    /// Writes a file with exactly this state and returns its length, which is [`ReadTx::size`].
    pub fn write_to(&self, to: &mut impl Write) -> io::Result<u64> {
        io::copy(&mut self.copy(), to)
    }

    /// The bytes [`ReadTx::write_to`] writes, to be pulled piece by piece.
    pub fn copy(&self) -> Copy {
        Copy::new(self.clone())
    }

    /// Everything wrong with this state; empty if it is sound.
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
