//! Members that may not join or start: with the wrong token, a lost or foreign dir, clashing or missing URLs, another
//! version. Real etcd is led into the same; Lockgate must end (or go on) as it does and log its words.

use std::{fs, path::Path, thread, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::{
    super::{http::Http, peer, server::Program},
    Ending, Scenario, World,
    group::Group,
    member::{Host, Member},
    verdict,
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "refused: bad starts, as real etcd", short: true, run: bad_starts },
    Scenario { name: "refused: older etcd, older cluster", short: true, run: other_versions },
];

/// How long a member that takes no part is asked for an answer.
const UNSERVED: Duration = Duration::from_secs(3);

/// An action on a healthy cluster of one kind, and the words that the refused member must log.
struct Case {
    name: &'static str,
    says: &'static str,
    /// The member that is to be refused, started.
    start: fn(&mut Group) -> Result<Member>,
    /// It runs on, as etcd's does, but never takes part.
    runs_on: bool,
}

const CASES: &[Case] = &[
    Case { name: "dir lost, started as new", says: "has already been bootstrapped", start: dir_lost, runs_on: false },
    Case { name: "wrong token", says: "cluster ID mismatch", start: wrong_token, runs_on: true },
    Case { name: "not a member", says: "member count is unequal", start: not_a_member, runs_on: false },
    Case { name: "too few members named", says: "member count is unequal", start: too_few, runs_on: false },
    Case { name: "two members, one URL", says: "has duplicate url", start: clashing, runs_on: false },
    Case { name: "itself not named", says: "couldn't find local name", start: not_named, runs_on: false },
    Case {
        name: "no peer to be found",
        says: "could not retrieve cluster information from the given URLs",
        start: no_peers,
        runs_on: false,
    },
    Case {
        name: "removed, started again",
        says: "the member has been permanently removed from the cluster",
        start: removed,
        runs_on: false,
    },
];

fn bad_starts(world: &World, base: &Path) -> Result<Ending> {
    let run = |program: &Program, name: &str| -> Result<Vec<String>> {
        let dir = base.join(name);
        fs::create_dir_all(&dir)?;
        against(program, &dir).with_context(|| format!("with {name}"))
    };
    let (ours, etcd) = thread::scope(|scope| {
        let etcd = scope.spawn(|| run(&world.etcd, "etcd"));
        (run(&world.ours, "ours"), etcd.join())
    });
    let (ours, etcd) = (ours?, etcd.map_err(|_| anyhow::anyhow!("the run with etcd panicked"))??);
    let alone = alone(&world.ours, base)?;
    for ((case, ours), etcd) in CASES.iter().zip(&ours).zip(&etcd) {
        // A removed member of etcd ends with 0 or 1, by what tells it first: its log, or a peer.
        let same = ours == etcd || case.name.starts_with("removed") && ours.starts_with("exit");
        ensure!(same, "{}: ours ended with {ours}, etcd with {etcd}", case.name);
    }
    Ok(Ending::Well(format!(
        "{} cases as etcd's; alone at start SIGTERM takes {:.1} s",
        CASES.len(),
        alone.as_secs_f32()
    )))
}

/// How each case ended. The cluster goes on all the time.
fn against(program: &Program, base: &Path) -> Result<Vec<String>> {
    let mut group = Group::found(base, &[program, program, program], &[])?;
    let mut endings = Vec::new();
    for case in CASES {
        let mut refused = (case.start)(&mut group).with_context(|| case.name.to_owned())?;
        let ending = judge(case, &mut refused).with_context(|| case.name.to_owned())?;
        refused.kill();
        still_serves(&group)?;
        endings.push(ending);
    }
    group.members.retain(Member::running);
    verdict::check_logs(&group)?;
    Ok(endings)
}

fn judge(case: &Case, refused: &mut Member) -> Result<String> {
    if case.runs_on {
        refused.wait_log(0, &[case.says])?;
        ensure!(refused.try_end().is_none(), "it ended");
        let read = json!({"key": "eA=="});
        let served =
            Http::connect_within(&refused.endpoint(), UNSERVED).and_then(|mut http| http.call("/v3/kv/range", &read));
        ensure!(served.is_err(), "it serves");
        return Ok("runs on, unheard".to_owned());
    }
    let status = refused.wait_end()?;
    let log = refused.log_text();
    ensure!(log.contains(case.says), "it does not say {:?}:\n{}", case.says, refused.log_tail());
    ensure!(!log.contains("panicked at"), "it panicked:\n{}", refused.log_tail());
    Ok(status.code().map_or("a signal".to_owned(), |code| format!("exit {code}")))
}

/// The others go on: at once, or after an election if the one that is gone led them.
fn still_serves(group: &Group) -> Result<()> {
    group.members[0].ask_until_ok("/v3/kv/put", &json!({"key": "eA==", "value": "eA=="})).map(drop)
}

/// A member that does not belong to the group.
fn stranger(group: &Group, name: &str) -> Member {
    Member::new(name, &group.members[0].program, &group.base, Host::default())
}

/// The third member stops, and someone comes in its place with an empty dir.
fn in_place_of_third(group: &mut Group, flags: &[&str]) -> Result<Member> {
    let initial = group.initial();
    if group.members[2].running() {
        group.members[2].kill();
    }
    let third = group.members.remove(2);
    let (dir, log) = (third.dir.clone(), third.log.clone());
    let name = third.name.clone();
    let mut again = third;
    again.dir = group.base.join(format!("{name}-empty-{}", flags.len()));
    again.log = again.dir.with_extension("log");
    again.start(&initial, "new", flags);
    // The group's own third keeps name, ports and dir, but does not run.
    let mut kept = again.twin();
    (kept.dir, kept.log) = (dir, log);
    group.members.push(kept);
    Ok(again)
}

fn dir_lost(group: &mut Group) -> Result<Member> {
    in_place_of_third(group, &[])
}

fn wrong_token(group: &mut Group) -> Result<Member> {
    in_place_of_third(group, &["--initial-cluster-token=another"])
}

fn not_a_member(group: &mut Group) -> Result<Member> {
    let mut member = stranger(group, "stranger");
    member.start(&format!("{},{}", group.initial(), member.entry()), "existing", &[]);
    Ok(member)
}

fn too_few(group: &mut Group) -> Result<Member> {
    let mut member = stranger(group, "few");
    member.start(&format!("{},{}", group.members[0].entry(), member.entry()), "existing", &[]);
    Ok(member)
}

fn clashing(group: &mut Group) -> Result<Member> {
    let mut member = stranger(group, "clash");
    member.start(&format!("other={},{}", member.peer_url(), member.entry()), "new", &[]);
    Ok(member)
}

fn not_named(group: &mut Group) -> Result<Member> {
    let mut member = stranger(group, "unnamed");
    member.start(&group.initial(), "new", &[]);
    Ok(member)
}

fn no_peers(group: &mut Group) -> Result<Member> {
    let (mut member, other) = (stranger(group, "lonely"), stranger(group, "away"));
    member.start(&format!("{},{}", other.entry(), member.entry()), "existing", &[]);
    Ok(member)
}

fn removed(group: &mut Group) -> Result<Member> {
    let initial = group.initial();
    group.restart(2);
    group.wait_member(2)?;
    let id = group.id(2)?;
    let mut third = group.remove(2, id)?;
    third.log = third.dir.with_extension("removed.log");
    third.start(&initial, "existing", &[]);
    Ok(third)
}

/// One of three that does not reach the others waits for them, and ends by SIGTERM. Returns how long that takes.
fn alone(program: &Program, base: &Path) -> Result<Duration> {
    let mut group = Group::prepare(base, &[program, program, program], &vec![Host::default(); 3], &[]);
    group.start_as(0, "new");
    group.members[0].wait_log(0, &["prober detected unhealthy status"])?;
    if let Some(status) = group.members[0].try_end() {
        bail!("it should wait for the others, but ended with {status}:\n{}", group.members[0].log_tail());
    }
    group.members[0].stop()
}

/// Only 3.7 shares a cluster with Lockgate: 3.5 and 3.6 may not join Lockgate's, nor Lockgate theirs.
fn other_versions(world: &World, base: &Path) -> Result<Ending> {
    let mut pairs = Vec::new();
    for dir in [peer::ETCD_3_5, peer::ETCD_3_6] {
        let older = Program::new(peer::find(&world.cache, dir, "etcd")?);
        pairs.push((world.ours.clone(), older.clone(), format!("{dir} joins ours")));
        pairs.push((older, world.ours.clone(), format!("{dir} is joined by ours")));
    }
    let said: Vec<Result<String>> = thread::scope(|scope| {
        let join = |(founder, joiner, name): &(Program, Program, String)| {
            let dir = base.join(name.replace(' ', "-"));
            fs::create_dir_all(&dir)?;
            let ending = joined(founder, joiner, &dir).with_context(|| name.clone())?;
            Ok(format!("{name}: {ending}"))
        };
        let threads: Vec<_> = pairs.iter().map(|pair| scope.spawn(move || join(pair))).collect();
        let panicked = || Err(anyhow::anyhow!("a run panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    });
    Ok(Ending::Well(said.into_iter().collect::<Result<Vec<_>>>()?.join("; ")))
}

fn joined(founder: &Program, joiner: &Program, base: &Path) -> Result<String> {
    let mut group = Group::found(base, &[founder, founder, founder], &[])?;
    let n = group.add("joiner", joiner, Host::default(), true)?;
    let status = group.members[n].wait_end()?;
    let log = group.members[n].log_text();
    ensure!(log.contains("incompatible with current running cluster"), "it says:\n{}", group.members[n].log_tail());
    still_serves(&group)?;
    group.members.truncate(n);
    verdict::check_logs(&group)?;
    Ok(format!("refused with {status}"))
}
