//! The bytes of a file, and which of them a power cut may take.

use crate::SECTOR;

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
    /// Where they may differ.
    dirty: Option<(usize, usize)>,
}

impl Contents {
    pub(crate) fn synced(bytes: Vec<u8>) -> Contents {
        Contents { now: bytes.clone(), durable: bytes, dirty: None }
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
        self.touch(old.min(size), old.max(size));
    }

    pub(crate) fn write(&mut self, bytes: &[u8], from: usize, cut: Cut) {
        let end = from + bytes.len();
        if self.now.len() < end {
            self.resize(end, cut);
        }
        self.now[from..end].copy_from_slice(bytes);
        self.touch(from, end);
    }

    pub(crate) fn sync(&mut self) {
        let Some((from, to)) = self.dirty.take() else { return };
        self.durable.resize(self.now.len(), 0);
        let to = to.min(self.now.len());
        if from < to {
            self.durable[from..to].copy_from_slice(&self.now[from..to]);
        }
    }

    /// Sizes are journaled by the file system; a sector of a longer file that was not written is zero.
    pub(crate) fn crash(&mut self, keep: &mut dyn FnMut() -> bool) {
        let Some((from, to)) = self.dirty else { return };
        let to = to.min(self.now.len());
        for start in (from / SECTOR * SECTOR..to).step_by(SECTOR) {
            let end = (start + SECTOR).min(self.now.len());
            let old: Vec<u8> = (start..end).map(|at| self.durable.get(at).copied().unwrap_or(0)).collect();
            if old != self.now[start..end] && !keep() {
                self.now[start..end].copy_from_slice(&old);
            }
        }
        self.sync();
    }
}
