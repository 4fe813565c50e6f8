//! The integration tests of this crate, as one program: linking it once keeps builds short.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

#[path = "gateway/main.rs"]
mod gateway;
mod peer_config;
mod peer_http;
