//! Runs the scenarios of `testdata/scripts`. `UPDATE_GOLDENFILES=1` rewrites what they print.

use crate::support;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use membership::{
    Answers, Change, Cluster, ClusterId, Downgrade, Founding, InitialCluster, Links, Member, MemberId, MemberVersions,
    RunningCluster, check_join_versions, check_not_bootstrapped, check_not_downgraded, decide_cluster_version,
    is_downgrade_done, longest_connected, plan_force_new_cluster, plan_join, plan_new_cluster, plan_reconciliation,
};
use proto::{Version, raftpb::ConfState};

#[test]
fn scripts() {
    support::run_scripts("scripts", 5, Script::run);
}

#[derive(Default)]
struct Script {
    members: BTreeMap<MemberId, Member>,
    removed: BTreeSet<MemberId>,
    local: MemberId,
    learners_max: Option<usize>,
    links: Links,
    version: Option<Version>,
    downgrade: Downgrade,
    answers: Answers,
    conf_state: Option<ConfState>,
    initial: InitialCluster,
    advertised: Vec<String>,
    matched: Option<BTreeMap<MemberId, u64>>,
}

impl Script {
    /// Commands that set the scene print nothing.
    fn run(&mut self, command: &str, args: &[&str]) -> Option<String> {
        match (command, args) {
            ("member", [id, urls, flags @ ..]) => _ = self.members.insert(number(id), member(id, urls, flags)),
            ("removed", ids) => self.removed.extend(ids.iter().map(|id| number(id))),
            ("local", [id]) => self.local = number(id),
            ("max-learners", [n]) => self.learners_max = n.parse().ok(),
            ("links", pairs) => self.links = pairs.iter().map(|p| link(p)).collect(),
            ("version", [v]) => self.version = v.parse().ok(),
            ("downgrade", [target]) => self.downgrade = Downgrade { enabled: true, target: (*target).into() },
            ("answer", [id, "-"]) => _ = self.answers.insert(number(id), None),
            ("answer", [id, server, cluster, of @ ..]) => {
                let is_ours = of != ["etcd"];
                let answer = MemberVersions { is_ours, server: (*server).into(), cluster: (*cluster).into() };
                self.answers.insert(number(id), Some(answer));
            }
            ("conf-state", lists) => self.conf_state = Some(conf_state(lists)),
            ("initial", [pairs]) => self.initial = initial(pairs),
            ("advertise", [urls]) => self.advertised = list(urls),
            ("matched", pairs) => self.matched = Some(pairs.iter().map(|p| matched(p)).collect()),
            ("follow", []) => self.matched = None,
            _ => return Some(self.ask(command, args)),
        }
        None
    }

    fn ask(&mut self, command: &str, args: &[&str]) -> String {
        let cluster = self.cluster();
        match (command, args) {
            ("apply", args) => {
                let mut cluster = cluster;
                let said = show(cluster.apply(change(args)), |changed| format!("{changed:?}"));
                self.members = cluster.members().map(|m| (m.id, m.clone())).collect();
                self.removed = cluster.removed().collect();
                said
            }
            ("may-add", [kind]) => ok(cluster.may_add(*kind == "learner", &self.links)),
            ("may-remove", [id]) => ok(cluster.may_remove(number(id), &self.links)),
            ("may-promote", [id]) => ok(cluster.may_promote(number(id), true, self.local, self.matched.as_ref())),
            ("new-member", [urls, now]) => {
                let member = cluster.new_member(&list(urls), false, now.parse().expect("seconds"));
                format!("{} {}", member.id, member.peer_urls.join(","))
            }
            ("next-leader", ids) => longest_connected(&self.links, ids.iter().map(|id| number(id)))
                .map_or("nobody".into(), |id| id.to_string()),
            ("decide", [local]) => {
                let local = local.parse().expect("a version");
                let (decision, notes) = decide_cluster_version(self.version, &self.downgrade, local, &self.answers);
                let notes: String = notes.iter().map(|note| format!("\n  {note}")).collect();
                format!("{decision:?}{notes}")
            }
            ("downgraded", []) => is_downgrade_done(&self.downgrade, &self.answers).to_string(),
            ("start", [binary]) => ok(check_not_downgraded(binary.parse().expect("a version"), self.version)),
            ("fits", [binary, rest @ ..]) => {
                let binary = binary.parse().expect("a version");
                ok(check_join_versions(binary, self.local, &self.answers, rest == ["downgrading"]))
            }
            ("reconcile", [applied]) => self.reconcile(applied.parse().expect("an index")),
            ("found", [name, token]) => {
                let plan = plan_new_cluster(name, &self.initial, &self.advertised, token, &mut resolve);
                show(plan, founding)
            }
            ("join", [name]) => {
                let max = self.learners_max.unwrap_or(1);
                show(plan_join(name, &self.initial, &self.running(), max, &mut resolve), founding)
            }
            ("bootstrapped", []) => ok(check_not_bootstrapped(self.local, Some(&self.running()))),
            ("force-new-cluster", ids) => {
                let ids = ids.iter().map(|id| number(id)).collect();
                let changes = plan_force_new_cluster(&ids, self.local);
                changes.iter().map(|c| format!("{c:?}")).collect::<Vec<_>>().join("\n")
            }
            _ => panic!("{command} {args:?} is no command"),
        }
    }

    fn cluster(&self) -> Cluster {
        let cluster = Cluster::new(ClusterId(9), self.local, self.members.clone(), self.removed.clone(), self.version);
        cluster.with_learners_max(self.learners_max.unwrap_or(1))
    }

    fn running(&self) -> RunningCluster {
        RunningCluster { id: ClusterId(0xc1), members: self.members.values().cloned().collect() }
    }

    fn reconcile(&self, applied: u64) -> String {
        let stored = self.conf_state.as_ref();
        let plan = plan_reconciliation(stored, &self.members, &self.removed, self.local, applied);
        show(plan, |plan| {
            let findings: String = plan.findings.iter().map(|finding| format!("\n  {finding}")).collect();
            let (voters, learners) = (&plan.conf_state.voters, &plan.conf_state.learners);
            format!("voters {voters:?} learners {learners:?} rewrite {}{findings}", plan.rewrite)
        })
    }
}

fn show<T, E: std::fmt::Display>(result: Result<T, E>, text: impl Fn(&T) -> String) -> String {
    match result {
        Ok(value) => text(&value),
        Err(error) => format!("error: {error}"),
    }
}

fn ok<E: std::fmt::Display>(result: Result<(), E>) -> String {
    show(result, |()| "ok".into())
}

fn founding(plan: &Founding) -> String {
    let members: String = plan.members.values().map(|m| format!("\n  {m}")).collect();
    format!("cluster {} local {}{members}", plan.cluster_id, plan.local)
}

fn change(args: &[&str]) -> Change {
    match args {
        ["add", id, urls, flags @ ..] => {
            Change::Add { member: member(id, urls, flags), as_learner: flags.contains(&"learner") }
        }
        ["promote", id] => Change::Promote(number(id)),
        ["remove", id] => Change::Remove(number(id)),
        ["update", id, urls] => Change::Update { id: number(id), peer_urls: list(urls) },
        _ => panic!("{args:?} is no change"),
    }
}

/// `started` gives the member the name `mID` and a client URL, as publishing does.
fn member(id: &str, urls: &str, flags: &[&str]) -> Member {
    let started = flags.contains(&"started");
    Member {
        id: number(id),
        peer_urls: list(urls),
        is_learner: flags.contains(&"learner"),
        name: if started { format!("m{id}") } else { String::new() },
        client_urls: if started { vec![format!("http://client-{id}")] } else { Vec::new() },
    }
}

fn number(text: &str) -> MemberId {
    MemberId(u64::from_str_radix(text, 16).expect("an id in hex"))
}

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|t| !t.is_empty()).map(str::to_owned).collect()
}

fn link(pair: &str) -> (MemberId, Duration) {
    let (id, seconds) = pair.split_once('=').expect("ID=SECONDS");
    (number(id), Duration::from_secs_f64(seconds.parse().expect("seconds")))
}

fn matched(pair: &str) -> (MemberId, u64) {
    let (id, index) = pair.split_once('=').expect("ID=INDEX");
    (number(id), index.parse().expect("an index"))
}

fn conf_state(lists: &[&str]) -> ConfState {
    let mut state = ConfState::default();
    for entry in lists {
        let (name, ids) = entry.split_once('=').expect("LIST=IDS");
        let ids = list(ids).iter().map(|id| number(id).0).collect();
        match name {
            "voters" => state.voters = ids,
            "learners" => state.learners = ids,
            "outgoing" => state.voters_outgoing = ids,
            _ => panic!("{name} is no list of a configuration"),
        }
    }
    state
}

fn initial(pairs: &str) -> InitialCluster {
    let mut initial = InitialCluster::new();
    for (name, url) in list(pairs).iter().filter_map(|pair| pair.split_once('=')) {
        initial.entry(name.to_owned()).or_default().push(url.to_owned());
    }
    initial
}

/// The only name there is: `one.test`.
fn resolve(host: &str) -> Result<String, String> {
    match host {
        "one.test:2380" => Ok("10.0.0.1:2380".into()),
        host if host.starts_with(|c: char| c.is_ascii_digit()) => Ok(host.into()),
        other => Err(format!("lookup {other}: no such host")),
    }
}
