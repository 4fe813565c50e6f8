//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod real_etcd;
mod refusals;
mod round_trip;
mod support;
