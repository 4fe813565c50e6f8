//! Revisions, key index, ranges, transactions, watches, compaction, hashes.
//!
//! [`Store`] is the way in. It has no clock, no threads and no I/O but the [`storage::Backend`] it is given: what runs
//! in the background is handed out as steps ([`CompactionJob`], [`WatchStream::next`]) for the owner to call.
//!
//! Invariants:
//! - A revision is published whole: readers and watchers see all of a request's changes or none.
//! - Stored bytes depend on requests alone, so equal histories give equal [`HashKv`]s, here and in real etcd.
//! - A request fails before it changes anything, and on every member alike.
//! - A watcher gets every event of its keys from its start revision on, once and in order, or is told that they are
//!   compacted.

pub mod check;
mod compaction;
mod contents;
mod error;
mod file_hash;
mod hash;
mod hints;
mod index;
mod key_index;
mod key_range;
mod leaf;
mod range;
mod raw_kv;
mod reload;
mod replay;
mod restore;
mod revision;
mod stats;
mod store;
mod txn;
mod values;
mod watch;
mod write_txn;

pub use compaction::{CompactionJob, Progress};
pub use error::{Error, OpenError};
pub use file_hash::{FileHashError, hash_file, hash_file_within};
pub use hash::HashKv;
pub use key_range::{End, KeyRange};
pub use range::{Count, RangeResult, default_order, has_revision_filter};
pub use raw_kv::{KvFields, RawKvs};
pub use replay::each_leased;
pub use revision::Revision;
pub use stats::Stats;
pub use store::{Options, Store};
pub use txn::{is_read_only, is_serializable};
pub use watch::{Created, Filters, Notify, WatchError, WatchItem, WatchSpec, WatchStream};
pub use write_txn::{Leases, WriteTxn};
