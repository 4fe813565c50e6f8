//! The gRPC services. Each call reads as a line: check, ask or propose, answer.

mod cluster;
pub mod hot;
mod kv;
mod lease;
mod maintenance;
mod range_stream;
pub mod watch;

use std::{sync::Arc, time::Duration};

use node::Node;
use proto::etcdserverpb::{InternalRaftRequest, ResponseHeader};
use tonic::Status;

pub use self::{
    cluster::ClusterService, kv::KvService, lease::LeaseService, maintenance::MaintenanceService, watch::WatchService,
};
use crate::status;

pub(crate) const MESSAGE_OVERHEAD_BYTES: usize = 512 * 1024;

/// What every service needs. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub node: Arc<Node>,
    pub limits: Limits,
    cluster_id: u64,
    member_id: u64,
}

#[derive(Debug, Clone)]
pub struct Limits {
    pub txn_ops_max: usize,
    pub request_bytes_max: usize,
    /// Requests that take longer are logged.
    pub slow_request: Duration,
    pub watch_progress_interval: Duration,
}

impl Context {
    pub fn new(node: Arc<Node>, limits: Limits) -> Context {
        let cluster = node.cluster();
        Context { cluster_id: cluster.id.0, member_id: cluster.local.0, node, limits }
    }

    pub fn member_id(&self) -> u64 {
        self.member_id
    }

    /// The largest message that is read: the request limit, and room for what surrounds a request.
    pub fn message_bytes_max(&self) -> usize {
        self.limits.request_bytes_max + MESSAGE_OVERHEAD_BYTES
    }

    pub fn header_at(&self, revision: i64) -> ResponseHeader {
        ResponseHeader { cluster_id: self.cluster_id, member_id: self.member_id, revision, raft_term: self.node.term() }
    }

    pub fn header(&self) -> ResponseHeader {
        self.header_at(self.node.store().revision())
    }

    /// Adds who answers, and when in the log, to a header that has a revision (or takes the newest).
    fn fill(&self, header: Option<ResponseHeader>) -> Option<ResponseHeader> {
        let revision = header.map_or(0, |h| h.revision);
        Some(if revision == 0 { self.header() } else { self.header_at(revision) })
    }

    async fn propose(&self, request: InternalRaftRequest) -> Result<node::Response, Status> {
        self.node.propose(request).await.map_err(|e| status::from_propose(&e))
    }

    async fn linearize(&self) -> Result<(), Status> {
        self.node.read_index().await.map_err(status::from_read)
    }
}

/// The answer to a request is always of its own kind; anything else is a bug of this server.
fn mismatch(response: &node::Response) -> Status {
    Status::internal(format!("lockgate: a request was answered with {response:?}"))
}
