//! The integration tests of this crate, as one program: linking it once keeps builds short.

#[path = "gateway/main.rs"]
mod gateway;
mod peer_config;
mod peer_http;
