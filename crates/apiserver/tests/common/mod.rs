//! Test objects, clients and webhooks that several test files use.

pub(crate) mod board;
pub(crate) mod http;
pub(crate) mod webhook;

use std::path::PathBuf;

pub(crate) use apiworld::World;

/// The path of a file in `tests/data`.
pub(crate) fn data(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).display().to_string()
}
