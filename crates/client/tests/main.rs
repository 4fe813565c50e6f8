//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod login;
mod real_auth;
mod real_etcd;
mod retry;
