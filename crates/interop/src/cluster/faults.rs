//! Three Lockgate members on loopback, whose processes are killed, paused, restarted, replaced and added under load.

use std::{path::Path, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use harness::Signal;

use super::{
    super::wait::until_some,
    Ending, Scenario, World,
    group::Group,
    member::{Host, Member},
    traffic::Traffic,
    verdict,
};

/// Small, so that a member that is away for seconds comes back by a snapshot of the database.
pub(crate) const SHORT_LOG: [&str; 2] = ["--snapshot-count=100", "--snapshot-catchup-entries=20"];

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "ours: leader killed", short: true, run: leader_killed },
    Scenario { name: "ours: leader paused", short: true, run: leader_paused },
    Scenario { name: "ours: rolling restarts", short: true, run: rolling_restarts },
    Scenario { name: "ours: follower killed, dir kept", short: false, run: follower_killed },
    Scenario { name: "ours: follower back by snapshot", short: false, run: follower_by_snapshot },
    Scenario { name: "ours: member replaced", short: false, run: member_replaced },
    Scenario { name: "ours: learner added and promoted", short: false, run: learner_promoted },
    Scenario { name: "ours: all killed at once", short: false, run: all_killed },
    Scenario { name: "ours: founded by two of three, killed", short: true, run: founded_by_two },
];

pub(crate) fn ours(world: &World, base: &Path, flags: &[&str]) -> Result<(Group, Traffic)> {
    let group = Group::found(base, &[&world.ours, &world.ours, &world.ours], flags)?;
    let traffic = Traffic::start(group.endpoints(), world.seed)?;
    pause(1000);
    Ok((group, traffic))
}

pub(crate) fn pause(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}

fn rounds(world: &World, short: usize) -> usize {
    if world.all { 3 * short } else { short }
}

fn leader_killed(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, &[])?;
    for _ in 0..rounds(world, 2) {
        let leader = group.leader()?;
        group.members[leader].kill();
        pause(2500);
        group.leader().context("after the leader was killed")?;
        group.restart(leader);
        group.wait_member(leader)?;
        pause(500);
    }
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn leader_paused(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, &[])?;
    for round in 0..rounds(world, 2) {
        let leader = group.leader()?;
        group.members[leader].signal(Signal::STOP)?;
        pause(3000 + 1000 * (round as u64 % 3));
        let next = group.leader_among(&|n| n != leader).context("while the leader is paused")?;
        ensure!(next != leader, "a paused member leads");
        group.members[leader].signal(Signal::CONT)?;
        pause(1500);
    }
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn rolling_restarts(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, &[])?;
    let mut slowest = Duration::ZERO;
    for round in 0..rounds(world, 3) {
        let n = round % group.members.len();
        slowest = slowest.max(group.members[n].stop()?);
        group.restart(n);
        group.wait_member(n)?;
        pause(500);
    }
    // The leader hands over before it ends, so that nobody waits for an election; the last round is the leader's.
    let leader = group.leader()?;
    slowest = slowest.max(group.members[leader].stop()?);
    group.restart(leader);
    group.wait_member(leader)?;
    let figures = verdict::finish(traffic, &mut group)?;
    Ok(Ending::Well(format!("{figures}, slowest SIGTERM {:.1} s", slowest.as_secs_f32())))
}

fn follower_killed(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, &[])?;
    for _ in 0..rounds(world, 2) {
        let follower = group.follower()?;
        group.members[follower].kill();
        pause(1500);
        group.restart(follower);
        group.wait_member(follower)?;
        pause(500);
    }
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn follower_by_snapshot(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, &SHORT_LOG)?;
    for _ in 0..rounds(world, 1) {
        let (follower, leader) = (group.follower()?, group.leader()?);
        group.members[follower].kill();
        away(&group, leader, 500)?;
        let said = group.members[follower].log_text().len();
        group.restart(follower);
        group.wait_member(follower)?;
        took_snapshot(&group.members[follower], said)?;
    }
    Ok(verdict::finish(traffic, &mut group)?.into())
}

/// Waits until the load has made that many revisions.
pub(crate) fn away(group: &Group, n: usize, revisions: u64) -> Result<()> {
    let wanted = group.revision(n)? + revisions;
    until_some(&format!("the load has made {revisions} revisions"), || Ok((group.revision(n)? >= wanted).then_some(())))
}

/// Waits until a member has logged, after the first `from` bytes, that it took a snapshot from its leader. Lockgate and etcd
/// log the same words.
pub(crate) fn took_snapshot(member: &Member, from: usize) -> Result<()> {
    member.wait_log(from, &["applied snapshot", "received and saved database snapshot"])
}

fn member_replaced(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, &SHORT_LOG)?;
    for round in 0..rounds(world, 1) {
        let n = if round == 0 { group.leader()? } else { group.follower()? };
        let id = group.id(n)?;
        group.members[n].kill();
        group.remove(n, id)?;
        let n = group.add(&format!("r{round}"), &world.ours, Host::default(), false)?;
        group.wait_member(n)?;
        traffic.set_endpoints(group.endpoints());
        pause(1000);
    }
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn learner_promoted(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, &SHORT_LOG)?;
    let n = group.add("learner", &world.ours, Host::default(), true)?;
    let id = learner_id(&group, n)?;
    group.promote(id)?;
    group.wait_member(n)?;
    traffic.set_endpoints(group.endpoints());
    pause(1500);
    group.move_leader(n).context("the promoted member leads")?;
    pause(1500);
    Ok(verdict::finish(traffic, &mut group)?.into())
}

/// The id of a new member, once it answers; a learner refuses most requests, but reports its status.
pub(crate) fn learner_id(group: &Group, n: usize) -> Result<u64> {
    let what = format!("{} reports its status", group.members[n].name);
    until_some(&what, || Ok(group.id(n).ok().filter(|id| *id != 0)))
}

fn all_killed(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, &SHORT_LOG)?;
    for _ in 0..rounds(world, 1) {
        group.stop_all();
        pause(300);
        for n in 0..group.members.len() {
            group.restart(n);
        }
        group.wait_ready()?;
        pause(1500);
    }
    Ok(verdict::finish(traffic, &mut group)?.into())
}

/// The first leader cannot ask the third member for its version and sets 3.0 meanwhile; dirs must start from that too.
fn founded_by_two(world: &World, base: &Path) -> Result<Ending> {
    let programs = [&world.ours, &world.ours, &world.ours];
    let mut group = Group::prepare(base, &programs, &vec![Host::default(); 3], &[]);
    group.start_as(0, "new");
    group.start_as(1, "new");
    group.wait_ready()?;
    let traffic = Traffic::start(group.endpoints(), world.seed)?;
    pause(4000);
    for n in [0, 1] {
        group.members[n].kill();
        group.restart(n);
        group.wait_member(n).context("killed before the cluster version was decided")?;
    }
    group.start_as(2, "new");
    group.wait_member(2)?;
    pause(2000);
    Ok(verdict::finish(traffic, &mut group)?.into())
}
