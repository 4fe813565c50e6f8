//! Two API servers on one store: a gate that is flipped under load, and watches that go on, while the leader of the store is killed.

use std::{path::Path, process::Child};

use anyhow::{Context, Result, ensure};

use super::{
    super::{
        cluster::{Ending, Scenario, World, faults::pause, group::Group},
        server::{Program, Server},
    },
    api::Api,
    client_go::{command, finish, start},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "two servers: flips on real etcd", short: true, run: flips_on_etcd },
    Scenario { name: "two servers: flips on followers of etcd", short: false, run: flips_on_followers },
    Scenario { name: "two servers: flips, leader killed", short: true, run: flips_on_ours },
    Scenario { name: "two servers: watches on real etcd", short: true, run: watches_on_etcd },
    Scenario { name: "two servers: watches, leader killed", short: true, run: watches_on_ours },
    Scenario { name: "two servers: flips, etcd's leader killed", short: false, run: flips_on_three_etcds },
    Scenario { name: "two servers: watches, etcd's leader killed", short: false, run: watches_on_three_etcds },
];

/// The kind of the load, and its size in the short and in the long form.
struct Load {
    mode: &'static str,
    short: u32,
    long: u32,
}

const FLIPS: Load = Load { mode: "flips", short: 100, long: 1000 };
const WATCHES: Load = Load { mode: "watches", short: 200, long: 4000 };

fn flips_on_etcd(world: &World, base: &Path) -> Result<Ending> {
    on_one(world, base, &FLIPS)
}

/// Followers lag behind the leader by a moment; each server knows one of them only.
fn flips_on_followers(world: &World, base: &Path) -> Result<Ending> {
    let mut group = Group::found(base, &[&world.etcd; 3], &[])?;
    let leader = group.leader()?;
    let followers = (0..3).filter(|n| *n != leader).map(|n| group.members[n].endpoint());
    let start = |(n, store): (usize, String)| Api::start(world, &base.join(format!("api-{n}")), &[store], &[]);
    let mut apis = followers.enumerate().map(start).collect::<Result<Vec<_>>>()?;
    let said = finish(start_load(world, &apis, &FLIPS)?)?;
    apis.iter_mut().try_for_each(Api::check_well)?;
    group.stop_all();
    Ok(Ending::Well(said))
}

fn watches_on_etcd(world: &World, base: &Path) -> Result<Ending> {
    on_one(world, base, &WATCHES)
}

fn flips_on_ours(world: &World, base: &Path) -> Result<Ending> {
    on_three(world, base, &world.ours, &FLIPS)
}

fn watches_on_ours(world: &World, base: &Path) -> Result<Ending> {
    on_three(world, base, &world.ours, &WATCHES)
}

fn flips_on_three_etcds(world: &World, base: &Path) -> Result<Ending> {
    on_three(world, base, &world.etcd, &FLIPS)
}

fn watches_on_three_etcds(world: &World, base: &Path) -> Result<Ending> {
    on_three(world, base, &world.etcd, &WATCHES)
}

fn on_one(world: &World, base: &Path, load: &Load) -> Result<Ending> {
    let store = Server::start(&world.etcd, &base.join("store"))?;
    let mut apis = start_two(world, base, std::slice::from_ref(&store.endpoint))?;
    let said = finish(start_load(world, &apis, load)?)?;
    apis.iter_mut().try_for_each(Api::check_well)?;
    Ok(Ending::Well(said))
}

fn on_three(world: &World, base: &Path, program: &Program, load: &Load) -> Result<Ending> {
    let mut group = Group::found(base, &[program; 3], &[])?;
    let mut apis = start_two(world, base, &group.endpoints())?;
    let mut child = start_load(world, &apis, load)?;
    let kills = kill_leaders(&mut group, &mut child, if world.all { 10 } else { 2 });
    let said = finish(child)?;
    let kills = kills?;
    ensure!(kills > 0, "the load was over before a leader was killed: {said}");
    apis.iter_mut().try_for_each(Api::check_well)?;
    group.wait_ready()?;
    group.check_hashes()?;
    Ok(Ending::Well(format!("{said}; {kills} leaders killed")))
}

fn start_two(world: &World, base: &Path, stores: &[String]) -> Result<Vec<Api>> {
    ["api-1", "api-2"].iter().map(|name| Api::start(world, &base.join(name), stores, &[])).collect()
}

fn start_load(world: &World, apis: &[Api], load: &Load) -> Result<Child> {
    let apis: Vec<&Api> = apis.iter().collect();
    let count = if world.all { load.long } else { load.short };
    let mut command = command(world, load.mode, &apis)?;
    command.args(["-count", &count.to_string()]);
    start(command)
}

/// Kills whoever leads, until the load is over or it was done often enough. Each comes back before the next one goes.
fn kill_leaders(group: &mut Group, load: &mut Child, kills_max: usize) -> Result<usize> {
    for kills in 0..kills_max {
        pause(if kills == 0 { 300 } else { 1000 });
        if load.try_wait()?.is_some() {
            return Ok(kills);
        }
        let leader = group.leader()?;
        group.members[leader].kill();
        group.leader().context("after the leader was killed")?;
        group.restart(leader);
        group.wait_member(leader)?;
    }
    Ok(kills_max)
}
