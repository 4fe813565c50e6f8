//! `PersistedLeaseCheckpoints`: while it is on no change of leader gives a lease its time back. Off, and with etcd's own
//! server-level gate off, it does, as in etcd. What is stored is the same to the byte on every member.

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{
    super::{
        cluster::{Ending, Scenario, World, faults::pause, group::Group, member::Member, verdict},
        load::number,
        server::Program,
        tool,
        wait::until_some,
    },
    gated::{CHECKPOINTS, Gated, proposing},
    log::{self, Stored},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "leases: survive leaders while on", short: true, run: survive },
    Scenario { name: "leases: begin anew while off, as etcd's", short: false, run: begin_anew },
    Scenario { name: "leases: checkpoints of ours in a mixed cluster", short: false, run: mixed_ours },
    Scenario { name: "leases: checkpoints of etcd in a mixed cluster", short: false, run: mixed_etcd },
];

const TTL: u64 = 600;
/// How long a lease runs before it is looked at: enough to tell a lease that kept its time from one that began again.
const AGE: u64 = 8;
/// At most so many seconds are added by a change of leader: the time of an election, and rounding up.
const EXTENSION: u64 = 2;
const SERVER_GATES: &str = "--feature-gates=LeaseCheckpoint=true,LeaseCheckpointPersist=true";

/// With checkpoints every second.
pub(super) fn often(program: &Program) -> Program {
    let mut program = program.clone();
    program.flags.push("--lease-checkpoint-interval=1s".to_owned());
    program
}

pub(super) fn grant(member: &Member, ttl: u64) -> Result<u64> {
    number(&member.ask("/v3/lease/grant", &json!({"TTL": ttl.to_string()}))?["ID"])
}

/// Whole seconds that are left.
pub(super) fn time_to_live(member: &Member, lease: u64) -> Result<u64> {
    number(&member.ask("/v3/lease/timetolive", &json!({"ID": lease.to_string()}))?["TTL"])
}

/// The leases as stored, after all members were found to have the same at the same index.
pub(super) fn level(world: &World, group: &Group, base: &Path) -> Result<Stored> {
    // Checkpoints are made all the time: this waits for a moment without one between the members' snapshots.
    until_some("the members' databases are at one index", || {
        let mut found = group.members.iter().map(|member| stored(world, member, base)).collect::<Result<Vec<_>>>()?;
        if found.windows(2).any(|pair| pair[0].0 != pair[1].0) {
            return Ok(None);
        }
        ensure!(found.windows(2).all(|pair| pair[0].1 == pair[1].1), "leases differ on disk: {found:?}");
        Ok(found.pop().map(|(_, stored)| stored))
    })
}

/// From a snapshot of the member's database, with the index it is as of.
fn stored(world: &World, member: &Member, base: &Path) -> Result<(u64, Stored)> {
    let file = base.join(format!("{}-look.db", member.name));
    let _ = fs::remove_file(&file);
    tool::run(&world.etcdctl, &["--endpoints", &member.endpoint(), "snapshot", "save", &file.to_string_lossy()])?;
    log::leases(&file)
}

/// The remaining time in a stored lease; 0 if it was never checkpointed.
pub(super) fn remaining(stored: &Stored, lease: u64) -> Result<i64> {
    use prost::Message;
    let record = stored.iter().find(|(key, _)| *key == lease.to_be_bytes());
    let (_, value) = record.with_context(|| format!("lease {lease:x} is not stored"))?;
    Ok(proto::leasepb::Lease::decode(value.as_slice())?.remaining_ttl)
}

/// Waits until a checkpoint of at most `most` seconds is stored on every member, and returns the seconds.
pub(super) fn wait_checkpoint(world: &World, group: &Group, base: &Path, lease: u64, most: u64) -> Result<u64> {
    until_some(&format!("a checkpoint of at most {most} s is stored"), || {
        let left = remaining(&level(world, group, base)?, lease)?;
        Ok(u64::try_from(left).ok().filter(|left| (1..=most).contains(left)))
    })
}

/// The rest of a lease at a member that has just become leader.
#[derive(Debug)]
struct Left {
    seconds: u64,
    /// An upper bound of the time since the member became leader.
    since: u64,
}

/// Leadership goes once around.
fn around(group: &Group, lease: u64) -> Result<Vec<Left>> {
    let mut all = Vec::new();
    for n in 0..group.members.len() {
        let start = Instant::now();
        group.move_leader(n)?;
        let seconds = until_some("the leader knows what is left of the lease", || {
            Ok(time_to_live(&group.members[n], lease).ok().filter(|seconds| *seconds > 0))
        })?;
        all.push(Left { seconds, since: start.elapsed().as_secs() + 1 });
    }
    Ok(all)
}

fn seconds(all: &[Left]) -> Vec<u64> {
    all.iter().map(|left| left.seconds).collect()
}

/// Fails if the leaders have given back more than the seconds that were stored before.
fn check_kept(all: &[Left], stored: u64) -> Result<()> {
    let most = stored + EXTENSION * all.len() as u64;
    ensure!(
        all.iter().all(|left| left.seconds <= most),
        "of {TTL} s {:?} are left, at most {most} are right",
        seconds(all)
    );
    Ok(())
}

fn survive(world: &World, base: &Path) -> Result<Ending> {
    let program = often(&proposing(&world.ours, "PersistedLeaseCheckpoints=true"));
    let mut gated = Gated::of(base, &[&program, &program, &program], &[])?;
    gated.wait_on(CHECKPOINTS)?;
    let lease = grant(&gated.group.members[0], TTL)?;
    let stored = wait_checkpoint(world, &gated.group, base, lease, TTL - AGE)?;
    let left = around(&gated.group, lease)?;
    check_kept(&left, stored)?;
    // A checkpoint that is stored on every member binds the next leader, however long its election takes.
    let stored = wait_checkpoint(world, &gated.group, base, lease, stored)?;
    gated.kill_leader()?;
    let leader = gated.group.leader()?;
    let last = time_to_live(&gated.group.members[leader], lease)?;
    ensure!(
        last <= stored + 2 * EXTENSION,
        "{last} s are left after the leader was killed, {stored} s were stored before"
    );
    let left = seconds(&left);
    Ok(Ending::Well(format!("of {TTL} s {left:?} are left, {last} in the end; {}", gated.finish()?)))
}

fn begin_anew(world: &World, base: &Path) -> Result<Ending> {
    let once = |name: &str, program: &Program| -> Result<Vec<u64>> {
        let dir = base.join(name);
        fs::create_dir_all(&dir)?;
        let group = Group::found(&dir, &[program, program, program], &[])?;
        let lease = grant(&group.members[0], TTL)?;
        // Otherwise a lease that began again could not be distinguished from one that did not.
        pause(AGE * 1000);
        let left = around(&group, lease)?;
        let stored = level(world, &group, &dir)?;
        ensure!(remaining(&stored, lease)? == 0, "a checkpoint was made: {}", remaining(&stored, lease)?);
        // The first leader may be the one of before.
        let began_again = left[1..].iter().all(|left| left.seconds + left.since >= TTL);
        ensure!(began_again, "of {TTL} s {left:?} are left");
        Ok(seconds(&left))
    };
    let (ours, etcd) = (once("ours", &often(&world.ours))?, once("etcd", &world.etcd)?);
    // etcd's own gate decides where the cluster feature is off.
    let mut program = often(&world.ours);
    program.flags.push(SERVER_GATES.to_owned());
    let group = Group::found(base, &[&program, &program, &program], &[])?;
    let lease = grant(&group.members[0], TTL)?;
    let stored = wait_checkpoint(world, &group, base, lease, TTL - AGE)?;
    let kept = around(&group, lease)?;
    check_kept(&kept, stored).context("with LeaseCheckpoint")?;
    verdict::check_logs(&group)?;
    let kept = seconds(&kept);
    Ok(Ending::Well(format!("of {TTL} s {ours:?} are left, etcd {etcd:?}; with LeaseCheckpoint {kept:?}")))
}

/// Lockgate leads and makes a checkpoint every second; etcd stores the same.
fn mixed_ours(world: &World, base: &Path) -> Result<Ending> {
    let mut ours = often(&world.ours);
    ours.flags.push(SERVER_GATES.to_owned());
    let group = Group::found(base, &[&ours, &ours, &world.etcd], &[])?;
    group.move_leader(0)?;
    let lease = grant(&group.members[2], TTL)?;
    let left = wait_checkpoint(world, &group, base, lease, TTL - AGE)?;
    // The checkpoint that is stored holds for the next leader of either kind.
    let around = around(&group, lease)?;
    check_kept(&around, left)?;
    verdict::check_logs(&group)?;
    Ok(Ending::Well(format!("{left} s stored on all, byte for byte; {:?} left around", seconds(&around))))
}

/// etcd leads, with both of its gates; it makes a checkpoint after five minutes, which Lockgate stores as etcd does.
fn mixed_etcd(world: &World, base: &Path) -> Result<Ending> {
    let mut etcd = world.etcd.clone();
    etcd.flags.push(SERVER_GATES.to_owned());
    let group = Group::found(base, &[&etcd, &world.ours, &world.ours], &[])?;
    group.move_leader(0)?;
    let lease = grant(&group.members[1], TTL)?;
    let start = Instant::now();
    // No limit is needed: a lease that ends without a checkpoint is not stored any more.
    loop {
        pause(2000);
        let left = remaining(&level(world, &group, base)?, lease)?;
        if left > 0 {
            let around = around(&group, lease)?;
            verdict::check_logs(&group)?;
            let (after, around) = (start.elapsed().as_secs(), seconds(&around));
            return Ok(Ending::Well(format!("{left} s stored on all after {after} s; {around:?} left around")));
        }
        ensure!(group.leader()? == 0, "etcd lost its leadership");
    }
}
