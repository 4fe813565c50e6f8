//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod follow;
mod late;
mod one_gate;
mod story;
mod support;
