//! Finding the record of a release, by file or by version.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use featuregate::Release;

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../membership/testdata/features");

pub(crate) fn find(name: &str) -> Result<Release> {
    let file = Path::new(name);
    let path = if file.is_file() { file.to_owned() } else { of_version(Path::new(DIR), name)? };
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    text.parse().with_context(|| format!("{} is no record of a release", path.display()))
}

/// `3.7.3` is the record whose name ends so, as `etcd-3.7.3.txt`.
fn of_version(dir: &Path, version: &str) -> Result<PathBuf> {
    let mut stems = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("failed to list {}", dir.display()))? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem == version || stem.ends_with(&format!("-{version}")) {
            return Ok(path);
        }
        stems.push(stem);
    }
    stems.sort();
    bail!("{version:?} is neither a file nor a release with a record; the records are {}", stems.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_found_by_its_version() {
        assert_eq!(find("3.7.3").expect("kept").patch, 3);
        assert_eq!(find("etcd-3.7.3").expect("kept").patch, 3);
        assert!(find(&format!("{DIR}/etcd-3.7.3.txt")).is_ok());
    }

    #[test]
    fn an_unknown_one_is_answered_with_those_there_are() {
        let error = find("7.3").expect_err("no such release").to_string();
        assert!(error.contains("\"7.3\" is neither a file") && error.contains("etcd-3.7.3"), "{error}");
    }
}
