//! What can go wrong with a log. Texts begin as etcd's do, then name the file and the way out.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Where in a log something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    /// Offset of the record's length word in the file.
    pub offset: u64,
    /// Number of the record in the file, from 0.
    pub record: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "in file '{}' at position: {} (record {})", self.path.display(), self.offset, self.record)
    }
}

/// The way out of damage that no crash explains; one text, so that operators find one page about it.
const DAMAGED: &str = "the disk or another program changed synced data; remove this member and add it anew, \
                       or restore it from a snapshot";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("wal: cannot {action} {}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("wal: {} already holds a log; open it instead of creating it", dir.display())]
    Exists { dir: PathBuf },
    #[error("wal: {} has no log but holds '{name}'; move it away, a new log needs an empty directory", dir.display())]
    NotEmpty { dir: PathBuf, name: String },
    #[error("wal: file not found: {} holds no file named <seq>-<index>.wal; check --data-dir and --wal-dir", dir.display())]
    FileNotFound { dir: PathBuf },
    #[error("wal: file not found which matches the snapshot index '{index}' in {}; older segments were removed, restore this member from a snapshot", dir.display())]
    NoSegmentFor { dir: PathBuf, index: u64 },
    #[error("wal: file sequence numbers (starting from {start}) do not increase continuously in {}: after {before} comes {after}; put the missing file back or restore this member from a snapshot", dir.display())]
    SequenceGap { dir: PathBuf, start: usize, before: u64, after: u64 },
    #[error("wal: file already locked: {}; another etcd or lockgate process runs on this directory, stop it first", path.display())]
    Locked { path: PathBuf },
    #[error(
        "wal: conflicting metadata found {place}; segments of different members or clusters are mixed in one directory"
    )]
    MetadataConflict { place: Place },
    #[error("walpb: crc mismatch: expected: {expected:x} computed: {computed:x}: {place}; {DAMAGED}")]
    CrcMismatch { place: Place, expected: u32, computed: u32 },
    #[error("wal: corrupt record {place}: {what}; {DAMAGED}")]
    Corrupt { place: Place, what: String },
    #[error("wal: unexpected block type {kind} {place}; written by a newer version or damaged")]
    UnexpectedType { place: Place, kind: u64 },
    #[error("wal: unexpected EOF {place}: {what}, and a later segment follows; {DAMAGED}")]
    TornMiddle { place: Place, what: String },
    #[error(
        "wal: slice bounds out of range, snapshot[Index: {snapshot_index}, Term: {snapshot_term}], current entry[Index: {index}, Term: {term}], len(ents): {entries}: {place}; entries are missing, restore this member from a snapshot"
    )]
    SliceOutOfRange { place: Place, snapshot_index: u64, snapshot_term: u64, index: u64, term: u64, entries: usize },
    #[error(
        "wal: snapshot mismatch: the log has term {found} for the snapshot at index {index}, not {wanted} {place}; snapshot file and log are of different histories"
    )]
    SnapshotMismatch { place: Place, index: u64, wanted: u64, found: u64 },
    #[error("wal: snapshot not found: {} has no record of the snapshot at index {index}, term {term}; open it at a snapshot that the log lists", dir.display())]
    SnapshotNotFound { dir: PathBuf, index: u64, term: u64 },
    #[error("wal: tocommit({commit}) is out of range [lastIndex({last})] in {}: entries that were committed are missing; {DAMAGED}", dir.display())]
    CommitBeyondLog { dir: PathBuf, commit: u64, last: u64 },
    #[error("wal: refused to write a snapshot record: {what}")]
    InvalidSnapshot { what: &'static str },
    #[error("wal: refused to append entry {index} of term {term} after {last}: {what}")]
    InvalidEntry { index: u64, term: u64, last: u64, what: &'static str },
    #[error(
        "wal: refused to append a hard state of term {term}, commit {commit} after term {term_before}, commit {commit_before}: neither ever falls"
    )]
    InvalidState { term: u64, commit: u64, term_before: u64, commit_before: u64 },
    #[error("wal: an earlier write or sync of {} failed, so nothing more is written; restart the member", path.display())]
    Poisoned { path: PathBuf },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::WouldBlock => Self::Locked { path: path.into() },
            _ => Self::Io { action, path: path.into(), source },
        }
    }

    /// Whether a file vanished under a reader, as when old segments are purged meanwhile.
    pub(crate) fn is_vanished(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
