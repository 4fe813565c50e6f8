//! etcd's write-ahead log: segments, records, repair; and the `.snap` files beside it.
//!
//! Real etcd 3.5 to 3.7 reads what this crate writes and the reverse. The bytes are drawn in `docs/wal-format.md`.
//!
//! Invariants:
//! 1. What [`Wal::sync`] returned for is read back by every later [`Wal::open`], or open fails by name. The same holds
//!    for what an open returned: it is on disk by then, not only in the page cache.
//! 2. A write ends at a 4096-byte page or at the end of a record, so a torn sector is a zero sector.
//! 3. After one failed write or sync a [`Wal`] does nothing more: the kernel may have dropped the dirty pages, so a
//!    second sync that succeeds would prove nothing.
#![warn(missing_docs)]

pub mod disk;
pub mod snapfile;

mod check;
mod decoder;
mod durable;
mod encoder;
mod error;
mod frame;
mod metadata;
mod open;
mod pipeline;
mod read;
mod repair;
mod segment;
mod wal;

pub use disk::{Disk, DiskFile, OpenMode, OsDisk};
pub use error::Error;
pub use metadata::Metadata;
pub use read::{EntryPlaces, ReadAll};
pub use segment::{purge, purge_on};
pub use wal::{Options, Saved, Wal};
