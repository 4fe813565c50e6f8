//! The integration tests of this crate, as one program: linking it once keeps builds short.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

mod crash;
mod damage;
mod interop;
mod log;
mod restart;
mod support;
