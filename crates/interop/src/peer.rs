//! The real programs that Lockgate is compared with (`interop/peers.txt`), and their places on this machine.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

const TABLE: &str = include_str!("../../../interop/peers.txt");

/// The version whose answers are compared with Lockgate's.
pub(crate) const ETCD: &str = "etcd-3.7.3";
pub(crate) const ETCD_3_6: &str = "etcd-3.6.16";
pub(crate) const ETCD_3_5: &str = "etcd-3.5.33";
pub(crate) const ETCD_3_8: &str = "etcd-3.8.0-alpha.0";
pub(crate) const BBOLT: &str = "bbolt-1.5.0";

/// One program of one peer.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct Program {
    pub dir: &'static str,
    pub name: &'static str,
    pub module: &'static str,
    pub version: &'static str,
    /// The directory of its `main` package inside the module, `.` for the root.
    pub package: &'static str,
    pub only_all: bool,
    /// Modules to take at the same version, separated by commas; empty for those that the program asks for.
    pub with: &'static str,
}

impl Program {
    /// The modules for `go get`.
    pub(crate) fn modules(&self) -> impl Iterator<Item = String> {
        let with = self.with.split(',').filter(|module| !module.is_empty());
        [self.module].into_iter().chain(with).map(|module| format!("{module}@{}", self.version))
    }

    pub(crate) fn import_path(&self) -> String {
        if self.package == "." { self.module.to_owned() } else { format!("{}/{}", self.module, self.package) }
    }
}

pub(crate) fn programs() -> Result<Vec<Program>> {
    parse(TABLE)
}

fn parse(table: &'static str) -> Result<Vec<Program>> {
    let rows = table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    rows.map(parse_row).collect()
}

fn parse_row(row: &'static str) -> Result<Program> {
    let words: Vec<_> = row.split_whitespace().collect();
    let [dir, name, module, version, package, set @ ("default" | "all"), ref with @ ..] = words[..] else {
        bail!(
            "cannot read this row of interop/peers.txt: {row:?}; \
             write: directory program module version package default|all [modules]"
        );
    };
    Ok(Program { dir, name, module, version, package, only_all: set == "all", with: with.first().unwrap_or(&"") })
}

/// The path of a built program, or what to do to get it.
pub(crate) fn find(cache: &Path, dir: &str, name: &str) -> Result<PathBuf> {
    let path = cache.join(dir).join(name);
    if !path.is_file() {
        bail!("{} is not built: run `cargo xtask interop fetch --all` (needs Go)", path.display());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_peer_that_code_names() {
        assert_eq!(ETCD, format!("etcd-{}", harness::ETCD));
        let programs = programs().expect("the table reads");
        for dir in [ETCD, ETCD_3_6, ETCD_3_5] {
            for name in ["etcd", "etcdctl", "etcdutl"] {
                assert!(programs.iter().any(|p| (p.dir, p.name) == (dir, name)), "no {dir}/{name}");
            }
        }
        assert!(programs.iter().any(|p| p.dir == ETCD_3_8 && p.only_all));
        let bbolt = programs.iter().find(|p| p.dir == BBOLT).expect("bbolt is listed");
        assert_eq!(bbolt.import_path(), "go.etcd.io/bbolt/cmd/bbolt");
    }

    #[test]
    fn directories_and_versions_agree() {
        for program in programs().expect("the table reads") {
            let version = program.version.trim_start_matches('v');
            assert!(program.dir.ends_with(version), "{} holds {}", program.dir, program.version);
        }
    }

    #[test]
    fn rejects_a_bad_row_and_names_it() {
        let error = parse("etcd-1 etcd module\n").expect_err("three words are too few").to_string();
        assert!(error.contains("\"etcd-1 etcd module\""), "{error}");
    }
}
