//! Temporary directories that are removed however the test program ends.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
};

use tempfile::TempDir;

/// Waits for the end of its standard input, which is the end of the test program, and then removes the directory.
/// Servers that die at the same moment may still create files, so the removal is repeated for up to four seconds.
const REMOVE_AT_END: &str = r#"cat >/dev/null; n=0
until rm -rf -- "$1" 2>/dev/null || [ "$n" -ge 40 ]; do n=$((n+1)); sleep 0.1; done"#;

static ROOT: LazyLock<Root> = LazyLock::new(Root::create);

struct Root {
    path: PathBuf,
    /// Holds the only write end of the watching process's standard input.
    _watcher: Child,
}

impl Root {
    fn create() -> Root {
        let prefix = format!("lockgate-test-{}-", std::process::id());
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir_in(env::temp_dir());
        let path = dir.unwrap_or_else(|error| panic!("no temporary directory: {error}")).keep();
        let mut command = Command::new("sh");
        command.args(["-c", REMOVE_AT_END, "sh"]).arg(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C interrupts the foreground process group, which this process must not belong to.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let watcher = command.spawn().unwrap_or_else(|error| panic!("failed to start sh: {error}"));
        Root { path, _watcher: watcher }
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
}
