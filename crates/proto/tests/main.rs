//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod annotations;
mod json;
mod min_version;
mod random;
