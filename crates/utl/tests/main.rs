//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod migrate;
mod migrate_crash;
mod offline;
mod parity;
mod real_etcd;
mod support;
