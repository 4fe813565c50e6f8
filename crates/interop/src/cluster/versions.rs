//! Up to our version and down to etcd's again, live and on the same dirs: rolling, turned round half-way, with members
//! that join or are killed meanwhile.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{
    super::{server::Program, unbase64, wait::until_ok},
    Ending, Scenario, World,
    faults::{SHORT_LOG, pause},
    group::Group,
    member::Host,
    mixed::{stays, wait_version},
    traffic::Traffic,
    verdict,
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "versions: etcd to ours and back, twice", short: true, run: there_and_back },
    Scenario { name: "versions: turned round on the way up", short: false, run: turned_on_the_way_up },
    Scenario { name: "versions: turned round on the way down", short: false, run: turned_on_the_way_down },
    Scenario { name: "versions: members join during a downgrade", short: false, run: joined },
    Scenario { name: "versions: all killed during a downgrade", short: false, run: killed },
];

/// Lockgate with every cluster feature wanted, so that the log holds what etcd could not read.
pub(super) fn gated(world: &World) -> Program {
    let mut ours = world.ours.clone();
    ours.flags.push("--cluster-feature-gates=AllAlpha=true".into());
    ours
}

fn start(world: &World, base: &Path, program: &Program) -> Result<(Group, Traffic)> {
    let group = Group::found(base, &[program; 3], &SHORT_LOG)?;
    wait_version(&group, if program.is_lockgate() { "3.8.0" } else { "3.7.0" })?;
    let traffic = Traffic::start(group.endpoints(), world.seed)?;
    pause(500);
    Ok((group, traffic))
}

/// Stops a member and starts another program on its dir.
pub(super) fn swap(group: &mut Group, n: usize, program: &Program) -> Result<()> {
    group.members[n].stop()?;
    group.members[n].program = program.clone();
    group.restart(n);
    group.wait_member(n).with_context(|| format!("{} on the dir of another version", group.members[n].name))?;
    pause(700);
    Ok(())
}

fn swap_all(group: &mut Group, program: &Program) -> Result<()> {
    (0..group.members.len()).try_for_each(|n| swap(group, n, program))
}

pub(super) fn is_at(group: &Group, version: &str) -> Result<()> {
    stays(group, version)?;
    for n in 0..group.members.len() {
        let found = group.storage_version(n)?;
        ensure!(found == version, "{} has storage version {found:?}", group.members[n].name);
    }
    Ok(())
}

/// Waits until all members have this cluster version and this storage version.
pub(super) fn wait_at(group: &Group, version: &str) -> Result<()> {
    until_ok(&format!("all members are at {version}"), || is_at(group, version))
}

/// A write that only our version has in its log, from every member.
fn write_newer(group: &Group) -> Result<()> {
    for member in &group.members {
        let before = counter(group)?;
        until_ok(&format!("{} increments", member.name), || {
            let answer = member.ask("/v3/kv/increment", &json!({"key": "Y291bnRlcg==", "delta": 1}));
            // A request without an answer may have been carried out, and must not be carried out again.
            if answer.is_err() && counter(group)? != before { Ok(()) } else { answer.map(drop) }
        })?;
    }
    Ok(())
}

fn counter(group: &Group) -> Result<String> {
    let answer = group.members[0].ask_until_ok("/v3/kv/range", &json!({"key": "Y291bnRlcg=="}))?;
    unbase64(answer["kvs"][0]["value"].as_str().unwrap_or_default())
}

fn downgrade(group: &Group, action: &str, version: &str) -> Result<()> {
    let body = json!({"action": action, "version": version});
    group.members[0].ask("/v3/maintenance/downgrade", &body).map(drop)
}

pub(super) fn go_down(group: &Group) -> Result<()> {
    downgrade(group, "ENABLE", "3.7.0")?;
    wait_at(group, "3.7.0")
}

fn job_has_ended(group: &Group) -> Result<()> {
    for member in &group.members {
        let status = member.ask("/v3/maintenance/status", &json!({}))?;
        let job = &status["downgradeInfo"];
        ensure!(!job["enabled"].as_bool().unwrap_or(false), "{} still has the job {job}", member.name);
    }
    Ok(())
}

/// Waits until no member has a downgrade job: the leader ends the job at its next look, and the others apply that.
fn wait_job_end(group: &Group) -> Result<()> {
    until_ok("the downgrade job has ended", || job_has_ended(group))
}

fn there_and_back(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = start(world, base, &world.etcd)?;
    let ours = gated(world);
    let rounds = if world.all { 2 } else { 1 };
    for round in 1..=rounds {
        swap_all(&mut group, &ours).context("up")?;
        wait_at(&group, "3.8.0").context("the version rises")?;
        write_newer(&group)?;
        go_down(&group)?;
        swap_all(&mut group, &world.etcd).context("down")?;
        wait_job_end(&group).context("the job ends by itself")?;
        is_at(&group, "3.7.0")?;
        let count = counter(&group)?;
        ensure!(count == (3 * round).to_string(), "the counter is {count}");
    }
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn turned_on_the_way_up(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = start(world, base, &world.etcd)?;
    let ours = gated(world);
    for n in [0, 1] {
        swap(&mut group, n, &ours)?;
        stays(&group, "3.7.0")?;
    }
    for n in [0, 1] {
        swap(&mut group, n, &world.etcd).context("turned round")?;
    }
    swap_all(&mut group, &ours).context("and up after all")?;
    wait_at(&group, "3.8.0")?;
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn turned_on_the_way_down(world: &World, base: &Path) -> Result<Ending> {
    let ours = gated(world);
    let (mut group, traffic) = start(world, base, &ours)?;
    write_newer(&group)?;
    go_down(&group)?;
    swap(&mut group, 0, &world.etcd)?;
    downgrade(&group, "CANCEL", "")?;
    // The others may learn of it a moment later than the one that was asked.
    wait_job_end(&group)?;
    // Long enough for a Lockgate leader to have raised the version, if it were wrong about the first.
    pause(9000);
    stays(&group, "3.7.0")?;
    swap(&mut group, 0, &ours)?;
    wait_at(&group, "3.8.0").context("cancelled")?;
    write_newer(&group)?;
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn joined(world: &World, base: &Path) -> Result<Ending> {
    let ours = gated(world);
    let (mut group, traffic) = start(world, base, &ours)?;
    write_newer(&group)?;
    go_down(&group)?;
    for (name, program) in [("o4", &ours), ("e5", &world.etcd)] {
        let n = group.add(name, program, Host::default(), false).with_context(|| format!("{name} joins"))?;
        group.wait_member(n).with_context(|| format!("{name} joins"))?;
        traffic.set_endpoints(group.endpoints());
    }
    wait_at(&group, "3.7.0")?;
    Ok(verdict::finish(traffic, &mut group)?.into())
}

/// At ever other moments after the job has begun; then the dirs must be etcd's.
fn killed(world: &World, base: &Path) -> Result<Ending> {
    let ours = gated(world);
    let (mut group, traffic) = start(world, base, &ours)?;
    for round in 0..6 {
        wait_at(&group, "3.8.0")?;
        write_newer(&group)?;
        // The version drops at the leader's next look, up to four seconds later.
        downgrade(&group, "ENABLE", "3.7.0")?;
        wait_for_drop(&group, round)?;
        group.stop_all();
        for n in 0..group.members.len() {
            group.restart(n);
        }
        group.wait_ready()?;
        wait_at(&group, "3.7.0")?;
        downgrade(&group, "CANCEL", "")?;
    }
    wait_at(&group, "3.8.0")?;
    go_down(&group)?;
    swap_all(&mut group, &world.etcd)?;
    wait_job_end(&group)?;
    Ok(verdict::finish(traffic, &mut group)?.into())
}

/// Until some member has seen the version drop, and a little longer in each round.
fn wait_for_drop(group: &Group, round: u64) -> Result<()> {
    until_ok("the version has dropped", || {
        let versions: Result<Vec<_>> = (0..group.members.len()).map(|n| group.cluster_version(n)).collect();
        ensure!(versions?.iter().any(|version| version == "3.7.0"), "the version has not dropped");
        Ok(())
    })?;
    pause(round * 15);
    Ok(())
}
