//! What a call may be, by its headers.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName};
use tonic::Status;

use crate::{metrics::methods::METHODS, status};

// As names: a text would be read anew in every call.
pub(super) const CLIENT_API_VERSION: HeaderName = HeaderName::from_static("client-api-version");
const HAS_LEADER: HeaderName = HeaderName::from_static("hasleader");

/// What a call may be.
#[derive(Clone)]
pub struct Guard {
    /// Larger messages are refused as soon as their header is read.
    pub message_bytes_max: usize,
    /// Unary calls that take longer are logged.
    pub slow: Duration,
    /// Calls may ask to be refused while there is no leader.
    pub has_leader: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Streams may ask to be ended when there has been no leader for a while.
    pub leader_lost: LeaderLost,
    /// A learner serves little.
    pub is_learner: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Makes a future that ends when the leader has been lost for a while.
pub type LeaderLost = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// What a learner serves; of ranges, the serializable ones.
const SERVED_BY_LEARNERS: &[(&str, &str)] = &[
    ("etcdserverpb.KV", "Range"),
    ("etcdserverpb.Maintenance", "FeatureGateHistory"),
    ("etcdserverpb.Maintenance", "FeatureGateStatus"),
    ("etcdserverpb.Maintenance", "Snapshot"),
    ("etcdserverpb.Maintenance", "Status"),
];

impl Guard {
    /// Lets everything pass.
    pub fn open() -> Guard {
        Guard {
            message_bytes_max: usize::MAX,
            slow: Duration::MAX,
            has_leader: Arc::new(|| true),
            leader_lost: Arc::new(|| Box::pin(std::future::pending())),
            is_learner: Arc::new(|| false),
        }
    }

    pub(super) fn refusal(&self, method: usize, headers: &HeaderMap) -> Option<Status> {
        let (service, name, _) = METHODS[method];
        if (self.is_learner)() && !SERVED_BY_LEARNERS.contains(&(service, name)) {
            return Some(status::not_supported_for_learner());
        }
        let version = headers.get(CLIENT_API_VERSION);
        if version.is_some_and(|value| std::str::from_utf8(value.as_bytes()).is_err()) {
            return Some(status::invalid_client_api_version());
        }
        (needs_leader(headers) && !(self.has_leader)()).then(status::no_leader)
    }

    /// A stream that was begun with a leader in mind ends with it.
    pub(super) fn lost(&self, method: usize, headers: &HeaderMap) -> Option<BoxFuture<'static, ()>> {
        (METHODS[method].2 != "unary" && needs_leader(headers)).then(|| (self.leader_lost)())
    }
}

/// Whether a call asks to be refused while there is no leader.
pub fn needs_leader(headers: &HeaderMap) -> bool {
    headers.get(HAS_LEADER).is_some_and(|value| value.as_bytes() == b"true")
}
