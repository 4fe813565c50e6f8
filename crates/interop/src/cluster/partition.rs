//! Three Lockgate members on hosts of their own: the leader partitioned away, deaf, mute, behind a slow link.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{Ending, Scenario, World, faults::pause, group::Group, netns::Net, traffic::Traffic, verdict};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "netns: leader unplugged", short: true, run: unplugged },
    Scenario { name: "netns: leader cut from members, not clients", short: true, run: isolated },
    Scenario { name: "netns: leader mute (one way)", short: false, run: mute },
    Scenario { name: "netns: leader deaf (one way)", short: false, run: deaf },
    Scenario { name: "netns: two members cut from each other", short: false, run: split_pair },
    Scenario { name: "netns: slow link", short: false, run: slow_link },
];

/// A cluster under load on hosts of its own, or the reason why this machine has none.
fn on_hosts(world: &World, base: &Path) -> Result<Result<(Group, Traffic, Net), Ending>> {
    let net = match Net::new(3) {
        Ok(net) => net,
        Err(error) => return Ok(Err(Ending::Skipped(format!("{error:#}")))),
    };
    let group = Group::found_at(base, &[&world.ours, &world.ours, &world.ours], &net.hosts(), &[])?;
    let traffic = Traffic::start(group.endpoints(), world.seed)?;
    pause(1000);
    Ok(Ok((group, traffic, net)))
}

/// A fault and its end; the leader is the one that it is about.
struct Fault {
    begin: fn(&Net, usize) -> Result<()>,
    end: fn(&Net, usize) -> Result<()>,
    /// It costs the leader its place.
    deposes: bool,
}

fn with_fault(world: &World, base: &Path, fault: &Fault) -> Result<Ending> {
    let (mut group, traffic, net) = match on_hosts(world, base)? {
        Ok(parts) => parts,
        Err(skipped) => return Ok(skipped),
    };
    for _ in 0..if world.all { 3 } else { 1 } {
        let leader = group.leader()?;
        (fault.begin)(&net, leader)?;
        pause(4000);
        let next = group.leader_among(&|n| n != leader || !fault.deposes).context("under the fault")?;
        ensure!(next != leader || !fault.deposes, "{} still leads", group.members[leader].name);
        (fault.end)(&net, leader)?;
        pause(2500);
    }
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn unplugged(world: &World, base: &Path) -> Result<Ending> {
    with_fault(world, base, &Fault { begin: Net::unplug, end: Net::plug, deposes: true })
}

fn isolated(world: &World, base: &Path) -> Result<Ending> {
    with_fault(world, base, &Fault { begin: Net::isolate, end: Net::rejoin, deposes: true })
}

fn others(n: usize) -> impl Iterator<Item = usize> {
    (0..3).filter(move |other| *other != n)
}

fn next(n: usize) -> usize {
    (n + 1) % 3
}

fn mute(world: &World, base: &Path) -> Result<Ending> {
    let begin = |net: &Net, n: usize| others(n).try_for_each(|other| net.lose(n, other));
    let end = |net: &Net, n: usize| others(n).try_for_each(|other| net.heal(n, other));
    with_fault(world, base, &Fault { begin, end, deposes: true })
}

fn deaf(world: &World, base: &Path) -> Result<Ending> {
    let begin = |net: &Net, n: usize| others(n).try_for_each(|other| net.lose(other, n));
    let end = |net: &Net, n: usize| others(n).try_for_each(|other| net.heal(other, n));
    with_fault(world, base, &Fault { begin, end, deposes: true })
}

/// The leader and one follower do not reach each other, the third reaches both. Pre-vote keeps the follower quiet.
fn split_pair(world: &World, base: &Path) -> Result<Ending> {
    let begin = |net: &Net, n: usize| net.lose(n, next(n)).and_then(|()| net.lose(next(n), n));
    let end = |net: &Net, n: usize| net.heal(n, next(n)).and_then(|()| net.heal(next(n), n));
    with_fault(world, base, &Fault { begin, end, deposes: false })
}

fn slow_link(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic, net) = match on_hosts(world, base)? {
        Ok(parts) => parts,
        Err(skipped) => return Ok(skipped),
    };
    let mut how = "";
    for n in 0..if world.all { 3 } else { 1 } {
        let slow = if n == 0 { group.leader()? } else { group.follower()? };
        how = net.slow(slow)?;
        pause(5000);
        net.unslow(slow)?;
        pause(1000);
    }
    Ok(Ending::Well(format!("{how}; {}", verdict::finish(traffic, &mut group)?)))
}
