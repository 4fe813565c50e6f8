//! Real etcdctl and lockgatectl on clusters of three: every command line of `parity-cluster.txt` runs through both, and
//! must have the same output and exit code.
//!
//! The cluster starts over for the second tool, on the same addresses, so that the ids are the same. Both are real
//! etcd; with `LOCKGATE_BIN` set, the second one's members are that program.

use std::{path::Path, process::Command};

use client::pb::StatusResponse;
use harness::{ETCD, Group, Member, etcd_dir, until};
use tokio::runtime::Runtime;

use crate::parity::{
    case::{self, Before, Case, next_second},
    normal::Normal,
    second_server,
    tool::{Printed, Tool},
};

const FLAGS: [&str; 1] = ["--unsafe-no-fsync"];

/// A cluster and a connection to it for the test itself.
struct Cluster {
    group: Group,
    runtime: Runtime,
}

#[test]
fn members_of_a_cluster_look_the_same() {
    let Some(dir) = etcd_dir(ETCD) else { return };
    let (etcd, etcdctl) = (dir.join("etcd"), dir.join("etcdctl"));
    let cases = case::parse(include_str!("parity-cluster.txt"));
    let mut cluster = Cluster { group: Group::start(&etcd, 3, &FLAGS), runtime: Runtime::new().unwrap() };
    let expected = cluster.run_all(&etcdctl, &cases);
    cluster.group.set_program(&second_server(&etcd));
    cluster.group.start_over(&FLAGS);
    let found = cluster.run_all(Path::new(env!("CARGO_BIN_EXE_lockgatectl")), &cases);
    let pairs = cases.iter().zip(expected.iter().zip(&found)).filter(|(_, (expected, found))| expected != found);
    let differences: Vec<_> = pairs
        .map(|(case, (expected, found))| format!("{}:\n--- etcdctl\n{expected}--- lockgatectl\n{found}", case.line))
        .collect();
    let (bad, all) = (differences.len(), cases.len());
    assert!(differences.is_empty(), "{bad} of {all} command lines differ:\n\n{}", differences.join("\n"));
    println!("{all} command lines agree");
}

impl Cluster {
    fn run_all(&mut self, tool: &Path, cases: &[Case]) -> Vec<String> {
        let mut normal = Normal::default();
        let all: Vec<_> = self.group.members().map(|member| member.address().to_owned()).collect();
        normal.word("ALL", &all.join(","));
        for (i, id) in self.lead_with_first().into_iter().enumerate() {
            normal.id(&format!("M{i}"), id);
            normal.word(&format!("CLIENT{i}"), &all[i]);
            normal.word(&format!("PEER{i}"), self.group.place(i).peer_url().trim_start_matches("http://"));
        }
        cases.iter().map(|case| self.run(tool, &mut normal, case)).collect()
    }

    /// Makes the first member the leader and returns the ids of all.
    fn lead_with_first(&self) -> Vec<u64> {
        self.settle();
        let statuses: Vec<_> = self.group.members().map(|member| self.status(member).unwrap()).collect();
        let ids: Vec<_> = statuses.iter().map(|status| status.header.unwrap().member_id).collect();
        let leader = ids.iter().position(|id| *id == statuses[0].leader).unwrap();
        if leader != 0 {
            let moved = async { self.group.member(leader).client().await.move_leader(ids[0]).await };
            self.runtime.block_on(moved).unwrap();
            self.settle();
        }
        ids
    }

    fn status(&self, member: &Member) -> Option<StatusResponse> {
        self.runtime.block_on(async { member.client().await.status().await }).ok()
    }

    /// Waits until the running members have the same leader and have applied the same entries.
    fn settle(&self) {
        until("the members agree", || {
            let statuses: Option<Vec<_>> = self.group.members().map(|member| self.status(member)).collect();
            let Some(statuses) = statuses else { return false };
            let first = &statuses[0];
            let is_equal = |status: &StatusResponse| {
                (status.leader, status.raft_applied_index) == (first.leader, first.raft_applied_index)
            };
            // One member of three has no leader.
            statuses.iter().all(is_equal) && (statuses.len() == 1 || first.leader != 0)
        });
    }

    fn run(&mut self, tool: &Path, normal: &mut Normal, case: &Case) -> String {
        for before in &case.before {
            self.prepare(before);
        }
        let args: Vec<_> = case.args.iter().map(|arg| normal.fill(arg)).collect();
        let endpoints = normal.fill("--endpoints={ALL}");
        let mut printed = call(tool, &endpoints, &args);
        if case.repeat && printed.code != Some(0) {
            until(&format!("{:?} succeeds", case.line), || {
                printed = call(tool, &endpoints, &args);
                printed.code == Some(0)
            });
        }
        if let Some(name) = &case.remember {
            normal.remember(name, &printed.stdout);
        }
        self.settle();
        sort_cluster(&normal.describe(case, &printed))
    }

    fn prepare(&mut self, before: &Before) {
        match before {
            Before::Stop(member) => self.group.kill(*member),
            Before::Run(member) => {
                self.group.start_member(*member, &FLAGS);
                self.settle();
            }
            Before::Leaderless(member) => until(&format!("member {member} has no leader"), || {
                self.status(self.group.member(*member)).is_some_and(|status| status.leader == 0)
            }),
            Before::NextSecond => next_second(),
        }
    }
}

fn call(tool: &Path, endpoints: &str, args: &[String]) -> Printed {
    let mut command = Command::new(tool);
    if !args.iter().any(|arg| arg.starts_with("--endpoints")) {
        command.arg(endpoints);
    }
    command.args(args).env_clear().env("PATH", "/usr/bin:/bin");
    Tool::start(command, "").end()
}

/// Sorts the list in `ETCD_INITIAL_CLUSTER`, which is in the order of ids; the new member has a different id each time.
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
