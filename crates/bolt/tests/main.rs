//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod common;
mod concurrent;
mod corrupt;
mod crash;
mod interop_bbolt;
mod interop_etcd;
mod model;
mod restart;
mod shape;
