//! The cluster feature gate: what is on, who holds off what, and when that changed.
//!
//! A server without cluster features, such as any etcd, answers these calls with "unimplemented".

use proto::{
    etcdserverpb::{
        FeatureGateHistoryRequest, FeatureGateHistoryResponse, FeatureGateStatusRequest, FeatureGateStatusResponse,
        maintenance_client::MaintenanceClient,
    },
    membershippb::FeatureGateChange,
};
use tonic::{Code, Streaming};

use crate::{Client, Error, Result, call::rpc};

impl Client {
    /// The features of these names, or all if there are none. Fails with "invalid argument" for a name that is no
    /// cluster feature, and with "unimplemented" where the server is a real etcd.
    pub async fn feature_gate_status<N>(&self, names: N) -> Result<FeatureGateStatusResponse>
    where
        N: IntoIterator,
        N::Item: Into<String>,
    {
        let features = names.into_iter().map(Into::into).collect();
        let request = FeatureGateStatusRequest { features, ..Default::default() };
        rpc!(self.caller, Repeatable, MaintenanceClient::feature_gate_status, request)
    }

    /// The same as the member at hand knows it, also without a leader. A learner always answers so.
    pub async fn feature_gate_status_serializable<N>(&self, names: N) -> Result<FeatureGateStatusResponse>
    where
        N: IntoIterator,
        N::Item: Into<String>,
    {
        let features = names.into_iter().map(Into::into).collect();
        let request = FeatureGateStatusRequest { features, serializable: true };
        rpc!(self.caller, Repeatable, MaintenanceClient::feature_gate_status, request)
    }

    /// The changes of the gate at log index `from` and later, 0 for the oldest known; with `follow` also those to come.
    pub async fn feature_gate_history(&self, from: u64, follow: bool) -> Result<GateHistory> {
        // The client's timeout is for answers; changes to come, come when they come.
        let caller = if follow { self.with_timeout(None).caller } else { self.caller.clone() };
        let request = FeatureGateHistoryRequest { from_index: from, follow };
        let stream = rpc!(caller, Repeatable, MaintenanceClient::feature_gate_history, request)?;
        Ok(GateHistory { stream })
    }
}

impl Error {
    /// True if the server does not know the call, as no etcd knows the ones here.
    pub fn is_unimplemented(&self) -> bool {
        matches!(self, Error::Etcd { code: Code::Unimplemented, .. })
    }
}

/// Changes of the gate, oldest first. If the stream breaks, ask again from the index after that of the last change.
pub struct GateHistory {
    stream: Streaming<FeatureGateHistoryResponse>,
}

impl GateHistory {
    /// The next changes, or `None` at the end. The first answer holds none if there were none.
    pub async fn next(&mut self) -> Result<Option<Vec<FeatureGateChange>>> {
        let answer = self.stream.message().await;
        let answer = answer.map_err(|status| Error::from_status(status, "history of the feature gate"))?;
        Ok(answer.map(|answer| answer.changes))
    }
}
