//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod any_input;
mod properties;
mod random_schemas;
mod scripts;
mod support;
