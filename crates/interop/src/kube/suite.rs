//! Kubernetes' own integration tests of custom resources, with a Lockgate server in the place of the one that they start (`interop/crd-suite`).

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::{
    cluster::{Ending, Scenario, World},
    fetch::{CLIENTS, files_below, go, run_command, with_tries},
    peer, root,
    server::Server,
    tool,
};

pub(crate) const SCENARIOS: &[Scenario] = &[Scenario { name: "apiextensions tests", short: false, run }];

/// Where the client is kept, and its sources.
pub(crate) const NAME: &str = "crd-suite";
/// Programs, and the packages that they are the tests of.
pub(crate) const PROGRAMS: [(&str, &str); 2] = [("integration.test", ""), ("conversion.test", "conversion")];

const MODULE: &str = "k8s.io/apiextensions-apiserver";
const TESTS: &str = "test/integration";

/// A copy of the module with our fixtures in it: files of Go's own module cache must not be replaced.
pub(crate) fn build(sources: &Path, into: &Path) -> Result<()> {
    for name in ["go.mod", "go.sum", "suite.go"] {
        fs::copy(sources.join(name), into.join(name)).with_context(|| format!("failed to copy {name}"))?;
    }
    let copy = into.join("upstream");
    let _ = fs::remove_dir_all(&copy);
    copy_tree(&module(sources)?, &copy)?;
    copy_tree(&sources.join("fixtures"), &copy.join(TESTS).join("fixtures"))?;
    run_command(go(into).args(["mod", "edit", &format!("-replace={MODULE}=./upstream")]))?;
    for (program, package) in PROGRAMS {
        let package = Path::new(MODULE).join(TESTS).join(package);
        let output = into.join(program);
        with_tries("build", || {
            run_command(go(into).args(["test", "-c", "-vet=off", "-o"]).arg(&output).arg(&package))
        })?;
    }
    Ok(())
}

/// Where Go keeps the module.
fn module(sources: &Path) -> Result<PathBuf> {
    let output = go(sources).args(["mod", "download", "-json", MODULE]).output().context("failed to run go")?;
    let said: Value = serde_json::from_slice(&output.stdout).context("`go mod download` did not answer with JSON")?;
    let dir = said["Dir"].as_str().with_context(|| format!("{MODULE} cannot be had: {}", said["Error"]))?;
    Ok(PathBuf::from(dir))
}

/// Files are written again, as those of the module cache cannot be written to.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for path in files_below(from)? {
        let target = to.join(path.strip_prefix(from)?);
        fs::create_dir_all(target.parent().context("a file has a directory")?)?;
        fs::write(&target, fs::read(&path)?).with_context(|| format!("failed to write {}", target.display()))?;
    }
    Ok(())
}

fn run(world: &World, base: &Path) -> Result<Ending> {
    let store = Server::start(&world.etcd, &base.join("store"))?;
    let text = fs::read_to_string(root()?.join("interop").join(NAME).join("left-out.txt"))?;
    let left_out = left_out(&text)?;
    // Tests run in the directory of their package.
    let ours = fs::canonicalize(&world.ours.path)?;
    let mut counted = Counted::default();
    for (program, package) in PROGRAMS {
        let path = peer::find(&world.cache.join(CLIENTS), NAME, program)?;
        let dir = path.with_file_name("upstream").join(TESTS).join(package);
        let mut tests = Command::new(&path);
        tests
            .args(["-test.v", "-test.timeout=30m", "-test.skip", &left_out.join("|")])
            .current_dir(&dir)
            .env("LOCKGATE", &ours)
            .env("KUBE_INTEGRATION_ETCD_URL", format!("http://{}", store.endpoint))
            .env("TMPDIR", base);
        let output = tool::output(tests)?;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        fs::write(base.join(program).with_extension("log"), &said)?;
        counted.add(&said);
        if !output.status.success() {
            bail!("{program} ended with {}; failed: {}", output.status, counted.failed.join(", "));
        }
    }
    Ok(Ending::Well(format!("{} tests and parts of tests, {} patterns left out", counted.passed, left_out.len())))
}

/// The patterns of the tests that cannot pass; each must have a reason.
fn left_out(text: &str) -> Result<Vec<&str>> {
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| match row.split_once("  ") {
        Some((pattern, why)) if !why.trim().is_empty() => Ok(pattern),
        _ => bail!("no reason is given for {row:?}"),
    })
    .collect()
}

#[derive(Default)]
struct Counted {
    passed: usize,
    failed: Vec<String>,
}

impl Counted {
    /// Reads lines such as `    --- PASS: TestPatch/of (0.02s)`.
    fn add(&mut self, said: &str) {
        for line in said.lines() {
            let line = line.trim_start();
            self.passed += usize::from(line.starts_with("--- PASS: "));
            let failed = line.strip_prefix("--- FAIL: ").and_then(|rest| rest.split(' ').next());
            self.failed.extend(failed.map(str::to_owned));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let mut counted = Counted::default();
        counted
            .add("=== RUN   TestA\n    --- PASS: TestA/b (0.00s)\n--- FAIL: TestA (1.00s)\n--- SKIP: TestC (0.00s)\n");
        assert_eq!((counted.passed, counted.failed), (1, vec!["TestA".to_owned()]));
    }

    #[test]
    fn who_is_left_out_has_a_reason() {
        assert_eq!(left_out("# why\n\nTestA/b  no such thing\nTestC  nor this\n").unwrap(), ["TestA/b", "TestC"]);
        assert!(left_out("TestA").is_err());
        let kept = include_str!("../../../../interop/crd-suite/left-out.txt");
        assert!(!left_out(kept).unwrap().is_empty());
    }
}
