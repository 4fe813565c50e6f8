//! Test objects, clients and webhooks that several test files use.

pub mod board;
pub mod http;
pub mod webhook;

use std::path::PathBuf;

pub use apiworld::World;

/// The path of a file in `tests/data`.
pub fn data(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).display().to_string()
}
