//! Clusters of real etcd 3.7 and Lockgate: either leads, sends snapshots to the other, learns from it, and takes its place.

use std::{path::Path, time::Instant};

use anyhow::{Context, Result, ensure};
use harness::Signal;

use super::{
    super::{server::Program, wait::until_ok},
    Ending, Scenario, World,
    faults::{SHORT_LOG, away, learner_id, pause, took_snapshot},
    group::Group,
    member::Host,
    traffic::Traffic,
    verdict,
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "mixed: two etcd, one ours", short: true, run: two_etcd },
    Scenario { name: "mixed: one etcd, two ours", short: false, run: one_etcd },
    Scenario { name: "mixed: etcd replaced one by one by ours", short: true, run: all_replaced },
    Scenario { name: "mixed: two replaced and put back", short: false, run: put_back },
    Scenario { name: "mixed: leader killed, paused", short: false, run: faults },
];

/// Starts a cluster that at least one real etcd holds at 3.7.
fn start(world: &World, base: &Path, programs: &[&Program]) -> Result<(Group, Traffic)> {
    let group = Group::found(base, programs, &SHORT_LOG)?;
    wait_version(&group, "3.7.0")?;
    let traffic = Traffic::start(group.endpoints(), world.seed)?;
    pause(500);
    Ok((group, traffic))
}

fn two_etcd(world: &World, base: &Path) -> Result<Ending> {
    both_ways(world, base, &[&world.etcd, &world.etcd, &world.ours])
}

fn one_etcd(world: &World, base: &Path) -> Result<Ending> {
    both_ways(world, base, &[&world.etcd, &world.ours, &world.ours])
}

/// The first of `programs` is etcd, the last is Lockgate.
fn both_ways(world: &World, base: &Path, programs: &[&Program]) -> Result<Ending> {
    let (mut group, traffic) = start(world, base, programs)?;
    let (etcd, ours) = (0, programs.len() - 1);
    for n in 0..programs.len() {
        group.move_leader(n).with_context(|| format!("{} leads", group.members[n].name))?;
        pause(1000);
    }
    by_snapshot(&mut group, ours, etcd).context("ours leads, etcd was away")?;
    by_snapshot(&mut group, etcd, ours).context("etcd leads, ours was away")?;
    for (leader, kind) in [(ours, &world.etcd), (etcd, &world.ours)] {
        group.move_leader(leader)?;
        let n = group.add(&format!("l{}", group.members.len()), kind, Host::default(), true)?;
        let id = learner_id(&group, n)?;
        group.promote(id).context("a learner of the other kind")?;
        group.wait_member(n)?;
        traffic.set_endpoints(group.endpoints());
        group.move_leader(n).context("the promoted learner leads")?;
        pause(500);
    }
    stays(&group, "3.7.0")?;
    Ok(verdict::finish(traffic, &mut group)?.into())
}

/// One member is away until the leader's log no longer reaches back to it.
fn by_snapshot(group: &mut Group, leader: usize, away_one: usize) -> Result<()> {
    group.move_leader(leader)?;
    group.members[away_one].kill();
    away(group, leader, 400)?;
    let said = group.members[away_one].log_text().len();
    group.restart(away_one);
    group.wait_member(away_one)?;
    took_snapshot(&group.members[away_one], said)
}

/// Waits until all members have the cluster version. A leader that could not ask all members at once decides again four
/// seconds later, and each member hears of a decision when it applies it.
pub(crate) fn wait_version(group: &Group, version: &str) -> Result<()> {
    until_ok(&format!("the cluster version is {version}"), || stays(group, version))
}

/// Fails if a member has another cluster version now.
pub(crate) fn stays(group: &Group, version: &str) -> Result<()> {
    for n in 0..group.members.len() {
        let found = group.cluster_version(n)?;
        ensure!(found == version, "{} says cluster version {found}, not {version}", group.members[n].name);
    }
    Ok(())
}

/// Takes the first member out and puts a new one of another kind, with an empty dir, in its place, at the end.
fn replace_first(group: &mut Group, traffic: &Traffic, name: &str, program: &Program) -> Result<()> {
    let id = group.id(0)?;
    group.remove(0, id)?;
    let n = group.add(name, program, Host::default(), false)?;
    group.wait_member(n)?;
    traffic.set_endpoints(group.endpoints());
    pause(1000);
    Ok(())
}

fn all_replaced(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = start(world, base, &[&world.etcd, &world.etcd, &world.etcd])?;
    for name in ["o1", "o2", "o3"] {
        stays(&group, "3.7.0")?;
        replace_first(&mut group, &traffic, name, &world.ours)?;
    }
    let start = Instant::now();
    wait_version(&group, "3.8.0")?;
    let rise = start.elapsed();
    until_ok("the storage version is 3.8.0", || {
        for n in 0..group.members.len() {
            let found = group.storage_version(n)?;
            ensure!(found == "3.8.0", "{} has storage version {found:?}", group.members[n].name);
        }
        Ok(())
    })?;
    let figures = verdict::finish(traffic, &mut group)?;
    Ok(Ending::Well(format!("3.8 at most {:.1} s after the last was ready; {figures}", rise.as_secs_f32() + 1.0)))
}

fn put_back(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = start(world, base, &[&world.etcd, &world.etcd, &world.etcd])?;
    for (name, program) in [("o1", &world.ours), ("o2", &world.ours)] {
        replace_first(&mut group, &traffic, name, program)?;
        stays(&group, "3.7.0")?;
    }
    // Long enough for a Lockgate leader to have raised the version, if it were wrong about the third.
    pause(8000);
    stays(&group, "3.7.0")?;
    // The real one that stayed is first now, and goes to the end so that the Lockgate members are replaced.
    group.members.rotate_left(1);
    for name in ["e1", "e2"] {
        replace_first(&mut group, &traffic, name, &world.etcd)?;
        stays(&group, "3.7.0")?;
    }
    ensure!(group.members.iter().all(|member| member.program.path == world.etcd.path), "all are real again");
    for n in 0..group.members.len() {
        group.members[n].stop()?;
        group.restart(n);
        group.wait_member(n).context("real etcd on the dir that ours filled")?;
    }
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn faults(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = start(world, base, &[&world.etcd, &world.ours, &world.ours])?;
    for n in 0..3 {
        group.move_leader(n)?;
        group.members[n].kill();
        pause(2500);
        group.restart(n);
        group.wait_member(n)?;
        group.move_leader(n)?;
        group.members[n].signal(Signal::STOP)?;
        pause(3000);
        group.members[n].signal(Signal::CONT)?;
        pause(1000);
    }
    stays(&group, "3.7.0")?;
    Ok(verdict::finish(traffic, &mut group)?.into())
}
