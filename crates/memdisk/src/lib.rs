//! Disks that lose power, for tests and the simulator.
//!
//! [`MemDisk`] holds a log in memory: a power cut loses what was not synced, sector by sector, and tears the write in
//! progress. [`FileDisk`] holds a database file and records its changes, from which [`crash`] makes the file after a
//! power cut.

mod contents;
mod disk;
mod file;
mod power;

pub use self::{
    contents::Cut,
    disk::MemDisk,
    file::{FileDisk, Op, Survives, crash},
    power::Power,
};

/// What a disk writes whole or not at all.
pub const SECTOR: usize = 512;

#[cfg(test)]
mod tests;
