//! The Go example of docs/required-features.md, built from `interop/go/required`, against the three kinds of servers. (The
//! other examples are run by `crates/lockgate/tests/required_docs.rs`, which also holds the page to that file.)

use std::{path::Path, process::Command};

use anyhow::Result;

use super::{
    fetch::CLIENTS,
    peer,
    report::Step,
    server::{Program, Server},
    tool,
    wait::until_some,
};

const FEATURE: &str = "AtomicIncrement";

pub(crate) fn run(etcd: &Program, lockgate: &Path, dir: &Path) -> Result<Vec<Step>> {
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
        let server = Server::start(program, &dir.join(name))?;
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
    let program = peer::find(&harness::peers_dir().join(CLIENTS), "go", "required")?;
    let mut command = Command::new(program);
    command.env("ENDPOINT", endpoint);
    let output = tool::output(command)?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).trim().to_owned()))
}

fn wait_until_on(server: &Server) -> Result<()> {
    until_some(&format!("{FEATURE} is on"), || {
        let gates = server.http()?.get("/feature-gates")?;
        Ok(gates.body.contains("\"state\": \"on\"").then_some(()))
    })
}
