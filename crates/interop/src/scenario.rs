//! Scenarios that ask two servers the same and compare: programs that print JSON lines, etcdctl, and the JSON gateway.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{
    ctl,
    fetch::CLIENTS,
    gateway, peer,
    report::{self, Step},
    root,
    server::{Program, Server},
    tool,
};

/// A step's name and what came of it, without what differs by nature.
pub(crate) type Lines = Vec<(String, String)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    Clientv3,
    EtcdClient,
    Etcd3gw,
    Etcdctl,
    Gateway,
}

impl Scenario {
    pub(crate) const ALL: [Scenario; 5] =
        [Scenario::Clientv3, Scenario::EtcdClient, Scenario::Etcd3gw, Scenario::Etcdctl, Scenario::Gateway];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Scenario::Clientv3 => "clientv3 (Go)",
            Scenario::EtcdClient => "etcd-client (Rust)",
            Scenario::Etcd3gw => "etcd3gw (Python)",
            Scenario::Etcdctl => "etcdctl",
            Scenario::Gateway => "gateway",
        }
    }

    /// Both servers start empty and are asked at the same time.
    pub(crate) fn run(self, etcd: &Program, ours: &Program, dir: &Path) -> Result<Vec<Step>> {
        let ask = |program: &Program, name: &str| -> Result<Lines> {
            let server = Server::start(program, &dir.join(name))?;
            let lines = self.ask(&server).with_context(|| format!("against {}", program.path.display()))?;
            server.stop()?;
            Ok(lines)
        };
        let (left, right) = thread::scope(|scope| {
            let left = scope.spawn(|| ask(etcd, "left"));
            let right = ask(ours, "right");
            (left.join(), right)
        });
        let left = left.map_err(|_| anyhow::anyhow!("the thread that asks the reference panicked"))??;
        Ok(report::pair(left, right?))
    }

    fn ask(self, server: &Server) -> Result<Lines> {
        let cache = harness::peers_dir();
        match self {
            Scenario::Clientv3 => {
                run_program(vec![peer::find(&cache.join(CLIENTS), "go", "scenario")?], &server.endpoint)
            }
            Scenario::EtcdClient => {
                run_program(vec![peer::find(&cache.join(CLIENTS), "rust", "scenario")?], &server.endpoint)
            }
            Scenario::Etcd3gw => {
                let python = peer::find(&cache.join(CLIENTS), "python", "venv/bin/python")?;
                run_program(vec![python, root()?.join("interop/python/scenario.py")], &server.endpoint)
            }
            Scenario::Etcdctl => ctl::run(&peer::find(&cache, peer::ETCD, "etcdctl")?, &server.endpoint),
            Scenario::Gateway => gateway::run(&server.endpoint),
        }
    }
}

fn run_program(words: Vec<PathBuf>, endpoint: &str) -> Result<Lines> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(endpoint);
    let output = tool::output(command)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", words[0].display(), output.status, stderr.trim());
    }
    String::from_utf8(output.stdout)?.lines().map(read_line).collect()
}

fn read_line(line: &str) -> Result<(String, String)> {
    let mut value: Value = serde_json::from_str(line).with_context(|| format!("not a line of JSON: {line:?}"))?;
    let step = value.as_object_mut().and_then(|object| object.remove("step"));
    let Some(Value::String(step)) = step else { bail!("a line without its step: {line:?}") };
    Ok((step, value.to_string()))
}
