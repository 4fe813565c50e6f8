//! The workspace this program was built from, and what git knows of it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

pub(crate) fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.map(Path::to_path_buf).context("found no workspace above the xtask crate")
}

/// Returns what git prints, without a newline at the end.
pub(crate) fn git(root: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("git").args(args).current_dir(root).output().context("failed to run git")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("git {} failed in {}: {said}", args.join(" "), root.display());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
}

/// Returns the paths of a list that git separated by NUL.
pub(crate) fn git_paths(root: &Path, args: &[&str]) -> Result<Vec<String>> {
    Ok(git(root, args)?.split_terminator('\0').map(str::to_owned).collect())
}

/// Returns whether the program answers `--version`-like arguments with success.
pub(crate) fn answers(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

/// The directory that cargo builds into, by the variable that cargo reads.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty());
    root.join(given.unwrap_or_else(|| "target".into()))
}
