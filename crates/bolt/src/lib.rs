//! The bbolt file format: pages, buckets, transactions.
//!
//! ```
//! # let dir = harness::tempdir();
//! # let path = dir.path().join("db");
//! let db = bolt::Db::open(&path, bolt::Options::default())?;
//! let mut tx = db.begin_write()?;
//! tx.create_bucket_if_missing(b"key")?.put(b"a", b"1")?;
//! tx.commit()?;
//!
//! let view = db.begin_read();
//! let bucket = view.bucket(b"key")?.expect("just made");
//! assert_eq!(bucket.get(b"a")?, Some(&b"1"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One writer at a time, any number of readers, none waiting for the other. A commit writes new pages beside the old
//! ones, syncs them, then switches to them by writing one of two meta pages, and syncs again: after a crash the file
//! holds the state before or the state after, whole. The free list is never stored; it is rebuilt when a file is
//! opened. See `docs/storage-format.md` for the bytes.
#![warn(missing_docs)]

mod check;
mod compact;
mod copy;
mod cursor;
mod db;
mod disk;
mod error;
mod freelist;
mod meta;
mod node;
mod open;
mod page;
mod scan;
mod spill;
mod tree;
mod tx_read;
mod tx_write;

pub use check::{PROBLEMS_MAX, Problem};
pub use compact::compact;
pub use copy::Copy;
pub use cursor::{Bucket, Cursor, Pair, Range};
pub use db::{Db, Options, Stats};
pub use disk::{Disk, Map};
pub use error::{Error, OpenError};
pub use tx_read::ReadTx;
pub use tx_write::{BucketMut, CommitStats, WriteTx};

/// The longest key in bytes, as in bbolt (`MaxKeySize`).
pub const KEY_BYTES_MAX: usize = 32768;
/// The longest value in bytes, as in bbolt (`MaxValueSize`).
pub const VALUE_BYTES_MAX: usize = (1 << 31) - 2;
/// The smallest page size of a new file, in bytes. Page sizes are powers of two.
pub const PAGE_SIZE_MIN: usize = 4096;
/// The largest page size in bytes, of new and of existing files.
pub const PAGE_SIZE_MAX: usize = 65536;
/// The fraction of a page that a split fills, unless [`BucketMut::set_fill`] sets another.
pub const FILL_DEFAULT: f32 = 0.5;
pub(crate) const FILL_MIN: f32 = 0.1;
