//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod feature_gate;
mod own;
mod parity;
mod parity_cluster;
