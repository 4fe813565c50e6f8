//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod backend;
mod common;
mod concurrent;
mod crash;
mod interop;
mod migrate;
mod take_over;
