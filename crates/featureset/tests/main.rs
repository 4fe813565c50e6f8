//! The integration tests of this crate, as one program: linking it once keeps builds short.

mod openshift;
mod properties;
mod scripts;
mod sync;
