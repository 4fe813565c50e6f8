//! How well the member is: what the HTTP probes and the gRPC health service ask.

use http::HeaderMap;
use proto::etcdserverpb::{AlarmType, RangeRequest};
use storage::schema;
use tonic::Status;
use tonic_health::{
    pb::health_server::{Health as GrpcHealth, HealthServer},
    server::{HealthReporter, HealthService},
};

use crate::{
    VERSION,
    http::{Alarm, Health, Versions},
    services::Context,
};

/// Answers the questions of the HTTP probes.
#[derive(Clone)]
pub(crate) struct HealthOf(pub Context);

impl HealthOf {
    /// A read of one key that need not exist.
    async fn read(&self, serializable: bool) -> Result<(), String> {
        let request = RangeRequest { key: "a".into(), serializable, limit: 1, ..Default::default() };
        let text = |status: Status| status.message().to_owned();
        self.0.probe(&request).await.map(|_| ()).map_err(text)
    }
}

impl Health for HealthOf {
    async fn serializable_read(&self) -> Result<(), String> {
        self.read(true).await
    }

    async fn linearizable_read(&self) -> Result<(), String> {
        self.read(false).await
    }

    fn alarms(&self) -> Vec<(u64, Alarm)> {
        let kind = |alarm: i32| match AlarmType::try_from(alarm) {
            Ok(AlarmType::Nospace) => Alarm::NoSpace,
            Ok(AlarmType::Corrupt) => Alarm::Corrupt,
            _ => Alarm::Other(alarm),
        };
        self.0.node.alarms().iter().map(|a| (a.member_id, kind(a.alarm))).collect()
    }

    fn leader(&self) -> Option<u64> {
        Some(self.0.node.status().leader).filter(|leader| *leader != 0)
    }

    fn is_learner(&self) -> bool {
        self.0.node.is_learner()
    }

    async fn feature_gates(&self, headers: &HeaderMap) -> Result<String, String> {
        let token = crate::users::token_among(headers);
        let text = |status: Status| status.message().to_owned();
        self.0.require_login_with(token.as_ref()).await.map_err(text)?;
        Ok(self.0.feature_gate_page())
    }

    fn versions(&self) -> Versions {
        let view = self.0.node.backend().view();
        Versions {
            server: VERSION.into(),
            cluster: self.0.node.cluster_version().map(|v| v.stored()),
            storage: schema::meta::storage_version(&view).ok().flatten().map(|v| v.stored()),
        }
    }
}

/// `grpc.health.v1.Health`: serving as long as the port is open, under the empty name.
pub(crate) fn grpc() -> HealthServer<impl GrpcHealth> {
    HealthServer::new(HealthService::from_health_reporter(HealthReporter::new()))
}
