//! Syncs that fail once while the machine keeps running.

use std::sync::{Mutex, PoisonError};

use crate::SECTOR;

/// The state of unsynced pages after a failed sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncFault {
    /// The pages stay dirty: the next sync writes them.
    Keeps,
    /// The pages are marked clean, as ext4 and XFS do: reads return them from the cache, but no later sync writes them.
    /// Bit `n % 64` of `lost` says whether sector `n` is missing from the disk. A page is tracked by sector, because
    /// XFS with small blocks writes less than a page.
    Drops { lost: u64 },
}

impl SyncFault {
    /// Whether the disk lacks the sector at `offset` after a failed sync that dropped its page.
    pub(crate) fn loses(self, offset: usize) -> bool {
        matches!(self, SyncFault::Drops { lost } if lost >> (offset / SECTOR % 64) & 1 == 1)
    }
}

/// The next sync that fails, of all files of a disk.
#[derive(Debug, Default)]
pub(crate) struct NextFault(Mutex<Option<(u64, SyncFault)>>);

impl NextFault {
    /// Lets `syncs` more syncs succeed and fails the one after them.
    pub(crate) fn set(&self, syncs: u64, fault: SyncFault) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((syncs, fault));
    }

    /// Counts a sync. Returns its fault if it is the one to fail.
    pub(crate) fn take(&self) -> Option<SyncFault> {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *next {
            Some((0, _)) => next.take().map(|(_, fault)| fault),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    }
}
