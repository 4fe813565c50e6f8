//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod any_input;
mod any_schema;
mod generate;
mod model;
mod properties;
mod random_schemas;
mod script;
mod scripts;
