//! What can go wrong with a log. Texts begin as etcd's do, then name the file and the way out.

use std::{
    io,
    path::{Path, PathBuf},
};

/// The position of a record in a log, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The segment file.
    pub path: PathBuf,
    /// Offset in bytes of the record's length word in the file.
    pub offset: u64,
    /// 0-based number of the record in the file.
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

/// Why an operation on the log failed. The texts begin with those of etcd.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation on a file or directory failed.
    #[error("wal: cannot {action} {}", path.display())]
    Io {
        /// The failed step, as a verb that the path follows, such as `open` or `rename to`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A log was to be created in a directory that contains one.
    #[error("wal: {} already holds a log; open it instead of creating it", dir.display())]
    Exists {
        /// The directory.
        dir: PathBuf,
    },
    /// A log was to be created in a directory that contains files of other kinds.
    #[error("wal: {} has no log but holds '{name}'; move it away, a new log needs an empty directory", dir.display())]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
        /// Name of one such file.
        name: String,
    },
    /// The directory contains no segment (etcd's `ErrFileNotFound`).
    #[error("wal: file not found: {} holds no file named <seq>-<index>.wal; check --data-dir and --wal-dir", dir.display())]
    FileNotFound {
        /// The directory.
        dir: PathBuf,
    },
    /// Every segment begins after the requested snapshot: those before have been removed.
    #[error("wal: file not found which matches the snapshot index '{index}' in {}; older segments were removed, restore this member from a snapshot", dir.display())]
    NoSegmentFor {
        /// The directory of the log.
        dir: PathBuf,
        /// Raft index of the snapshot.
        index: u64,
    },
    /// A segment is missing between two others.
    #[error("wal: file sequence numbers (starting from {start}) do not increase continuously in {}: after {before} comes {after}; put the missing file back or restore this member from a snapshot", dir.display())]
    SequenceGap {
        /// The directory of the log.
        dir: PathBuf,
        /// Position in the sorted list of segments from which on the sequence was checked, as in
        /// etcd's message.
        start: usize,
        /// Sequence number of the last segment before the gap.
        before: u64,
        /// Sequence number of the first segment after the gap.
        after: u64,
    },
    /// Another process, such as an etcd or Lockgate member on the directory, holds the lock on a
    /// segment.
    #[error("wal: file already locked: {}; another etcd or lockgate process runs on this directory, stop it first", path.display())]
    Locked {
        /// The locked file.
        path: PathBuf,
    },
    /// Two segments have different metadata records (etcd's `ErrMetadataConflict`).
    #[error(
        "wal: conflicting metadata found {place}; segments of different members or clusters are mixed in one directory"
    )]
    MetadataConflict {
        /// The second record.
        place: Place,
    },
    /// The checksum of a record is wrong (etcd's `ErrCRCMismatch`), and no torn write explains
    /// that.
    #[error("walpb: crc mismatch: expected: {expected:x} computed: {computed:x}: {place}; {DAMAGED}")]
    CrcMismatch {
        /// The record.
        place: Place,
        /// The checksum that the record contains.
        expected: u32,
        /// The checksum of the record's data and all records before it.
        computed: u32,
    },
    /// A record cannot be what was written, and no torn write explains that.
    #[error("wal: corrupt record {place}: {what}; {DAMAGED}")]
    Corrupt {
        /// The record.
        place: Place,
        /// A description of the damage.
        what: String,
    },
    /// A record has a valid checksum and an unknown type.
    #[error("wal: unexpected block type {kind} {place}; written by a newer version or damaged")]
    UnexpectedType {
        /// The record.
        place: Place,
        /// The type number in the record.
        kind: u64,
    },
    /// A segment ends with an incomplete record although another segment follows. Only the last
    /// segment may end so, after a crash.
    #[error("wal: unexpected EOF {place}: {what}, and a later segment follows; {DAMAGED}")]
    TornMiddle {
        /// The incomplete record.
        place: Place,
        /// A description of what is missing.
        what: String,
    },
    /// Entries are missing between the snapshot and an entry (etcd's `ErrSliceOutOfRange`).
    #[error(
        "wal: slice bounds out of range, snapshot[Index: {snapshot_index}, Term: {snapshot_term}], current entry[Index: {index}, Term: {term}], len(ents): {entries}: {place}; entries are missing, restore this member from a snapshot"
    )]
    SliceOutOfRange {
        /// The record of the entry.
        place: Place,
        /// Raft index of the snapshot that the log was opened at.
        snapshot_index: u64,
        /// Raft term of that snapshot.
        snapshot_term: u64,
        /// Raft index of the entry.
        index: u64,
        /// Raft term of the entry.
        term: u64,
        /// Number of entries read after the snapshot before this one.
        entries: usize,
    },
    /// The log has a snapshot record of the requested index with another term (etcd's
    /// `ErrSnapshotMismatch`).
    #[error(
        "wal: snapshot mismatch: the log has term {found} for the snapshot at index {index}, not {wanted} {place}; snapshot file and log are of different histories"
    )]
    SnapshotMismatch {
        /// The snapshot record.
        place: Place,
        /// Raft index of the snapshot.
        index: u64,
        /// The term requested.
        wanted: u64,
        /// The term in the log.
        found: u64,
    },
    /// The log has no record of the requested snapshot (etcd's `ErrSnapshotNotFound`).
    #[error("wal: snapshot not found: {} has no record of the snapshot at index {index}, term {term}; open it at a snapshot that the log lists", dir.display())]
    SnapshotNotFound {
        /// The directory of the log.
        dir: PathBuf,
        /// Raft index of the snapshot.
        index: u64,
        /// Raft term of the snapshot.
        term: u64,
    },
    /// The last hard state has a commit index after the last entry. Reported by
    /// [`crate::Wal::open`] only.
    #[error("wal: tocommit({commit}) is out of range [lastIndex({last})] in {}: entries that were committed are missing; {DAMAGED}", dir.display())]
    CommitBeyondLog {
        /// The directory of the log.
        dir: PathBuf,
        /// The commit index.
        commit: u64,
        /// Raft index of the last entry, or of the snapshot if no entry follows it.
        last: u64,
    },
    /// The log changed while it was read or opened.
    #[error("wal: {} changed while it was read; stop every process that works on it and try again", path.display())]
    Changed {
        /// The segment or the directory of the log.
        path: PathBuf,
    },
    /// The caller passed a snapshot record that lacks a required field. Nothing was written.
    #[error("wal: refused to write a snapshot record: {what}")]
    InvalidSnapshot {
        /// The missing field, in the words of etcd's `walpb`.
        what: &'static str,
    },
    /// The caller passed an entry that could not be read back. Nothing of the call was written.
    #[error("wal: refused to append entry {index} of term {term} after {last}: {what}")]
    InvalidEntry {
        /// Raft index of the entry.
        index: u64,
        /// Raft term of the entry.
        term: u64,
        /// Raft index of the entry or snapshot before it.
        last: u64,
        /// The rule that the entry breaks.
        what: &'static str,
    },
    /// The caller passed a hard state of term 0, or one whose term or commit index is lower than
    /// before. Nothing of the call was written.
    #[error(
        "wal: refused to append a hard state of term {term}, commit {commit} after term {term_before}, commit {commit_before}: neither ever falls"
    )]
    InvalidState {
        /// Term of the new state.
        term: u64,
        /// Commit index of the new state.
        commit: u64,
        /// Term of the state before.
        term_before: u64,
        /// Commit index of the state before.
        commit_before: u64,
    },
    /// An earlier write or sync failed, so that the state on disk is uncertain. Every later
    /// operation that writes fails with this error.
    #[error("wal: an earlier write or sync of {} failed, so nothing more is written; restart the member", path.display())]
    Poisoned {
        /// The segment that was written to, or the directory if the next segment could not be
        /// prepared.
        path: PathBuf,
    },
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
