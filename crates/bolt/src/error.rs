//! What can go wrong: one enum for opening a file, one for working with an open one.

use std::{io, path::PathBuf};

/// Why a file could not be opened. Nothing in an existing file is changed when one of these is returned.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("failed to {op} {}", path.display())]
    Io { path: PathBuf, op: &'static str, source: io::Error },
    #[error("{} is locked by another process; stop it or open the file read-only once it is closed", path.display())]
    Locked { path: PathBuf },
    #[error("{} is not a bbolt file: {why}", path.display())]
    NotBolt { path: PathBuf, why: &'static str },
    #[error("{} has bbolt format version {found}; this engine reads version 2", path.display())]
    Version { path: PathBuf, found: u32 },
    #[error("both meta pages of {} are damaged; restore the file from a snapshot", path.display())]
    BothMetasDamaged { path: PathBuf },
    #[error("page size {found} is not a power of two from {min} to {max}", min = crate::PAGE_SIZE_MIN, max = crate::PAGE_SIZE_MAX)]
    PageSize { found: usize },
    #[error("{} is cut short: its meta page speaks of {expected} bytes, the file has {found}", path.display())]
    Truncated { path: PathBuf, expected: u64, found: u64 },
    #[error("failed to walk the pages of {}", path.display())]
    Walk { path: PathBuf, source: Error },
}

/// Why an operation on an open file failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("page {page} is corrupt: {what}")]
    Corrupt { page: u64, what: &'static str },
    #[error("bucket {:?} does not exist", String::from_utf8_lossy(name))]
    NoBucket { name: Vec<u8> },
    #[error("key {:?} holds a nested bucket, which cannot be read or written as a value", String::from_utf8_lossy(key))]
    IsBucket { key: Vec<u8> },
    #[error("key {:?} holds a plain value, not a bucket", String::from_utf8_lossy(key))]
    NotBucket { key: Vec<u8> },
    #[error("an empty key cannot be stored")]
    EmptyKey,
    #[error("a key of {len} bytes is longer than {max}, the most a bbolt file holds", max = crate::KEY_BYTES_MAX)]
    KeyTooLong { len: usize },
    #[error("a value of {len} bytes is longer than {max}, the most a bbolt file holds", max = crate::VALUE_BYTES_MAX)]
    ValueTooLong { len: usize },
    #[error("all transaction ids are used up; copy the contents into a new file")]
    NoMoreIds,
    #[error("the file was opened read-only")]
    ReadOnly,
    #[error("an earlier commit failed ({why}); the file must be reopened before it is written again")]
    Poisoned { why: String },
    #[error("failed to {op}")]
    Io { op: &'static str, source: io::Error },
    #[error("failed to open the destination")]
    Destination(#[source] Box<OpenError>),
    #[error("{} already has contents; a copy is only written to a new file", path.display())]
    DestinationExists { path: PathBuf },
}

impl Error {
    pub(crate) fn corrupt(page: u64, what: &'static str) -> Error {
        Error::Corrupt { page, what }
    }
}
