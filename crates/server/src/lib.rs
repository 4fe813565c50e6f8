//! gRPC services, JSON gateway, health, metrics, flags and config file.
//!
//! [`Server`] makes a member from a [`config::Config`] and serves it; the rest is what that takes.

mod auto_compaction;
mod call;
mod cluster;
mod codec;
pub mod config;
mod fallback;
mod features;
mod front;
pub mod gateway;
mod health;
pub mod http;
mod listen;
pub mod logging;
mod member;
pub mod metrics;
mod observer;
mod peers;
pub mod ports_file;
mod reflection;
mod required;
mod routes;
mod server;
mod services;
mod snapshot;
mod status;
mod users;
mod wakeups;
mod workers;

pub use listen::ListenError;
pub use server::{RunError, STOP_MAX, Server};

/// What this binary answers when asked for its version: plain semver, since tools parse it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The newest cluster and storage version this binary can work at.
pub const BINARY_VERSION: proto::Version = proto::Version::new(3, 8);
