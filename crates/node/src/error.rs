//! What can go wrong: for one request, and for the node as a whole.

use membership::{ChangeError, NotYet};
use proto::Version;

use crate::apply::IncrementError;

/// Why an applied entry changed nothing. Every member comes to the same result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Mvcc(#[from] mvcc::Error),
    #[error(transparent)]
    Lease(#[from] lease::Error),
    #[error(transparent)]
    Auth(#[from] auth::Error),
    #[error(transparent)]
    Membership(#[from] ChangeError),
    #[error("database space exceeded")]
    NoSpace,
    #[error("corrupt cluster")]
    Corrupt,
    #[error(transparent)]
    Increment(IncrementError),
    #[error("feature {0} is off")]
    FeatureOff(String),
    #[error(transparent)]
    NotYet(Box<NotYet>),
}

/// Why a proposal has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProposeError {
    #[error("request is too large")]
    TooLarge,
    #[error("too many requests")]
    TooManyRequests,
    #[error("request timed out")]
    Timeout,
    #[error("server stopped")]
    Stopped,
    #[error("not leader")]
    NotLeader,
    #[error(transparent)]
    NotYet(Box<NotYet>),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// Why a linearizable read cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("request timed out")]
    Timeout,
    #[error("server stopped")]
    Stopped,
}

/// Why the leadership stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    #[error("not leader")]
    NotLeader,
    #[error("bad leader transferee")]
    BadTransferee,
    #[error("no other member answers")]
    Unhealthy,
    #[error("request timed out")]
    Timeout,
    #[error("server stopped")]
    Stopped,
}

/// Why the node cannot go on. It stops at once: what it would answer could be wrong.
#[derive(Debug, thiserror::Error)]
pub enum FatalError {
    #[error("failed to write the log")]
    Log(#[source] wal::Error),
    #[error("failed to write the database")]
    Backend(#[source] storage::Failure),
    #[error("the {0} thread panicked")]
    Panicked(&'static str),
    #[error("the consensus core failed: {0}")]
    Core(String),
    #[error("the apply thread has ended")]
    ApplyEnded,
    #[error("entry {index} cannot be read: {why}")]
    BadEntry { index: u64, why: String },
    #[error("entry {index} cannot be applied, since the database is damaged: {what}; restore a snapshot")]
    Damaged { index: u64, what: String },
    #[error("entry {index} holds a password, and there is no random salt to hash it with: {why}")]
    NoSalt { index: u64, why: String },
    #[error("entry {index} holds a request this version cannot apply: {what}")]
    UnknownRequest { index: u64, what: String },
    #[error(
        "invalid downgrade; server version is lower than determined cluster version \
         (this binary is {binary}, the cluster is at {cluster}): start a {cluster} binary on this data dir"
    )]
    ClusterTooNew { binary: Version, cluster: Version },
    #[error(
        "the member has been permanently removed from the cluster; remove its data dir, and add it again if it is wanted"
    )]
    Removed,
    #[error("the cluster feature gate at entry {index} does not follow from the members' proposals: {why}")]
    GateBroken { index: u64, why: String },
    #[error(transparent)]
    UnknownFeature(#[from] membership::gate::UnknownFeature),
    #[error("failed to make a snapshot of the database: {0}")]
    SendSnapshot(String),
    #[error("failed to {what} of the snapshot at index {index}: {why}")]
    TakeOver { index: u64, what: &'static str, why: String },
}
