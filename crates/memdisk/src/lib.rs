//! Disks that lose power, for tests and the simulator.
//!
//! [`MemDisk`] holds a log in memory: a power cut loses what was not synced, sector by sector, and tears the write in
//! progress. [`FileDisk`] holds a database file and records its changes, from which [`crash`] makes the file after a
//! power cut.
//!
//! Both keep the page cache apart from the disk: a process that dies and restarts reads its unsynced writes
//! ([`Power::restore`], [`FileDisk::restarted`]), and a sync can fail once with a [`SyncFault`].

mod contents;
mod disk;
mod file;
mod power;
mod sync_fault;

pub use self::{
    contents::Cut,
    disk::MemDisk,
    file::{FileDisk, Op, Survives, crash},
    power::Power,
    sync_fault::SyncFault,
};

/// What a disk writes whole or not at all.
pub const SECTOR: usize = 512;

#[cfg(test)]
mod tests;
