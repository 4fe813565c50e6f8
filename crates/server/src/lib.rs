//! gRPC services, JSON gateway, health, metrics, flags and config file.

pub mod config;
pub mod http;
pub mod logging;
pub mod metrics;
