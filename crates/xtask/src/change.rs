//! What a branch changes: the files that differ from its base, and the crates they belong to.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, Result};

use crate::workspace::{git, git_paths};

/// The files of the root that decide how every crate is built.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "Cargo.lock"];

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Changed crates that still exist, in alphabetical order.
    pub crates: BTreeSet<String>,
    /// The root's Cargo.toml or Cargo.lock changed, which any crate may notice.
    pub manifests: bool,
    /// The number of changed files that belong to no crate.
    pub elsewhere: usize,
}

impl Change {
    /// `exists` tells whether a crate of this name is still there.
    pub(crate) fn new<'a>(paths: impl IntoIterator<Item = &'a str>, exists: impl Fn(&str) -> bool) -> Change {
        let mut change = Change::default();
        for path in paths {
            match path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')) {
                Some((name, _)) if exists(name) => {
                    change.crates.insert(name.to_owned());
                }
                _ if MANIFESTS.contains(&path) => change.manifests = true,
                _ => change.elsewhere += 1,
            }
        }
        change
    }
}

/// The files that differ from the base: committed, staged, edited and untracked ones.
pub(crate) fn paths(root: &Path, base: &str) -> Result<BTreeSet<String>> {
    let mut paths = BTreeSet::from_iter(git_paths(root, &["diff", "--name-only", "--no-renames", "-z", base, "--"])?);
    paths.extend(git_paths(root, &["ls-files", "--others", "--exclude-standard", "-z"])?);
    Ok(paths)
}

/// The revision to compare with: `given`, else what `decide_base` finds in this repository.
pub(crate) fn base(root: &Path, given: Option<&str>) -> Result<String> {
    let commit = |name: &str| git(root, &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).ok();
    if let Some(given) = given {
        return commit(given).with_context(|| format!("--base {given}: git knows no such commit"));
    }
    let head = commit("HEAD").context("found no commit to compare with")?;
    let fork = |branch: &str| git(root, &["merge-base", "HEAD", branch]).ok();
    let forks = ["origin/main", "main"].map(fork);
    Ok(decide_base(&head, forks, commit("HEAD~1")))
}

/// The first fork point that HEAD is ahead of. On main itself that is none, and HEAD's parent is the base, so that the
/// last commit is looked at; a first commit has none, and is its own base.
fn decide_base(head: &str, forks: [Option<String>; 2], parent: Option<String>) -> String {
    let ahead_of = forks.into_iter().flatten().find(|fork| fork != head);
    ahead_of.or(parent).unwrap_or_else(|| head.to_owned())
}

/// The test targets of a crate.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub(crate) struct Targets {
    pub lib: bool,
    /// Integration tests that run scripts as a whole: `tests/scripts.rs`.
    pub scripts: Vec<String>,
    /// Integration tests with scripts among other tests: `tests/all/scripts.rs`.
    pub mixed: Vec<String>,
}

impl Targets {
    /// `paths` are the files of the crate, from its directory.
    pub(crate) fn new<'a>(paths: impl IntoIterator<Item = &'a str>) -> Targets {
        let mut targets = Targets::default();
        let mut mixed = BTreeMap::new();
        for path in paths {
            targets.lib |= path == "src/lib.rs";
            let Some(rest) = path.strip_prefix("tests/").and_then(|rest| rest.strip_suffix(".rs")) else { continue };
            match rest.split_once('/') {
                None if rest.contains("script") => targets.scripts.push(rest.to_owned()),
                None => (),
                Some((dir, file)) => {
                    let (main, script) = mixed.entry(dir).or_insert((false, false));
                    *main |= file == "main";
                    *script |= file.contains("script");
                }
            }
        }
        // A directory without main.rs is no test of its own but a module of others.
        let whole = mixed.into_iter().filter(|(_, both)| *both == (true, true));
        targets.mixed = whole.map(|(dir, _)| dir.to_owned()).collect();
        targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(paths: &[&str]) -> Change {
        Change::new(paths.iter().copied(), |name| name != "gone")
    }

    #[test]
    fn files_belong_to_the_crate_of_their_directory() {
        let found = change(&["crates/wal/src/lib.rs", "crates/bolt/README.md", "crates/wal/Cargo.toml"]);
        assert_eq!(found.crates, BTreeSet::from(["bolt".to_owned(), "wal".to_owned()]));
        assert!(!found.manifests);
        assert_eq!(found.elsewhere, 0);
    }

    #[test]
    fn other_files_belong_to_none() {
        let paths =
            ["docs/testing.md", "interop/peers.txt", "crates/gone/src/lib.rs", "crates/README.md", "proto/Cargo.toml"];
        assert_eq!(change(&paths), Change { elsewhere: 5, ..Change::default() });
    }

    #[test]
    fn manifests_of_the_root_are_told_apart() {
        assert_eq!(change(&["Cargo.lock"]), Change { manifests: true, ..Change::default() });
        assert!(change(&["crates/wal/a.rs", "Cargo.toml"]).manifests);
    }

    #[test]
    fn the_base_is_the_nearest_fork_that_head_is_ahead_of() {
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(decide_base("h", [some("o"), some("m")], some("p")), "o");
        assert_eq!(decide_base("h", [None, some("m")], some("p")), "m");
        assert_eq!(decide_base("h", [some("h"), some("h")], some("p")), "p");
        assert_eq!(decide_base("h", [some("h"), None], some("p")), "p");
        assert_eq!(decide_base("h", [None, None], None), "h");
    }

    #[test]
    fn script_tests_are_found_by_their_names() {
        let paths = [
            "src/lib.rs",
            "tests/gate_scripts.rs",
            "tests/properties.rs",
            "tests/support/script.rs",
            "tests/all/main.rs",
            "tests/all/scripts.rs",
            "tests/one/main.rs",
            "testdata/scripts/a.txt",
        ];
        let targets = Targets::new(paths);
        assert!(targets.lib);
        assert_eq!(targets.scripts, ["gate_scripts"]);
        assert_eq!(targets.mixed, ["all"]);
        assert_eq!(Targets::new(["src/main.rs"]), Targets::default());
    }
}
