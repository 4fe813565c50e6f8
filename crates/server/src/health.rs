//! How well the member is: what the HTTP probes and the gRPC health service ask.

use proto::etcdserverpb::RangeRequest;
use tonic_health::{
    ServingStatus,
    pb::health_server::{Health as GrpcHealth, HealthServer},
    server::HealthService,
};

use crate::services::Context;

/// Answers the questions of the HTTP probes.
#[derive(Clone)]
pub struct HealthOf(pub Context);

/// `grpc.health.v1.Health`: serving, from the moment the port is.
pub fn grpc() -> HealthServer<impl GrpcHealth> {
    let (reporter, service) = tonic_health::server::health_reporter();
    drop(reporter);
    let _: Option<(ServingStatus, HealthService)> = None;
    service
}

/// A read of one key that need not exist.
pub fn probe(serializable: bool) -> RangeRequest {
    RangeRequest { key: "health".into(), serializable, limit: 1, ..Default::default() }
}
