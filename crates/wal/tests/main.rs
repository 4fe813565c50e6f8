//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod crash;
mod damage;
mod interop;
mod log;
mod support;
