//! The integration tests of this crate, as one program: linking it once keeps builds short.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

mod migrate;
mod migrate_crash;
mod offline;
mod parity;
mod real_etcd;
mod support;
mod two_migrations;
