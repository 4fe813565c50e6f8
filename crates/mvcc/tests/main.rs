//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod model;
mod real_etcd;
mod reload;
mod replay;
mod scripts;
mod support;
mod threads;
mod watch;
