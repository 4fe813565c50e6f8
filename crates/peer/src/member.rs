//! What the transport needs of the member that it serves.

use std::{io::Read, path::PathBuf};

use futures_util::future::BoxFuture;
use membership::MemberId;
use proto::{
    etcdserverpb::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse},
    raftpb::Message,
};
use serde::{Deserialize, Serialize};

/// The local member as the transport sees it.
///
/// `report_unreachable` and `report_snapshot` are also called from inside [`Transport::send`](crate::Transport::send),
/// on the caller's thread: they may neither wait for that thread nor call the transport.
pub trait Member: Send + Sync + 'static {
    /// Hands a message to raft. It is to this member, from one that is not removed, and of a type that may come from
    /// outside. MsgProp may wait for room; others must not wait long. For MsgSnap the database is in place.
    fn receive(&self, message: Message) -> BoxFuture<'_, Result<(), ReceiveError>>;

    /// Hands over all messages that one read of a stream gave, none of them a MsgProp. Errors concern nobody but the
    /// log.
    fn receive_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), ReceiveError>> {
        Box::pin(async move {
            for message in messages {
                self.receive(message).await?;
            }
            Ok(())
        })
    }

    fn is_removed(&self, id: MemberId) -> bool;

    fn report_unreachable(&self, id: MemberId);

    /// A snapshot for `id` was sent and taken, or not.
    fn report_snapshot(&self, id: MemberId, sent: bool);

    /// A peer said that this member was removed from the cluster: it must stop itself. May be called more than once.
    fn removed_from_cluster(&self);

    /// Where a received database is put, as `<index>.snap.db` with the index in 16 hex digits.
    fn snapshot_dir(&self) -> PathBuf;

    /// Whether a member that is not ours could not follow the others any more: from cluster version 3.8 on.
    fn is_ours_alone(&self) -> bool;

    /// In id order.
    fn members(&self) -> Vec<membership::Member>;

    fn versions(&self) -> Versions;

    /// Promotes a learner; only the leader can. `token` is the client's.
    fn promote(
        &self,
        id: MemberId,
        token: Option<String>,
    ) -> BoxFuture<'_, Result<Vec<membership::Member>, ControlError>>;

    fn hash_kv(&self, revision: i64) -> BoxFuture<'_, Result<HashKv, ControlError>>;

    /// Renews a lease and gives its TTL; only the primary can.
    fn renew_lease(&self, id: i64) -> BoxFuture<'_, Result<i64, ControlError>>;

    fn lease_time_to_live(
        &self,
        request: LeaseTimeToLiveRequest,
    ) -> BoxFuture<'_, Result<LeaseTimeToLiveResponse, ControlError>>;

    /// After a linearizable read.
    fn downgrade_enabled(&self) -> BoxFuture<'_, Result<bool, ControlError>>;
}

/// Why a member did not take a message.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error("the member is stopping")]
    Stopped,
    #[error("raft refused the message: {0}")]
    Refused(String),
}

/// A database to be sent: how many bytes the reader will give.
pub struct Database {
    pub len: u64,
    pub reader: Box<dyn Read + Send>,
}

/// The versions of a member, as `/version` gives them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    #[serde(rename = "etcdserver")]
    pub server: String,
    /// `not_decided` until the first leader has.
    #[serde(rename = "etcdcluster")]
    pub cluster: String,
    /// `unknown` if there is none. Members before 3.6 do not say.
    #[serde(default)]
    pub storage: String,
    /// Set by members of ours alone; the transport fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lockgate: Option<String>,
}

/// A hash of the keys at a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashKv {
    /// The store's revision when it was asked.
    pub revision: i64,
    pub hash: u32,
    pub compact_revision: i64,
    /// The revision that was hashed.
    pub hash_revision: i64,
}

/// Why a control request failed, on either side of the wire. The texts are etcd's where it has one.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("membership: ID not found")]
    MemberNotFound,
    #[error("membership: can only promote a learner member")]
    NotLearner,
    #[error("etcdserver: can only promote a learner member which is in sync with leader")]
    LearnerNotReady,
    /// The learner differs from the cluster gate; the text is the leader's and names the features.
    #[error("{0}")]
    LearnerFeatures(String),
    #[error("etcdserver: request timed out")]
    Timeout,
    #[error("lease not found")]
    LeaseNotFound,
    #[error("waiting for node to catch up its applied index has timed out")]
    LeaseTimeout,
    #[error("not a primary lessor")]
    NotPrimary,
    #[error("mvcc: required revision has been compacted")]
    Compacted,
    #[error("mvcc: required revision is a future revision")]
    FutureRevision,
    #[error("cluster ID mismatch")]
    ClusterIdMismatch,
    /// No URL gave an answer.
    #[error("failed to reach {url}: {reason}")]
    Unreachable { url: String, reason: String },
    /// An answer that is none of the above.
    #[error("{0}")]
    Other(String),
}
