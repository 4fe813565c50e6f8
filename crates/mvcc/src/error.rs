//! What can go wrong with a request, and with opening a store.

use storage::schema::DecodeError;

use crate::Revision;

/// Why a request was not carried out. All but [`Error::Missing`] depend on replicated state alone, so every member
/// gives the same; a missing revision means that this member's file is damaged, and the member must stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("revision {requested} was asked for, but all before {compact_revision} are compacted")]
    Compacted { requested: i64, compact_revision: i64 },
    #[error("revision {requested} was asked for, but the newest is {current}")]
    FutureRevision { requested: i64, current: i64 },
    #[error("keeping the value or lease of a key that does not exist")]
    KeyNotFound,
    #[error("lease {id:x} was named, but does not exist")]
    LeaseNotFound { id: i64 },
    #[error("a transaction with writes was given where only reads may run")]
    NotReadOnly,
    #[error("the index names revision {}.{}, but the file does not hold a key and value there", revision.main, revision.sub)]
    Missing { revision: Revision },
}

/// Why a file's contents could not be taken in.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("failed to read how far compaction is")]
    Meta(#[from] DecodeError),
    #[error("bucket key holds a key that is not a revision: {key:02x?}")]
    RevisionKey { key: Vec<u8> },
    #[error("bucket key holds under revision {main}.{sub} a value that is not an mvccpb.KeyValue with a key")]
    KeyValue { main: i64, sub: i64 },
    #[error("bucket key holds sub-revision {sub} of revision {main}; the largest that is read is {}", u32::MAX)]
    SubRevision { main: i64, sub: i64 },
    #[error(
        "the file that was taken over ends at revision {found} and is compacted at {found_compact}, but the store is at \
         {current} and compacted at {current_compact}: a file from the leader is never behind"
    )]
    Behind { found: i64, found_compact: i64, current: i64, current_compact: i64 },
    #[error(transparent)]
    Backend(#[from] storage::Failure),
}
