//! A copy of one state as a stream: two meta pages drawn for it, then the file's pages as they are.

use std::io::{self, Read};

use crate::{
    meta::{Meta, NO_FREELIST},
    tx_read::ReadTx,
};

/// A reader that yields a database file with one committed state. It also copies the pages that the
/// state does not use, with whatever they contain.
pub struct Copy {
    tx: ReadTx,
    /// The two meta pages.
    head: Vec<u8>,
    at: u64,
}

impl Copy {
    pub(crate) fn new(tx: ReadTx) -> Copy {
        // A stored free list may be overwritten while the copy runs, and whoever opens the copy can do without.
        let meta = Meta { freelist: NO_FREELIST, ..tx.view().meta };
        let older = Meta { txid: meta.txid.saturating_sub(1), ..meta };
        let mut head = meta.page(0);
        head.extend(older.page(1));
        Copy { tx, head, at: 0 }
    }

    /// Length of the whole copy in bytes, however much has been read.
    pub fn len(&self) -> u64 {
        self.tx.size()
    }

    /// Always false: even an empty database has four pages.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The number of bytes that have not been read yet.
    pub fn remaining(&self) -> u64 {
        self.len() - self.at
    }

    /// The read transaction whose state is copied.
    pub fn tx(&self) -> &ReadTx {
        &self.tx
    }
}

impl Read for Copy {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = (buf.len() as u64).min(self.remaining()) as usize;
        let head = self.head.get(self.at as usize..).unwrap_or_default();
        let n = if head.is_empty() {
            // Read from the file rather than the map, so that a copy does not fill this process with mapped pages.
            self.tx.view().db.disk.read_exact_at(&mut buf[..n], self.at)?;
            n
        } else {
            let n = n.min(head.len());
            buf[..n].copy_from_slice(&head[..n]);
            n
        };
        self.at += n as u64;
        Ok(n)
    }
}
