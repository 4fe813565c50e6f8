//! gRPC's standard health check.

use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::{Client, Result, call::rpc};

impl Client {
    /// Whether the next member in turn says that it serves; `service` is empty for the server as a whole.
    pub async fn is_serving(&self, service: &str) -> Result<bool> {
        let request = HealthCheckRequest { service: service.to_owned() };
        let response = rpc!(self.caller, Repeatable, HealthClient::check, request)?;
        Ok(response.status() == ServingStatus::Serving)
    }
}
