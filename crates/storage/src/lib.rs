//! Batched writes and read views on one bbolt-format file; the schema table.
//!
//! A [`Backend`] keeps changes in memory and commits them together every batch interval; a [`View`] reads what is
//! applied so far, in memory and file alike, and never waits for a commit. The [`schema`] is the only code that
//! names buckets and keys.
//!
//! ```
//! use storage::{Backend, Bucket, Options, Read, schema};
//!
//! let dir = harness::tempdir();
//! let backend = Backend::open(&dir.path().join("db"), Options::default())?;
//! let mut batch = backend.write();
//! batch.put(Bucket::Key, schema::RevisionKey::new(2, 0), &b"value"[..]);
//! batch.set_consistent(4, 1); // the raft entry these changes come from
//! drop(batch);
//! assert_eq!(schema::meta::consistent(&backend.view())?, (4, 1));
//! backend.close()?; // commits; dropping alone would lose the last interval, as a crash does
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
pub mod schema;
mod scratch;

pub use backend::{
    Backend, Batch, CommitTimes, DefragError, DefragReport, Disks, Failure, Observer, OpenError, Options, Read,
    ReadOnly, Snapshot, SnapshotError, TakeOverError, View, Visit,
};
pub use schema::{Bucket, RevisionKey, Version};
pub use scratch::Scratch;
