//! The names of the failpoints of etcd 3.7.3 and bbolt 1.5.0, and which of them are in this
//! program. The points `lower…` and `migrate…` exist in Lockgate only.

/// Whether a point is in this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The program has a `failpoint!` with this name, and fault tools may choose it.
    Here,
    /// The program has no such point, for this reason. [`crate::list`] omits the name, because a
    /// tool would wait for it in vain.
    Absent(&'static str),
}

use Place::{Absent, Here};

/// All known points, sorted by name. To add a point to the program, mark its name [`Place::Here`]:
/// until then `failpoint!` with the name does not compile.
pub const NAMES: &[(&str, Place)] = &[
    ("afterCommit", Here),
    ("afterIsMemberExist", Absent("whether a member is a learner is asked once; nothing lies in between")),
    ("afterStartDBTxn", Here),
    ("afterWritebackBuf", Absent("changes are visible at once; there is no buffer to write back")),
    ("applyAfterOpenSnapshot", Here),
    ("applyBeforeOpenSnapshot", Here),
    ("beforeApplyOneConfChange", Here),
    ("beforeApplyOneEntryNormal", Here),
    ("beforeBucketPut", Here),
    ("beforeCheckpointInLeaseRenew", Here),
    ("beforeCommit", Here),
    ("beforeLookupWhenForwardLeaseTimeToLive", Here),
    ("beforeLookupWhenLeaseTimeToLive", Here),
    ("beforePublishing", Here),
    ("beforeRangeStreamChunk", Here),
    ("beforeSendWatchResponse", Here),
    ("beforeServeHTTPLeaseRenew", Here),
    ("beforeStartDBTxn", Here),
    ("beforeSyncDataPages", Here),
    ("beforeSyncMetaPage", Here),
    ("beforeWriteMetaError", Here),
    ("beforeWritebackBuf", Absent("changes are visible at once; there is no buffer to write back")),
    ("commitAfterPreCommitHook", Absent("an entry's index is in its own batch; no hook runs before a commit")),
    ("commitBeforePreCommitHook", Absent("an entry's index is in its own batch; no hook runs before a commit")),
    ("compactAfterAcquiredBatchTxLock", Here),
    ("compactAfterCommitBatch", Here),
    ("compactAfterCommitScheduledCompact", Here),
    ("compactAfterSetFinishedCompact", Here),
    ("compactBeforeCommitBatch", Here),
    ("compactBeforeCommitScheduledCompact", Here),
    ("compactBeforeSetFinishedCompact", Here),
    ("defragBeforeCopy", Here),
    ("defragBeforeRename", Here),
    ("defragOpenFileError", Here),
    ("defragdbFail", Here),
    ("lackOfDiskSpace", Here),
    ("lowerAfterSnapshot", Here),
    ("lowerAfterStorageVersion", Here),
    ("lowerBeforeSnapshot", Here),
    ("lowerBeforeStorageVersion", Here),
    ("mapError", Here),
    ("migrateAfterApply", Here),
    ("migrateAfterCopy", Here),
    ("migrateAfterDatabase", Here),
    ("migrateAfterExchange", Here),
    ("migrateAfterJournal", Here),
    ("migrateAfterLog", Here),
    ("migrateAfterNewLog", Here),
    ("migrateAfterNewSnap", Here),
    ("migrateAfterOldLog", Here),
    ("migrateAfterOldSnap", Here),
    ("migrateAfterPark", Here),
    ("migrateAfterSchema", Here),
    ("migrateAfterStaging", Here),
    ("migrateBeforeCleanUp", Here),
    ("migrateBeforeSwap", Here),
    ("migrateNoExchange", Here),
    ("mlockError", Here),
    ("munlockError", Absent("memory is unlocked with its map, which cannot fail")),
    ("raftAfterApplySnap", Here),
    ("raftAfterSave", Here),
    ("raftAfterSaveSnap", Here),
    ("raftAfterWALRelease", Here),
    ("raftBeforeAdvance", Here),
    ("raftBeforeApplySnap", Here),
    ("raftBeforeFollowerSend", Here),
    ("raftBeforeLeaderSend", Here),
    ("raftBeforeSave", Here),
    ("raftBeforeSaveSnap", Here),
    ("raftBeforeWALSaveSnaphot", Here),
    ("raftDropHeartbeat", Here),
    ("resizeFileError", Here),
    ("snapDBDirSyncError", Here),
    ("snapDBRenameBeforeDirSync", Here),
    ("unmapError", Absent("a map is given back when its last reader ends, where nobody could be told")),
    ("walAfterSync", Here),
    ("walBeforeSync", Here),
];

/// Returns the position of a point in [`NAMES`]. `failpoint!` evaluates it at compile time.
///
/// # Panics
/// If [`NAMES`] lacks the name or does not mark it [`Place::Here`].
pub const fn position(name: &str) -> usize {
    let mut at = 0;
    while at < NAMES.len() {
        if equal(NAMES[at].0.as_bytes(), name.as_bytes()) {
            assert!(matches!(NAMES[at].1, Here), "mark this point as Here in failpoint/src/names.rs");
            return at;
        }
        at += 1;
    }
    panic!("no failpoint has this name; add it to failpoint/src/names.rs");
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
