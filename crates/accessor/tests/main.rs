//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod controller;
mod follow;
mod late;
mod one_gate;
mod story;
