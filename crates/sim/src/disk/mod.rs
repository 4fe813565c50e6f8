//! Disks that crash: what was not synced is lost, sector by sector, and a write may be torn.

mod database;
mod log;

use std::{
    io,
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
};

pub use self::{database::DatabaseDisks, log::LogDisk};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// The electricity of one member, which both its disks need.
#[derive(Debug)]
pub struct Power {
    /// Operations until it is cut; negative for never.
    left: AtomicI64,
    /// How long a sync of the log takes, in microseconds.
    sync_us: AtomicU64,
    /// What syncs have taken since [`Power::take_spent`].
    spent_us: AtomicU64,
}

impl Default for Power {
    fn default() -> Self {
        Power { left: AtomicI64::new(-1), sync_us: AtomicU64::new(0), spent_us: AtomicU64::new(0) }
    }
}

impl Power {
    /// Lets `n` more operations through; the next one is the last, and fails.
    pub fn cut_after(&self, n: u64) {
        self.left.store(n as i64, Ordering::SeqCst);
    }

    pub fn restore(&self) {
        self.left.store(-1, Ordering::SeqCst);
        self.spent_us.store(0, Ordering::SeqCst);
    }

    pub fn is_cut(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
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

    fn spend_sync(&self) {
        self.spent_us.fetch_add(self.sync_us.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Counts an operation. Fails it once the power is cut.
    fn operate(&self) -> io::Result<()> {
        match self.left.load(Ordering::SeqCst) {
            0 => Err(io::Error::other("the power is cut")),
            1.. => {
                self.left.fetch_sub(1, Ordering::SeqCst);
                if self.is_cut() { Err(io::Error::other("the power is cut")) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }
}
