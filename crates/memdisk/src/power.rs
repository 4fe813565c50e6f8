//! The electricity of one machine: what its disks do, counted, until it is cut.

use std::{
    io,
    sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
};

/// All disks of a machine need the same.
#[derive(Debug)]
pub struct Power {
    /// Operations until it is cut; negative for never.
    left: AtomicI64,
    /// Since the beginning.
    operations: AtomicU64,
    /// Bytes of a write that are done when the power goes, or [`SECTORS`].
    torn: AtomicUsize,
    /// How long a sync of the log takes, in microseconds.
    sync_us: AtomicU64,
    /// What syncs have taken since [`Power::take_spent`].
    spent_us: AtomicU64,
}

/// A torn write ends between two sectors, about halfway.
const SECTORS: usize = usize::MAX;

impl Default for Power {
    fn default() -> Self {
        Power {
            left: AtomicI64::new(-1),
            operations: AtomicU64::new(0),
            torn: AtomicUsize::new(SECTORS),
            sync_us: AtomicU64::new(0),
            spent_us: AtomicU64::new(0),
        }
    }
}

impl Power {
    /// The `n`th operation from now fails, and all after it; with 0 the power is off.
    pub fn cut_after(&self, n: u64) {
        self.left.store(n as i64, Ordering::SeqCst);
    }

    /// What is left of a write that fails: so many bytes at the most. Else whole sectors, about half.
    pub fn tear_at(&self, bytes: usize) {
        self.torn.store(bytes.min(SECTORS - 1), Ordering::SeqCst);
    }

    pub fn restore(&self) {
        self.left.store(-1, Ordering::SeqCst);
        self.spent_us.store(0, Ordering::SeqCst);
    }

    pub fn is_cut(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    /// How many there were: writes, syncs, renames and changes of size.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }

    pub fn set_sync_us(&self, us: u64) {
        self.sync_us.store(us, Ordering::SeqCst);
    }

    pub fn spent(&self) -> u64 {
        self.spent_us.load(Ordering::SeqCst)
    }

    pub fn take_spent(&self) -> u64 {
        self.spent_us.swap(0, Ordering::SeqCst)
    }

    pub(crate) fn spend_sync(&self) {
        self.spent_us.fetch_add(self.sync_us.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Counts an operation. Fails it once the power is cut.
    pub fn operate(&self) -> io::Result<()> {
        self.operations.fetch_add(1, Ordering::SeqCst);
        match self.left.load(Ordering::SeqCst) {
            0 => Err(cut()),
            1.. => {
                self.left.fetch_sub(1, Ordering::SeqCst);
                if self.is_cut() { Err(cut()) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// How much of a write is there after the power went in it.
    pub(crate) fn torn(&self, offset: usize, bytes: usize) -> usize {
        match self.torn.load(Ordering::SeqCst) {
            SECTORS => {
                let end = (offset + bytes / 2) / crate::SECTOR * crate::SECTOR;
                end.saturating_sub(offset).min(bytes)
            }
            torn => torn.min(bytes),
        }
    }
}

fn cut() -> io::Error {
    io::Error::other("the power is cut")
}
