//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod agree;
mod story;
