//! `cargo xtask tidy`: rules that neither the compiler nor clippy knows. Each finding says where and how to mend it.
//!
//! A line that must break a rule carries `tidy-allow: <reason>` in a comment on itself or on the line before.

mod code_map;
mod manifest;
mod path;
mod source;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The workspace to look at; the one this was built from unless given
    #[arg(long)]
    root: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = args.root.clone().map_or_else(workspace::root, Ok)?;
    let tree = Tree::read(&root)?;
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    println!("tidy: {} files, {errors} to mend, {} to look at", tree.files.len(), findings.len() - errors);
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = code_map::check(tree);
    for file in &tree.files {
        findings.extend(path::check(file));
        findings.extend(manifest::check(file));
        findings.extend(source::check(file));
    }
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    findings
}

/// The text files of the workspace: all that git tracks or would track.
struct Tree {
    files: Vec<File>,
}

struct File {
    /// From the root, with `/`.
    path: String,
    text: String,
}

impl Tree {
    fn read(root: &Path) -> Result<Tree> {
        let list = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("failed to run git, which lists the files to look at")?;
        if !list.status.success() {
            bail!("git ls-files failed in {}: {}", root.display(), String::from_utf8_lossy(&list.stderr).trim());
        }
        let mut files = Vec::new();
        for path in String::from_utf8_lossy(&list.stdout).split_terminator('\0') {
            let full = root.join(path);
            // A link has no text of its own, and a deleted file is still listed until that is committed.
            if !full.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                continue;
            }
            let bytes = fs::read(&full).with_context(|| format!("failed to read {}", full.display()))?;
            // What is not UTF-8 is a data file.
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File { path: path.to_owned(), text });
            }
        }
        Ok(Tree { files })
    }

    fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The `Cargo.toml` of each crate, with the crate's name, which is that of its directory.
    fn crates(&self) -> impl Iterator<Item = (&str, &File)> {
        self.files.iter().filter_map(|file| Some((crate_of_manifest(&file.path)?, file)))
    }
}

/// `crates/wal/Cargo.toml` → `wal`.
fn crate_of_manifest(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|name| !name.contains('/'))
}

impl File {
    /// Lines with their numbers, from 1, without those that are allowed to break a rule.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut allowed_by_previous = false;
        self.text.lines().enumerate().filter_map(move |(i, line)| {
            let marked = line.contains("tidy-allow: ");
            let allowed = marked || allowed_by_previous;
            allowed_by_previous = marked;
            (!allowed).then_some((i + 1, line))
        })
    }

    fn error(&self, line: usize, what: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding { severity: Severity::Error, path: self.path.clone(), line, what: what.into(), mend: mend.into() }
    }

    fn warning(&self, line: usize, what: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..self.error(line, what, mend) }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    severity: Severity,
    path: String,
    line: usize,
    what: String,
    mend: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Severity {
    Error,
    /// Worth a look; does not fail the check.
    Warning,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "",
            Severity::Warning => "(warning) ",
        };
        write!(f, "{}:{}: {word}{}\n    to mend: {}", self.path, self.line, self.what, self.mend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    /// `line: what`, to compare findings with.
    pub(super) fn brief(findings: Vec<Finding>) -> Vec<String> {
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn a_marked_line_and_the_one_after_it_are_left_alone() {
        let file = file("a", "one\n// tidy-allow: shown to users\ntwo\nthree // tidy-allow: as above\nfour\nfive");
        assert_eq!(file.lines().map(|(number, _)| number).collect::<Vec<_>>(), [1, 6]);
    }

    #[test]
    fn a_finding_can_be_clicked_and_followed() {
        let finding = file("src/a.rs", "").warning(7, "too long", "split it");
        assert_eq!(finding.to_string(), "src/a.rs:7: (warning) too long\n    to mend: split it");
    }
}
