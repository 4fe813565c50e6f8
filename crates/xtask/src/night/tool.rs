//! What this machine has for a night, as data for the plan.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::workspace::answers;

#[derive(Debug, Clone, Default)]
pub(super) struct Tools {
    pub go: bool,
    pub rustup: bool,
    /// cargo-deny checks licences, sources and duplicate versions.
    pub deny: bool,
    /// cargo-bolero runs fuzz targets guided by coverage.
    pub bolero: bool,
    pub miri: bool,
}

impl Tools {
    pub(super) fn look() -> Tools {
        Tools {
            go: answers("go", &["version"]),
            rustup: answers("rustup", &["--version"]),
            deny: answers("cargo-deny", &["--version"]),
            bolero: answers("cargo-bolero", &["--version"]),
            miri: answers("rustup", &["run", "nightly", "cargo", "miri", "--version"]),
        }
    }
}

/// One fuzz target: a test of a file in crates/fuzz/tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub test: String,
    pub function: String,
}

pub(super) fn fuzz_targets(root: &Path) -> Result<Vec<Target>> {
    let dir = root.join("crates/fuzz/tests");
    let list = fs::read_dir(&dir).with_context(|| format!("failed to list {}", dir.display()))?;
    let mut paths = list.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    let mut targets = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
        let test = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        targets.extend(functions(&text).map(|function| Target { test: test.clone(), function: function.to_owned() }));
    }
    Ok(targets)
}

/// The functions that check with bolero, in the order of the file.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    let mut function = None;
    text.lines().filter_map(move |line| {
        if let Some(rest) = line.trim_start().strip_prefix("fn ") {
            function = rest.split(['(', '<']).next();
        }
        line.contains("bolero::check!").then(|| function.take()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_function_that_checks_with_bolero() {
        let text = "fn helper(x: u8) {}\n#[test]\nfn a() {\n    bolero::check!().for_each(f);\n}\n\nfn b() {\n    bolero::check!()\n}\n";
        assert_eq!(functions(text).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn the_targets_of_this_workspace_are_found() {
        let targets = fuzz_targets(&crate::workspace::root().expect("the workspace")).expect("they read");
        let damaged = Target { test: "bolt".to_owned(), function: "damaged_file".to_owned() };
        assert!(targets.contains(&damaged), "{targets:?}");
    }
}
