//! The integration tests of this crate, as one program: linking it once keeps builds short.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

mod controller;
mod follow;
mod late;
mod one_gate;
mod story;
