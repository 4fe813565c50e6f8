//! The bytes of a file, and which of them a power cut may take.

use std::collections::BTreeSet;

use crate::{SECTOR, SyncFault};

/// What becomes of blocks that a file no longer has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cut {
    /// They are freed in the journal: what was there does not come back under later writes. As file systems do.
    #[default]
    Frees,
    /// What was there may be there again if the file grows and what was written then is lost. Worse than any real one.
    MayReturn,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    pub now: Vec<u8>,
    /// As of the last sync.
    durable: Vec<u8>,
    /// Where they may differ and a sync writes.
    dirty: Option<(usize, usize)>,
    /// Sectors that a failed sync dropped: they differ, and no sync writes them until they are written again.
    lost: BTreeSet<usize>,
}

impl Contents {
    pub(crate) fn synced(bytes: Vec<u8>) -> Contents {
        Contents { now: bytes.clone(), durable: bytes, ..Contents::default() }
    }

    fn touch(&mut self, from: usize, to: usize) {
        let (a, b) = self.dirty.unwrap_or((from, to));
        self.dirty = Some((a.min(from), b.max(to)));
    }

    pub(crate) fn resize(&mut self, size: usize, cut: Cut) {
        let old = self.now.len();
        self.now.resize(size, 0);
        if cut == Cut::Frees {
            self.durable.truncate(size);
        }
        self.lost.retain(|sector| sector * SECTOR < size);
        self.touch(old.min(size), old.max(size));
    }

    pub(crate) fn write(&mut self, bytes: &[u8], from: usize, cut: Cut) {
        let end = from + bytes.len();
        if self.now.len() < end {
            self.resize(end, cut);
        }
        self.now[from..end].copy_from_slice(bytes);
        // A sector is written whole, with what the cache holds of it.
        let sectors = from / SECTOR..end.div_ceil(SECTOR);
        self.lost.retain(|sector| !sectors.contains(sector));
        self.touch(sectors.start * SECTOR, sectors.end * SECTOR);
    }

    pub(crate) fn sync(&mut self) {
        let Some((from, to)) = self.dirty.take() else { return };
        self.durable.resize(self.now.len(), 0);
        let to = to.min(self.now.len());
        if from >= to {
            return;
        }
        if self.lost.is_empty() {
            self.durable[from..to].copy_from_slice(&self.now[from..to]);
            return;
        }
        for (start, end) in sectors(from, to, self.now.len()) {
            if !self.lost.contains(&(start / SECTOR)) {
                self.durable[start..end].copy_from_slice(&self.now[start..end]);
            }
        }
    }

    /// A sync that reports an error.
    pub(crate) fn fail_sync(&mut self, fault: SyncFault) {
        let (SyncFault::Drops { .. }, Some((from, to))) = (fault, self.dirty) else { return };
        for (start, _) in sectors(from, to, self.now.len()) {
            if fault.loses(start) && !self.is_durable(start) {
                self.lost.insert(start / SECTOR);
            }
        }
        self.sync();
    }

    /// Sizes are journaled by the file system; a sector of a longer file that was not written is zero.
    pub(crate) fn crash(&mut self, keep: &mut dyn FnMut() -> bool) {
        let (from, to) = self.dirty.unwrap_or_default();
        for (start, end) in sectors(from, to, self.now.len()) {
            if !self.is_durable(start) && !self.lost.contains(&(start / SECTOR)) && !keep() {
                self.revert(start, end);
            }
        }
        for sector in std::mem::take(&mut self.lost) {
            let start = sector * SECTOR;
            self.revert(start, (start + SECTOR).min(self.now.len()));
        }
        self.sync();
    }

    /// Whether the disk has the sector at `start`.
    fn is_durable(&self, start: usize) -> bool {
        let end = (start + SECTOR).min(self.now.len());
        (start..end).all(|at| self.durable.get(at).copied().unwrap_or(0) == self.now[at])
    }

    fn revert(&mut self, start: usize, end: usize) {
        for at in start..end {
            self.now[at] = self.durable.get(at).copied().unwrap_or(0);
        }
    }
}

/// The whole sectors from `from` up to `to`, within a file of `size` bytes.
fn sectors(from: usize, to: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    (from / SECTOR * SECTOR..to.min(size)).step_by(SECTOR).map(move |start| (start, (start + SECTOR).min(size)))
}
