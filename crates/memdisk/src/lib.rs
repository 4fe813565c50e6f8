//! A disk in memory for a log: what was not synced is lost when the power is cut, sector by sector, and the write under
//! which it goes is torn.

mod contents;
mod disk;
mod power;

pub use self::{contents::Cut, disk::MemDisk, power::Power};

/// What a disk writes whole or not at all.
pub const SECTOR: usize = 512;

#[cfg(test)]
mod tests;
