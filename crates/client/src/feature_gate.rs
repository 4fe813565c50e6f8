//! Cluster features: which are on and why, how that changed, and the write that belongs to one of them.
//!
//! A server without cluster features, such as any etcd, answers these calls with "unimplemented".

use bytes::Bytes;
use proto::etcdserverpb::{
    FeatureGateHistoryRequest, FeatureGateHistoryResponse, FeatureGateStatusRequest, FeatureGateStatusResponse,
    IncrementRequest, IncrementResponse, kv_client::KvClient, maintenance_client::MaintenanceClient,
};
use tonic::{Code, Streaming};

use crate::{Client, Error, Result, call::rpc};

impl Client {
    /// The named cluster features, or all if none is named. With `serializable` the member at hand answers from what
    /// it knows, also without a leader; a learner always does.
    pub async fn feature_gate_status<F>(&self, features: F, serializable: bool) -> Result<FeatureGateStatusResponse>
    where
        F: IntoIterator,
        F::Item: Into<String>,
    {
        let features = features.into_iter().map(Into::into).collect();
        let request = FeatureGateStatusRequest { features, serializable };
        rpc!(self.caller, Repeatable, MaintenanceClient::feature_gate_status, request)
    }

    /// The changes of the cluster gate at `from_index` and later; 0 means all that are kept. With `follow` the stream
    /// goes on with those to come, however long the client's timeout is.
    pub async fn feature_gate_history(&self, from_index: u64, follow: bool) -> Result<FeatureGateHistory> {
        let caller = if follow { self.with_timeout(None).caller } else { self.caller.clone() };
        let request = FeatureGateHistoryRequest { from_index, follow };
        let stream = rpc!(caller, Repeatable, MaintenanceClient::feature_gate_history, request)?;
        Ok(FeatureGateHistory { stream })
    }

    /// Adds to the number in a key. Needs the cluster feature AtomicIncrement.
    pub async fn increment(&self, increment: Increment) -> Result<IncrementResponse> {
        rpc!(self.caller, Once, KvClient::increment, increment.request)
    }
}

impl Error {
    /// True if the server does not know the call, as any etcd the ones here.
    pub fn is_unimplemented(&self) -> bool {
        matches!(self, Error::Etcd { code: Code::Unimplemented, .. })
    }
}

/// Changes of the cluster gate, as they come.
pub struct FeatureGateHistory {
    stream: Streaming<FeatureGateHistoryResponse>,
}

impl FeatureGateHistory {
    /// The next changes, or `None` after the last.
    pub async fn next(&mut self) -> Result<Option<FeatureGateHistoryResponse>> {
        self.stream.message().await.map_err(|status| Error::from_status(status, "feature gate history"))
    }
}

/// An addition to the number in a key; a key that is not there is created.
#[derive(Clone, Debug)]
pub struct Increment {
    pub(crate) request: IncrementRequest,
}

impl Increment {
    pub fn new(key: impl Into<Bytes>, delta: i64) -> Increment {
        Increment { request: IncrementRequest { key: key.into(), delta, ..Default::default() } }
    }

    /// What delta is added to if the key is not there; 0 if not given.
    pub fn initial(mut self, initial: i64) -> Self {
        self.request.initial = initial;
        self
    }

    /// Refuses a sum below this.
    pub fn min(mut self, min: i64) -> Self {
        self.request.min = Some(min);
        self
    }

    /// Refuses a sum above this.
    pub fn max(mut self, max: i64) -> Self {
        self.request.max = Some(max);
        self
    }
}
