//! gRPC services, JSON gateway, health, metrics, flags and config file.

pub mod gateway;
