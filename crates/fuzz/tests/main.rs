//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod bolt;
mod flags;
mod json;
mod min_version;
mod peer;
mod raft;
mod wal;
