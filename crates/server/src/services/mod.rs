//! The gRPC services. Each call reads as a line: check, ask or propose, answer.

mod auth;
mod cluster;
mod concurrency;
mod feature_gate;
mod feature_gate_page;
pub(crate) mod hot;
mod known;
mod kv;
mod lease;
mod maintenance;
mod range_stream;
pub(crate) mod watch;

use std::{
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use membership::gate::GATE_SINCE;
use node::{ApplyError, Node, ProposeError, ReadError};
use proto::etcdserverpb::{InternalRaftRequest, ResponseHeader};
use tokio::runtime::Handle;
use tonic::Status;

pub(crate) use self::{
    auth::AuthService,
    cluster::ClusterService,
    concurrency::{ElectionService, LockService},
    known::Known,
    kv::KvService,
    lease::LeaseService,
    maintenance::MaintenanceService,
    watch::WatchService,
};
use crate::{
    call,
    cluster::Part,
    metrics::{Metrics, server::Op},
    required::{self, Required},
    status,
    users::{Passwords, Tokens},
};

pub(crate) const MESSAGE_OVERHEAD_BYTES: usize = 512 * 1024;

/// What every service needs. Cheap to clone, as every call does.
#[derive(Clone)]
pub(crate) struct Context(Arc<Parts>);

pub(crate) struct Parts {
    pub node: Arc<Node>,
    pub part: Part,
    pub limits: Limits,
    pub tokens: Tokens,
    passwords: Passwords,
    metrics: Arc<Metrics>,
    /// Where calls run that take long.
    pool: Handle,
    cluster_id: u64,
    member_id: u64,
}

impl Deref for Context {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub txn_ops_max: usize,
    pub request_bytes_max: usize,
    /// Requests that take longer are logged.
    pub slow_request: Duration,
    pub watch_progress_interval: Duration,
    pub bcrypt_cost: u32,
}

impl Limits {
    /// The largest message that is read: the request limit, and room for what surrounds a request.
    fn message_bytes_max(&self) -> usize {
        self.request_bytes_max.saturating_add(MESSAGE_OVERHEAD_BYTES)
    }
}

impl Context {
    pub(crate) fn new(part: Part, limits: Limits, tokens: Tokens, metrics: Arc<Metrics>, pool: Handle) -> Context {
        let (node, cluster) = (part.node.clone(), part.node.cluster());
        let (cluster_id, member_id) = (cluster.id.0, cluster.local.0);
        let passwords = Passwords::default();
        Context(Arc::new(Parts { cluster_id, member_id, node, part, limits, tokens, passwords, metrics, pool }))
    }

    pub(crate) fn member_id(&self) -> u64 {
        self.member_id
    }

    pub(crate) fn message_bytes_max(&self) -> usize {
        self.limits.message_bytes_max()
    }

    pub(crate) fn header_at(&self, revision: i64) -> ResponseHeader {
        ResponseHeader { cluster_id: self.cluster_id, member_id: self.member_id, revision, raft_term: self.node.term() }
    }

    pub(crate) fn header(&self) -> ResponseHeader {
        self.header_at(self.node.store().revision())
    }

    /// Adds who answers, and when in the log, to a header that has a revision (or takes the newest).
    fn fill(&self, header: Option<ResponseHeader>) -> Option<ResponseHeader> {
        let revision = header.map_or(0, |h| h.revision);
        Some(if revision == 0 { self.header() } else { self.header_at(revision) })
    }

    /// Proposes a request, and with it what its call requires.
    async fn propose(&self, mut request: InternalRaftRequest) -> Result<node::Response, Status> {
        let required = call::required();
        if let Some(required) = required {
            self.require(required, &mut request).await?;
        }
        if self.node.users().enabled() {
            self.sign(&mut request).await?;
        }
        let (begin, op) = (Instant::now(), Op::named(node::request_name(&request)));
        let result = self.node.propose(request).await;
        // An error that apply answers is an answer.
        let success = matches!(result, Ok(_) | Err(ProposeError::Apply(_)));
        self.metrics.server.request_duration.observe(op, success, begin.elapsed().as_secs_f64());
        result.map_err(|error| match (error, required.and_then(|required| required.names().next())) {
            // The version went below the gate's on the way.
            (ProposeError::NotYet(_) | ProposeError::Apply(ApplyError::NotYet(_)), Some(feature)) => {
                status::feature_needs_version(feature, self.node.cluster_version())
            }
            (error, _) => status::from_propose(&error),
        })
    }

    /// Puts what the call requires into its entry, where it is judged when that is applied.
    async fn require(&self, required: Required, request: &mut InternalRaftRequest) -> Result<(), Status> {
        // What is on shows that the version has the gate.
        let enabled = self.node.gates().enabled();
        for feature in required.features().off(enabled).iter() {
            self.check_has_gate(feature.name()).await?;
        }
        let names = required.names().map(|name| Bytes::from_static(name.as_bytes()));
        request.header.get_or_insert_default().required_features.extend(names);
        Ok(())
    }

    /// Below the version that has the gate nothing of a feature may be proposed. From there on the entry is judged
    /// where it is applied.
    async fn check_has_gate(&self, feature: &str) -> Result<(), Status> {
        let has_gate = || self.node.cluster_version().is_some_and(|version| version >= GATE_SINCE);
        if has_gate() {
            return Ok(());
        }
        // Who may not ask learns nothing of features and versions.
        self.require_login().await?;
        // This member may be behind.
        self.linearize().await?;
        if has_gate() { Ok(()) } else { Err(status::feature_needs_version(feature, self.node.cluster_version())) }
    }

    /// Waits until a read may be answered, and judges what its call requires as of there.
    async fn settle(&self, linearizable: bool) -> Result<(), Status> {
        if linearizable {
            self.linearize().await?;
        }
        // Who may not ask learns nothing of features.
        if self.node.users().enabled() && call::required().is_some() {
            self.require_login().await?;
        }
        required::judge_current(&self.node)
    }

    pub(crate) async fn linearize(&self) -> Result<(), Status> {
        self.node.read_index().await.map_err(|error| {
            self.metrics.server.read_indexes_failed.inc();
            if matches!(error, ReadError::Timeout) {
                self.metrics.server.slow_read_indexes.inc();
            }
            status::from_read(error)
        })
    }
}

/// The answer to a request is always of its own kind; anything else is a bug of this server.
fn mismatch(response: &node::Response) -> Status {
    Status::internal(format!("lockgate: a request was answered with {response:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test_case::test_case(1 << 20 => (1 << 20) + MESSAGE_OVERHEAD_BYTES)]
    #[test_case::test_case(usize::MAX - 1 => usize::MAX; "a limit beyond all messages")]
    fn largest_message(request_bytes_max: usize) -> usize {
        let limits = Limits {
            txn_ops_max: 1,
            request_bytes_max,
            slow_request: Duration::ZERO,
            watch_progress_interval: Duration::ZERO,
            bcrypt_cost: 4,
        };
        limits.message_bytes_max()
    }
}
