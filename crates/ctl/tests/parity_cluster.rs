//! Real etcdctl and lockgatectl on clusters of three: every command line of `parity-cluster.txt` runs through both, and
//! must print the same and end the same.
//!
//! The cluster begins anew for the second tool, on the same addresses, so that the ids are the same. Both are real
//! etcd; with `LOCKGATE_BIN` set, the second one's members are that program.

use crate::support;

use crate::parity::{case, normal};

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};

use case::{Before, Case};
use normal::Normal;
use support::{Server, peer};

const VERSION: &str = "3.7.3";

#[test]
fn members_of_a_cluster_look_the_same() {
    let (Some(etcd), Some(etcdctl)) = (peer(VERSION, "etcd"), peer(VERSION, "etcdctl")) else { return };
    let second = env::var_os("LOCKGATE_BIN").map_or_else(|| etcd.clone(), PathBuf::from);
    let cases = case::parse(include_str!("parity-cluster.txt"));
    let mut servers = Server::cluster(&etcd, 3);
    let expected = run_all(&etcdctl, &etcdctl, &mut servers, &cases);
    servers.iter_mut().for_each(|server| server.program = second.clone());
    Server::begin_again(&mut servers);
    let found = run_all(Path::new(env!("CARGO_BIN_EXE_lockgatectl")), &etcdctl, &mut servers, &cases);
    let pairs = cases.iter().zip(expected.iter().zip(&found)).filter(|(_, (expected, found))| expected != found);
    let differences: Vec<_> = pairs
        .map(|(case, (expected, found))| format!("{}:\n--- etcdctl\n{expected}--- lockgatectl\n{found}", case.line))
        .collect();
    let (bad, all) = (differences.len(), cases.len());
    assert!(differences.is_empty(), "{bad} of {all} command lines differ:\n\n{}", differences.join("\n"));
    println!("{all} command lines agree");
}

fn run_all(tool: &Path, etcdctl: &Path, servers: &mut [Server], cases: &[Case]) -> Vec<String> {
    let mut normal = Normal::default();
    let all: Vec<_> = servers.iter().map(|server| server.client.clone()).collect();
    normal.word("ALL", &all.join(","));
    for (i, id) in lead_with_first(etcdctl, &all).into_iter().enumerate() {
        normal.id(&format!("M{i}"), id);
        normal.word(&format!("CLIENT{i}"), &servers[i].client);
        normal.word(&format!("PEER{i}"), &servers[i].peer);
    }
    cases.iter().map(|case| run(tool, servers, &mut normal, case)).collect()
}

/// Makes the first member lead, whoever was elected, and returns the ids of all.
fn lead_with_first(etcdctl: &Path, endpoints: &[String]) -> Vec<u64> {
    let call = |args: &[&str]| Command::new(etcdctl).args(args).output().unwrap();
    let number = |text: &str, name: &str| -> u64 {
        let rest = text.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("no {name} in {text}"));
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let status = |endpoint: &String| {
        let output = call(&["--endpoints", endpoint, "endpoint", "status", "-w", "json"]);
        let text = String::from_utf8(output.stdout).unwrap();
        (number(&text, "member_id"), number(&text, "leader"))
    };
    let ids: Vec<_> = endpoints.iter().map(|endpoint| status(endpoint).0).collect();
    if status(&endpoints[0]).1 != ids[0] {
        let moved = call(&["--endpoints", &endpoints.join(","), "move-leader", &format!("{:x}", ids[0])]);
        assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    }
    ids
}

fn run(tool: &Path, servers: &mut [Server], normal: &mut Normal, case: &Case) -> String {
    for before in &case.before {
        match before {
            Before::Stop(member) => servers[*member].kill(),
            Before::Run(member) => servers[*member].run(),
            Before::Wait(time) => thread::sleep(*time),
        }
    }
    let args: Vec<_> = case.args.iter().map(|arg| normal.fill(arg)).collect();
    let mut command = Command::new(tool);
    if !args.iter().any(|arg| arg.starts_with("--endpoints")) {
        command.arg(normal.fill("--endpoints={ALL}"));
    }
    let output = command.args(args).env_clear().env("PATH", "/usr/bin:/bin").output().unwrap();
    if let Some(name) = &case.remember {
        normal.remember(name, &output.stdout);
    }
    // Whatever the command did, the cluster settles before the next one.
    thread::sleep(Duration::from_millis(100));
    describe(normal, case, &output)
}

fn describe(normal: &Normal, case: &Case, output: &Output) -> String {
    let stdout = if case.ignore_stdout { String::new() } else { normal.stdout(case, &output.stdout) };
    let stdout = sort_cluster(&stdout);
    let stderr = normal.stderr(case, &String::from_utf8_lossy(&output.stderr));
    let code = output.status.code().map_or("killed".to_owned(), |code| code.to_string());
    format!("stdout:\n{stdout}stderr:\n{stderr}exit: {code}\n")
}

/// The list in `ETCD_INITIAL_CLUSTER` is in the order of ids, and the new member's id is another each time.
fn sort_cluster(text: &str) -> String {
    let sort = |line: &str| match line.strip_prefix("ETCD_INITIAL_CLUSTER=\"").and_then(|l| l.strip_suffix("\"")) {
        None => format!("{line}\n"),
        Some(list) => {
            let mut pairs: Vec<_> = list.split(',').collect();
            pairs.sort_unstable();
            format!("ETCD_INITIAL_CLUSTER={:?}\n", pairs.join(","))
        }
    };
    text.lines().map(sort).collect()
}
