//! What can go wrong: one enum for opening a file, one for working with an open one.

use std::{io, path::PathBuf};

/// Why a file could not be opened. An existing file is never changed by an open that fails.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A system call on the file failed.
    #[error("failed to {op} {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The failed step, as a verb phrase that the path follows: `open`, `read`, `sync the
        /// directory of`.
        op: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// Another process holds the lock, and [`crate::Options::lock_timeout`] has passed.
    #[error("{} is locked by another process; stop it or open the file read-only once it is closed", path.display())]
    Locked {
        /// The locked file.
        path: PathBuf,
    },
    /// The file does not have the bbolt format.
    #[error("{} is not a bbolt file: {why}", path.display())]
    NotBolt {
        /// The file.
        path: PathBuf,
        /// The reason, for the message.
        why: &'static str,
    },
    /// The file has another version of the bbolt format.
    #[error("{} has bbolt format version {found}; this engine reads version 2", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in its meta page; only 2 is supported.
        found: u32,
    },
    /// Neither meta page has a valid checksum and page size, so no state of the file is known.
    #[error("both meta pages of {} are damaged; restore the file from a snapshot", path.display())]
    BothMetasDamaged {
        /// The damaged file.
        path: PathBuf,
    },
    /// [`crate::Options::page_size`] is not a power of two, or out of bounds.
    #[error("page size {found} is not a power of two from {min} to {max}", min = crate::PAGE_SIZE_MIN, max = crate::PAGE_SIZE_MAX)]
    PageSize {
        /// The rejected size in bytes.
        found: usize,
    },
    /// The file is shorter than the state that its meta page describes.
    #[error("{} is cut short: its meta page speaks of {expected} bytes, the file has {found}", path.display())]
    Truncated {
        /// The truncated file.
        path: PathBuf,
        /// Length in bytes that the meta page implies.
        expected: u64,
        /// Length of the file in bytes.
        found: u64,
    },
    /// The search for free pages, which reads every page in use, met a damaged page. Does not occur
    /// in read-only mode.
    #[error("failed to walk the pages of {}", path.display())]
    Walk {
        /// The file.
        path: PathBuf,
        /// The damage.
        source: Error,
    },
}

/// Why an operation on an open file failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A page does not have the expected contents: the file is damaged.
    #[error("page {page} is corrupt: {what}")]
    Corrupt {
        /// Number of the page; for an inline bucket, the page that contains it.
        page: u64,
        /// A description of the damage.
        what: &'static str,
    },
    /// No top-level bucket has this name.
    #[error("bucket {:?} does not exist", String::from_utf8_lossy(name))]
    NoBucket {
        /// The bucket's name.
        name: Vec<u8>,
    },
    /// The operation needs a plain value, and the key holds a nested bucket.
    #[error("key {:?} holds a nested bucket, which cannot be read or written as a value", String::from_utf8_lossy(key))]
    IsBucket {
        /// The key, or for a top-level bucket its name.
        key: Vec<u8>,
    },
    /// The operation needs a bucket, and the key holds a plain value.
    #[error("key {:?} holds a plain value, not a bucket", String::from_utf8_lossy(key))]
    NotBucket {
        /// The key.
        key: Vec<u8>,
    },
    /// The key, or the name of a new bucket, is empty.
    #[error("an empty key cannot be stored")]
    EmptyKey,
    /// The key is longer than [`crate::KEY_BYTES_MAX`].
    #[error("a key of {len} bytes is longer than {max}, the most a bbolt file holds", max = crate::KEY_BYTES_MAX)]
    KeyTooLong {
        /// Length of the key in bytes.
        len: usize,
    },
    /// The value is longer than [`crate::VALUE_BYTES_MAX`].
    #[error("a value of {len} bytes is longer than {max}, the most a bbolt file holds", max = crate::VALUE_BYTES_MAX)]
    ValueTooLong {
        /// Length of the value in bytes.
        len: usize,
    },
    /// The last transaction id is `u64::MAX`, so no further commit is possible. A damaged meta page
    /// with a valid checksum can cause this.
    #[error("all transaction ids are used up; copy the contents into a new file")]
    NoMoreIds,
    /// A write transaction was requested on a file opened with [`crate::Options::read_only`].
    #[error("the file was opened read-only")]
    ReadOnly,
    /// An earlier commit failed while it wrote, so the state on disk is uncertain. Reads still
    /// work; reopen the file to write.
    #[error("an earlier commit failed ({why}); the file must be reopened before it is written again")]
    Poisoned {
        /// The error of that commit.
        why: String,
    },
    /// A system call on the file failed.
    #[error("failed to {op}")]
    Io {
        /// The failed step, as a verb phrase such as `sync pages`.
        op: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// The new file of [`crate::compact`] could not be opened.
    #[error("failed to open the destination")]
    Destination(#[source] Box<OpenError>),
    /// The new file of [`crate::compact`] exists and is not empty.
    #[error("{} already has contents; a copy is only written to a new file", path.display())]
    DestinationExists {
        /// The existing file.
        path: PathBuf,
    },
}

impl Error {
    pub(crate) fn corrupt(page: u64, what: &'static str) -> Error {
        Error::Corrupt { page, what }
    }
}
