//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod features;
mod gate_properties;
mod gate_scripts;
mod loggable;
mod scripts;
mod support;
