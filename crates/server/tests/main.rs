//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod common;
mod peer_config;
mod peer_http;
