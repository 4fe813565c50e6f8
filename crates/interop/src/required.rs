//! The Go example of docs/required-features.md, built from `interop/go/required`, against the three kinds of servers. (The
//! other examples are run by `crates/lockgate/tests/required_docs.rs`, which also holds the page to that file.)

use std::{
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    fetch::CLIENTS,
    peer,
    report::Step,
    server::{Program, Server},
};

const FEATURE: &str = "AtomicIncrement";
const ON_MAX: Duration = Duration::from_secs(20);

pub fn run(etcd: &Program, lockgate: &Path) -> Result<Vec<Step>> {
    let ours = |value: bool| Program {
        path: lockgate.to_path_buf(),
        flags: vec![format!("--cluster-feature-gates={FEATURE}={value}")],
    };
    let mut steps = Vec::new();
    for (name, program, want) in [
        ("on", &ours(true), "0: put, with AtomicIncrement on"),
        ("off", &ours(false), "1: cluster feature AtomicIncrement is off"),
        ("real etcd", etcd, "2: would ignore require-feature"),
    ] {
        let dir = tempfile::tempdir()?;
        let server = Server::start(program, &dir.path().join("data"))?;
        if name == "on" {
            wait_until_on(&server)?;
        }
        let (code, said) = example(&server.endpoint)?;
        server.stop()?;
        let words = want.split_once(": ").map_or("", |(_, words)| words);
        // All that it says is shown only where the words are not there.
        let said = if said.contains(words) { words.to_owned() } else { said };
        steps.push(Step::new(name, want, format!("{code}: {said}")));
    }
    Ok(steps)
}

fn example(endpoint: &str) -> Result<(i32, String)> {
    let program = peer::find(&peer::cache_dir()?.join(CLIENTS), "go", "required")?;
    let output = Command::new(&program).env("ENDPOINT", endpoint).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("failed to run {}", program.display()))?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).trim().to_owned()))
}

fn wait_until_on(server: &Server) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < ON_MAX {
        if server.http()?.get("/feature-gates")?.body.contains("\"state\": \"on\"") {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    bail!("{FEATURE} is not on after {ON_MAX:?}")
}
