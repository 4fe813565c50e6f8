//! Up to our version and down to etcd's again, live and on the same dirs: rolling, turned round half-way, with members
//! that join or are killed meanwhile.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{
    super::server::Program,
    Ending, Scenario, World,
    faults::{SHORT_LOG, pause},
    group::Group,
    member::Host,
    mixed::{stays, wait_until},
    traffic::Traffic,
    verdict,
};

pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "versions: etcd to ours and back, twice", short: true, run: there_and_back },
    Scenario { name: "versions: turned round on the way up", short: false, run: turned_on_the_way_up },
    Scenario { name: "versions: turned round on the way down", short: false, run: turned_on_the_way_down },
    Scenario { name: "versions: members join during a downgrade", short: false, run: joined },
    Scenario { name: "versions: all killed during a downgrade", short: false, run: killed },
];

/// A look at all members every four seconds, and two of them before a version rises.
pub const SETTLE_MAX: Duration = Duration::from_secs(25);
/// As etcd's default, and some more.
const JOB_MAX: Duration = Duration::from_secs(15);

/// Ours, with every cluster feature wanted, so that the log holds what etcd could not read.
pub fn gated(world: &World) -> Program {
    let mut ours = world.ours.clone();
    ours.flags.push("--cluster-feature-gates=AllAlpha=true".into());
    ours
}

fn start(world: &World, base: &Path, program: &Program) -> Result<(Group, Traffic)> {
    let group = Group::found(base, &[program; 3], &SHORT_LOG)?;
    let traffic = Traffic::start(group.endpoints(), world.seed)?;
    pause(500);
    Ok((group, traffic))
}

/// Stops a member and starts another program on its dir.
pub fn swap(group: &mut Group, n: usize, program: &Program) -> Result<()> {
    group.members[n].stop()?;
    group.members[n].program = program.clone();
    group.restart(n)?;
    group.wait_member(n).with_context(|| format!("{} on the dir of another version", group.members[n].name))?;
    pause(700);
    Ok(())
}

fn swap_all(group: &mut Group, program: &Program) -> Result<()> {
    (0..group.members.len()).try_for_each(|n| swap(group, n, program))
}

pub fn is_at(group: &Group, version: &str) -> Result<()> {
    stays(group, version)?;
    for n in 0..group.members.len() {
        let found = group.storage_version(n)?;
        ensure!(found == version, "{} has storage version {found:?}", group.members[n].name);
    }
    Ok(())
}

/// A write that only our version has in its log, from every member.
fn write_newer(group: &Group) -> Result<()> {
    for member in &group.members {
        wait_until(SETTLE_MAX, || {
            member.ask("/v3/kv/increment", &json!({"key": "Y291bnRlcg==", "delta": 1})).map(drop)
        })?;
    }
    Ok(())
}

fn counter(group: &Group) -> Result<String> {
    let answer = group.members[0].ask("/v3/kv/range", &json!({"key": "Y291bnRlcg=="}))?;
    Ok(answer["kvs"][0]["value"].as_str().unwrap_or_default().to_owned())
}

fn downgrade(group: &Group, action: &str, version: &str) -> Result<()> {
    let body = json!({"action": action, "version": version});
    group.members[0].ask("/v3/maintenance/downgrade", &body).map(drop)
}

pub fn go_down(group: &Group) -> Result<()> {
    downgrade(group, "ENABLE", "3.7.0")?;
    wait_until(SETTLE_MAX, || is_at(group, "3.7.0"))
}

fn job_has_ended(group: &Group) -> Result<()> {
    for member in &group.members {
        let status = member.ask("/v3/maintenance/status", &json!({}))?;
        let job = &status["downgradeInfo"];
        ensure!(!job["enabled"].as_bool().unwrap_or(false), "{} still has the job {job}", member.name);
    }
    Ok(())
}

fn there_and_back(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = start(world, base, &world.etcd)?;
    let ours = gated(world);
    let rounds = if world.all { 2 } else { 1 };
    for round in 1..=rounds {
        swap_all(&mut group, &ours).context("up")?;
        wait_until(SETTLE_MAX, || is_at(&group, "3.8.0")).context("the version rises")?;
        write_newer(&group)?;
        go_down(&group)?;
        swap_all(&mut group, &world.etcd).context("down")?;
        wait_until(JOB_MAX, || job_has_ended(&group)).context("the job ends by itself")?;
        is_at(&group, "3.7.0")?;
        let count = counter(&group)?;
        ensure!(decoded(&count) == (3 * round).to_string(), "the counter is {}", decoded(&count));
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
    wait_until(SETTLE_MAX, || is_at(&group, "3.8.0"))?;
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
    wait_until(SETTLE_MAX, || job_has_ended(&group))?;
    // Long enough for a leader of ours to have raised the version, if it were wrong about the first.
    pause(9000);
    stays(&group, "3.7.0")?;
    swap(&mut group, 0, &ours)?;
    wait_until(SETTLE_MAX, || is_at(&group, "3.8.0")).context("cancelled")?;
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
    wait_until(SETTLE_MAX, || is_at(&group, "3.7.0"))?;
    Ok(verdict::finish(traffic, &mut group)?.into())
}

/// At ever other moments after the job has begun; then the dirs must be etcd's.
fn killed(world: &World, base: &Path) -> Result<Ending> {
    let ours = gated(world);
    let (mut group, traffic) = start(world, base, &ours)?;
    for round in 0..6 {
        wait_until(SETTLE_MAX, || is_at(&group, "3.8.0"))?;
        write_newer(&group)?;
        // The version drops at the leader's next look, up to four seconds later.
        downgrade(&group, "ENABLE", "3.7.0")?;
        wait_for_drop(&group, round)?;
        group.stop_all()?;
        for n in 0..group.members.len() {
            group.restart(n)?;
        }
        group.wait_ready()?;
        wait_until(SETTLE_MAX, || is_at(&group, "3.7.0"))?;
        downgrade(&group, "CANCEL", "")?;
    }
    wait_until(SETTLE_MAX, || is_at(&group, "3.8.0"))?;
    go_down(&group)?;
    swap_all(&mut group, &world.etcd)?;
    wait_until(JOB_MAX, || job_has_ended(&group))?;
    Ok(verdict::finish(traffic, &mut group)?.into())
}

/// Until some member has seen the version drop, and a little longer in each round.
fn wait_for_drop(group: &Group, round: u64) -> Result<()> {
    wait_until(SETTLE_MAX, || {
        let versions: Result<Vec<_>> = (0..group.members.len()).map(|n| group.cluster_version(n)).collect();
        ensure!(versions?.iter().any(|version| version == "3.7.0"), "the version has not dropped");
        Ok(())
    })?;
    pause(round * 15);
    Ok(())
}

/// Of base64, which the gateway speaks.
fn decoded(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |byte: u8| DIGITS.iter().position(|digit| *digit == byte).unwrap_or(0) as u32;
    let groups = text.as_bytes().chunks(4).map(|chunk| chunk.iter().fold(0, |bits, byte| bits << 6 | value(*byte)));
    let bytes: Vec<u8> = groups.flat_map(|bits| bits.to_be_bytes()[1..].to_vec()).filter(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
