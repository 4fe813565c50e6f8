//! Manifests of sets that were made once and are not any more, as after a profile went or with another major release. Who takes the whole
//! folder would take them too.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::disk::Target;

/// Files with names as render gives them, in folders that it writes to, and that it would not write now.
pub(crate) fn strays(targets: &[Target]) -> Result<Vec<PathBuf>> {
    let mut dirs: Vec<&Path> =
        targets.iter().filter(|target| is_manifest(&target.path)).filter_map(|t| t.path.parent()).collect();
    dirs.dedup();
    let mut strays = Vec::new();
    for dir in dirs.into_iter().filter(|dir| dir.is_dir()) {
        let entries = fs::read_dir(dir).with_context(|| format!("failed to read {}", dir.display()))?;
        for entry in entries {
            let path = entry?.path();
            if is_manifest(&path) && !targets.iter().any(|target| target.path == path) {
                strays.push(path);
            }
        }
    }
    strays.sort();
    Ok(strays)
}

pub(crate) fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).with_context(|| format!("failed to remove {}", path.display()))
}

fn is_manifest(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    folder == "featuregates" && name.starts_with("featureGate-") && name.ends_with(".yaml")
}
