//! The workspace this program was built from.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.map(Path::to_path_buf).context("found no workspace above the xtask crate")
}
