//! `cargo xtask quick`: the lane of a working copy, for the crates that it changes.

use std::{collections::BTreeMap, path::Path, process::ExitCode};

use anyhow::Result;

use crate::{
    change::{self, Change, Targets},
    runner::{Output, Runner},
    step::Step,
    summary, workspace,
};

const SECONDS_MAX: f64 = 180.0;

const HELP: &str = "\
A changed crate is one with a file that differs from the base: committed, edited or untracked. The
base is the fork point from origin/main or, without one, from main; on main itself it is HEAD~1. Crates that depend
on a changed one are not looked at: `cargo xtask test` does that. If Cargo.toml or Cargo.lock of the workspace
changed, every crate is compiled as well (`cargo check`).";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The revision to compare with
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Print the steps and run none
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = workspace::root()?;
    let base = change::base(&root, args.base.as_deref())?;
    let paths = change::paths(&root, &base)?;
    let exists = |name: &str| root.join("crates").join(name).join("Cargo.toml").is_file();
    let change = Change::new(paths.iter().map(String::as_str), exists);
    print!("{}", describe(&base, paths.len(), &change));
    let has_deny = workspace::answers("cargo-deny", &["--version"]);
    let steps = plan(&change, &targets(&root, &change)?, has_deny);
    if args.dry_run {
        steps.iter().for_each(|step| println!("{}: {step}", step.name));
        return Ok(ExitCode::SUCCESS);
    }
    let runner = Runner::new(&root, Output::Kept(workspace::target_dir(&root).join("xtask-quick")))?;
    let mut rows = Vec::new();
    for step in &steps {
        rows.push(runner.run(step)?);
        if runner.is_stopped() {
            break;
        }
    }
    print!("\n{}", summary::table(&rows));
    let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
    if seconds > SECONDS_MAX {
        println!("over the limit of {SECONDS_MAX} s for a warm target directory: run it again, or find what got slow");
    }
    Ok(summary::exit_code(&rows))
}

fn describe(base: &str, files: usize, change: &Change) -> String {
    let crates: Vec<&str> = change.crates.iter().map(String::as_str).collect();
    let crates = if crates.is_empty() { "none".to_owned() } else { crates.join(", ") };
    let mut text = format!("{files} files differ from {}; crates: {crates}\n", base.get(..12).unwrap_or(base));
    if change.manifests {
        text.push_str("Cargo.toml or Cargo.lock of the workspace changed: every crate is compiled, but only those above are tested\n");
    }
    text
}

fn targets(root: &Path, change: &Change) -> Result<BTreeMap<String, Targets>> {
    let of_crate = |name: &String| {
        let dir = format!("crates/{name}/");
        let list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", dir.as_str()];
        let paths = workspace::git_paths(root, &list)?;
        // A deleted file is listed until that is committed.
        let present = paths.iter().filter(|path| root.join(path).is_file());
        Ok((name.clone(), Targets::new(present.filter_map(|path| path.strip_prefix(&dir)))))
    };
    change.crates.iter().map(of_crate).collect()
}

fn plan(change: &Change, targets: &BTreeMap<String, Targets>, has_deny: bool) -> Vec<Step> {
    let mut steps = vec![
        Step::cargo("format", ["fmt", "--all", "--check"]),
        Step::cargo("tidy", ["run", "--quiet", "--package", "xtask", "--", "tidy"]),
    ];
    if has_deny {
        steps.push(Step::cargo("deny", ["deny", "check", "licenses", "bans", "sources"]));
    }
    if change.manifests {
        steps.push(Step::cargo("workspace", ["check", "--quiet", "--workspace", "--locked"]));
    }
    if !change.crates.is_empty() {
        let clippy = with_packages(&["clippy", "--quiet"], change.crates.iter());
        steps.push(Step::cargo("clippy", clippy.into_iter().chain(words(&["--all-targets", "--", "-D", "warnings"]))));
        let mut unit = with_packages(&["test", "--quiet"], change.crates.iter());
        // Without any library among the crates, cargo refuses `--lib`.
        if targets.values().any(|targets| targets.lib) {
            unit.push("--lib".to_owned());
        }
        unit.push("--bins".to_owned());
        steps.push(Step::cargo("unit tests", unit));
    }
    let whole = || targets.iter().filter(|(_, targets)| !targets.scripts.is_empty());
    if whole().next().is_some() {
        let mut args = with_packages(&["test", "--quiet"], whole().map(|(name, _)| name));
        let names: std::collections::BTreeSet<&String> = whole().flat_map(|(_, targets)| &targets.scripts).collect();
        args.extend(names.into_iter().flat_map(|name| ["--test".to_owned(), name.clone()]));
        steps.push(Step::cargo("script tests", args));
    }
    for (name, targets) in targets.iter().filter(|(_, targets)| !targets.mixed.is_empty()) {
        let mut args = words(&["test", "--quiet", "-p", name]);
        args.extend(targets.mixed.iter().flat_map(|test| ["--test".to_owned(), test.clone()]));
        args.push("script".to_owned());
        steps.push(Step::cargo(format!("script tests of {name}"), args));
    }
    steps
}

fn with_packages<'a>(command: &[&str], names: impl Iterator<Item = &'a String>) -> Vec<String> {
    words(command).into_iter().chain(names.flat_map(|name| ["-p".to_owned(), name.clone()])).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(change: &Change, targets: &[(&str, Targets)], has_deny: bool) -> Vec<String> {
        let targets = targets.iter().map(|(name, targets)| ((*name).to_owned(), targets.clone())).collect();
        plan(change, &targets, has_deny).iter().map(|step| format!("{}: {step}", step.name)).collect()
    }

    const ALWAYS: [&str; 2] = ["format: cargo fmt --all --check", "tidy: cargo run --quiet --package xtask -- tidy"];

    #[test]
    fn a_change_outside_crates_needs_only_the_cheap_steps() {
        assert_eq!(lines(&Change { elsewhere: 3, ..Change::default() }, &[], false), ALWAYS);
    }

    #[test]
    fn changed_crates_are_linted_and_tested_together() {
        let crates = ["auth", "interop", "mvcc"].map(str::to_owned).into();
        let change = Change { crates, ..Change::default() };
        let auth = Targets { lib: true, scripts: vec!["scripts".to_owned()], mixed: vec![] };
        let mvcc = Targets { lib: true, scripts: vec![], mixed: vec!["all".to_owned()] };
        let found = lines(&change, &[("auth", auth), ("interop", Targets::default()), ("mvcc", mvcc)], false);
        assert_eq!(
            found[2..],
            [
                "clippy: cargo clippy --quiet -p auth -p interop -p mvcc --all-targets -- -D warnings",
                "unit tests: cargo test --quiet -p auth -p interop -p mvcc --lib --bins",
                "script tests: cargo test --quiet -p auth --test scripts",
                "script tests of mvcc: cargo test --quiet -p mvcc --test all script",
            ]
        );
    }

    #[test]
    fn a_crate_without_a_library_is_tested_without_lib() {
        let change = Change { crates: ["interop".to_owned()].into(), ..Change::default() };
        let found = lines(&change, &[("interop", Targets::default())], false);
        assert_eq!(found[3], "unit tests: cargo test --quiet -p interop --bins");
    }

    #[test]
    fn changed_manifests_compile_the_workspace() {
        let found = lines(&Change { manifests: true, ..Change::default() }, &[], true);
        assert_eq!(found[2], "deny: cargo deny check licenses bans sources");
        assert_eq!(found[3..], ["workspace: cargo check --quiet --workspace --locked"]);
    }
}
