//! Temporary directories that are removed however the test program ends.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use tempfile::TempDir;

use crate::AtEnd;

/// Removes the directory. Servers that die at the same moment may still create files, so the removal is repeated for up
/// to four seconds.
const REMOVE: &str = r#"n=0
until rm -rf -- "$1" 2>/dev/null || [ "$n" -ge 40 ]; do n=$((n+1)); sleep 0.1; done"#;

static ROOT: LazyLock<Root> = LazyLock::new(Root::create);

struct Root {
    path: PathBuf,
    _removal: AtEnd,
}

impl Root {
    fn create() -> Root {
        let prefix = format!("lockgate-test-{}-", std::process::id());
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir_in(env::temp_dir());
        let path = dir.unwrap_or_else(|error| panic!("no temporary directory: {error}")).keep();
        let removal = AtEnd::run(REMOVE, &[&path.to_string_lossy()]);
        Root { path, _removal: removal }
    }
}

/// The directory below which this test program keeps everything that is temporary.
pub fn scratch_root() -> &'static Path {
    &ROOT.path
}

/// A new directory, removed when dropped, and with the test program if it is never dropped.
pub fn tempdir() -> TempDir {
    tempfile::tempdir_in(scratch_root()).unwrap_or_else(|error| panic!("no temporary directory: {error}"))
}

/// Moves a directory to a place where it stays after the end of the program, for someone to look at.
pub fn keep(dir: TempDir) -> PathBuf {
    let kept = tempfile::Builder::new().prefix("lockgate-kept-").tempdir_in(env::temp_dir());
    let kept = kept.unwrap_or_else(|error| panic!("no temporary directory: {error}")).keep();
    let path = dir.keep();
    let moved = fs::rename(&path, &kept);
    moved.unwrap_or_else(|error| panic!("failed to move {} to {}: {error}", path.display(), kept.display()));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_below_the_root_and_removed_when_dropped() {
        let dir = tempdir();
        assert!(dir.path().starts_with(scratch_root()));
        let path = dir.path().to_owned();
        drop(dir);
        assert!(!path.exists());
        assert!(scratch_root().is_dir());
    }

    #[test]
    fn a_kept_directory_is_not_below_the_root() {
        let dir = tempdir();
        fs::write(dir.path().join("file"), "text").unwrap();
        let kept = keep(dir);
        assert!(!kept.starts_with(scratch_root()));
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "text");
        fs::remove_dir_all(kept).unwrap();
    }
}
