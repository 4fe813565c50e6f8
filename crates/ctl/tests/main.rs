//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod feature_gate;
mod own;
mod parity;
mod parity_cluster;
#[path = "../../client/tests/support/mod.rs"]
mod support;
