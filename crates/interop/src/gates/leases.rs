//! `PersistedLeaseCheckpoints`: while it is on no change of leader gives a lease its time back. Off, and with etcd's own
//! server-level gate off, it does, as in etcd. What is stored is the same to the byte on every member.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::{
    super::{
        cluster::{
            Ending, Scenario, World, faults::pause, group::Group, member::Member, storage_faults::tool, verdict,
        },
        load::number,
        server::Program,
    },
    gated::{CHECKPOINTS, Gated, proposing},
    log::{self, Stored},
};

pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "leases: survive leaders while on", short: true, run: survive },
    Scenario { name: "leases: begin anew while off, as etcd's", short: false, run: begin_anew },
    Scenario { name: "leases: checkpoints of ours in a mixed cluster", short: false, run: mixed_ours },
    Scenario { name: "leases: checkpoints of etcd in a mixed cluster", short: false, run: mixed_etcd },
];

const TTL: u64 = 600;
/// Of real etcd, where it cannot be changed.
const ETCD_INTERVAL: Duration = Duration::from_secs(300);
const SERVER_GATES: &str = "--feature-gates=LeaseCheckpoint=true,LeaseCheckpointPersist=true";

/// With checkpoints every second.
pub fn often(program: &Program) -> Program {
    let mut program = program.clone();
    program.flags.push("--lease-checkpoint-interval=1s".to_owned());
    program
}

pub fn grant(member: &Member, ttl: u64) -> Result<u64> {
    number(&member.ask("/v3/lease/grant", &json!({"TTL": ttl.to_string()}))?["ID"])
}

/// Whole seconds that are left.
pub fn time_to_live(member: &Member, lease: u64) -> Result<u64> {
    number(&member.ask("/v3/lease/timetolive", &json!({"ID": lease.to_string()}))?["TTL"])
}

/// The leases as stored, after all members were found to have the same at the same index.
pub fn level(world: &World, group: &Group, base: &Path) -> Result<Stored> {
    let mut found = Vec::new();
    // Checkpoints go on being made: until a moment was met in which none came between.
    for _ in 0..10 {
        found = group.members.iter().map(|member| stored(world, member, base)).collect::<Result<Vec<_>>>()?;
        if found.windows(2).all(|pair| pair[0].0 == pair[1].0) {
            ensure!(found.windows(2).all(|pair| pair[0].1 == pair[1].1), "leases differ on disk: {found:?}");
            return Ok(found.pop().context("there are members")?.1);
        }
        pause(100);
    }
    let indices: Vec<u64> = found.iter().map(|(index, _)| *index).collect();
    bail!("members were never met at one index: {indices:?}")
}

/// From a snapshot of the member's database, with the index it is as of.
fn stored(world: &World, member: &Member, base: &Path) -> Result<(u64, Stored)> {
    let file = base.join(format!("{}-look.db", member.name));
    let _ = fs::remove_file(&file);
    tool(&world.etcdctl, &["--endpoints", &member.endpoint(), "snapshot", "save", &file.to_string_lossy()])?;
    log::leases(&file)
}

/// The remaining time in a stored lease; 0 if it was never checkpointed.
pub fn remaining(stored: &Stored, lease: u64) -> Result<i64> {
    use prost::Message;
    let record = stored.iter().find(|(key, _)| *key == lease.to_be_bytes());
    let (_, value) = record.with_context(|| format!("lease {lease:x} is not stored"))?;
    Ok(proto::leasepb::Lease::decode(value.as_slice())?.remaining_ttl)
}

/// Leadership goes once around; what is left of the lease each time.
fn around(group: &Group, lease: u64) -> Result<Vec<u64>> {
    let mut left = Vec::new();
    for n in 0..group.members.len() {
        group.move_leader(n)?;
        pause(300);
        left.push(time_to_live(&group.members[n], lease)?);
    }
    Ok(left)
}

fn survive(world: &World, base: &Path) -> Result<Ending> {
    let program = often(&proposing(&world.ours, "PersistedLeaseCheckpoints=true"));
    let mut gated = Gated::of(base, &[&program, &program, &program], &[])?;
    gated.wait_on(CHECKPOINTS)?;
    let lease = grant(&gated.group.members[0], TTL)?;
    let start = Instant::now();
    pause(5000);
    let left = around(&gated.group, lease)?;
    gated.kill_leader()?;
    let leader = gated.group.leader()?;
    let last = time_to_live(&gated.group.members[leader], lease)?;
    let gone = start.elapsed().as_secs();
    // A leader may give back what was not yet checkpointed, and the time of the election that made it leader.
    let most = TTL - 4;
    ensure!(left.iter().all(|left| *left <= most), "of {TTL} s {left:?} are left after 5 s");
    ensure!(last + gone / 2 <= TTL, "{last} s are left {gone} s later");
    let stored = level(world, &gated.group, base)?;
    ensure!(remaining(&stored, lease)? > 0, "no checkpoint was stored");
    Ok(Ending::Well(format!("of {TTL} s {left:?} are left, {last} after {gone} s; {}", gated.finish()?)))
}

fn begin_anew(world: &World, base: &Path) -> Result<Ending> {
    let once = |name: &str, program: &Program| -> Result<Vec<u64>> {
        let dir = base.join(name);
        fs::create_dir_all(&dir)?;
        let group = Group::found(&dir, &[program, program, program], &[])?;
        let lease = grant(&group.members[0], TTL)?;
        pause(4000);
        let left = around(&group, lease)?;
        let stored = level(world, &group, &dir)?;
        ensure!(remaining(&stored, lease)? == 0, "a checkpoint was made: {}", remaining(&stored, lease)?);
        Ok(left)
    };
    let (ours, etcd) = (once("ours", &often(&world.ours))?, once("etcd", &world.etcd)?);
    // The first leader may be who it was.
    for left in [&ours, &etcd] {
        ensure!(left[1..].iter().all(|left| *left >= TTL - 2), "of {TTL} s {left:?} are left");
    }
    // etcd's own gate goes on deciding where the cluster feature is off.
    let mut program = often(&world.ours);
    program.flags.push(SERVER_GATES.to_owned());
    let group = Group::found(base, &[&program, &program, &program], &[])?;
    let lease = grant(&group.members[0], TTL)?;
    pause(4000);
    let kept = around(&group, lease)?;
    ensure!(kept.iter().all(|left| *left <= TTL - 3), "with LeaseCheckpoint of {TTL} s {kept:?} are left");
    verdict::check_logs(&group)?;
    Ok(Ending::Well(format!("of {TTL} s {ours:?} are left, etcd {etcd:?}; with LeaseCheckpoint {kept:?}")))
}

/// Ours lead and checkpoint every second; etcd stores the same.
fn mixed_ours(world: &World, base: &Path) -> Result<Ending> {
    let mut ours = often(&world.ours);
    ours.flags.push(SERVER_GATES.to_owned());
    let group = Group::found(base, &[&ours, &ours, &world.etcd], &[])?;
    group.move_leader(0)?;
    let lease = grant(&group.members[2], TTL)?;
    pause(4000);
    let stored = level(world, &group, base)?;
    let left = remaining(&stored, lease)?;
    ensure!((1..=TTL as i64 - 2).contains(&left), "{left} s are stored");
    // What is stored holds for whoever leads next, of either kind.
    let around = around(&group, lease)?;
    ensure!(around.iter().all(|left| *left <= TTL - 2), "of {TTL} s {around:?} are left");
    verdict::check_logs(&group)?;
    Ok(Ending::Well(format!("{left} s stored on all, byte for byte; {around:?} left around")))
}

/// etcd leads, with both of its gates; it checkpoints after five minutes, which ours store as it does.
fn mixed_etcd(world: &World, base: &Path) -> Result<Ending> {
    let mut etcd = world.etcd.clone();
    etcd.flags.push(SERVER_GATES.to_owned());
    let group = Group::found(base, &[&etcd, &world.ours, &world.ours], &[])?;
    group.move_leader(0)?;
    let lease = grant(&group.members[1], TTL)?;
    let start = Instant::now();
    loop {
        pause(2000);
        let stored = level(world, &group, base)?;
        let left = remaining(&stored, lease)?;
        if left > 0 {
            let around = around(&group, lease)?;
            verdict::check_logs(&group)?;
            let after = start.elapsed().as_secs();
            return Ok(Ending::Well(format!("{left} s stored on all after {after} s; {around:?} left around")));
        }
        ensure!(start.elapsed() < 2 * ETCD_INTERVAL, "etcd made no checkpoint");
        ensure!(group.leader()? == 0, "etcd lost its leadership");
    }
}
