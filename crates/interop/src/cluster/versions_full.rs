//! Up and down with a store that is not empty: 100,000 keys, leases, an alarm, compactions, and a learner that goes along.
//! At every stage the voters must have the hash that real etcd gave, and everybody the same leases and alarms.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    super::{base64, server::Program, wait::until_ok},
    Ending, Scenario, World,
    group::Group,
    member::Host,
    versions::{gated, go_down, swap, wait_at},
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "versions: a full store with a learner, up and down", short: false, run: full }];

const KEYS: usize = 100_000;
/// As many as etcd takes in one transaction.
const KEYS_PER_TXN: usize = 125;
const LEASES: u64 = 40;
const LEARNER: usize = 3;

fn full(world: &World, base: &Path) -> Result<Ending> {
    let mut group = Group::found(base, &[&world.etcd; 3], &[])?;
    fill(&group)?;
    group.add("l4", &world.etcd, Host::default(), true)?;
    wait_for_learner(&group)?;
    arm(&group)?;
    let expected = look(&group)?;
    let ours = gated(world);
    swap_everyone(&mut group, &ours)?;
    wait_at(&group, "3.8.0")?;
    same(&group, &expected, "up")?;
    go_down(&group)?;
    same(&group, &expected, "down, still ours")?;
    swap_everyone(&mut group, &world.etcd)?;
    same(&group, &expected, "down")?;
    disarm(&group)?;
    let learner = group.id(LEARNER)?;
    group.promote(learner)?;
    group.wait_member(LEARNER)?;
    let hashes = group.check_hashes()?;
    Ok(Ending::Well(format!("{KEYS} keys, {LEASES} leases, an alarm, a learner: {}", hashes[0].1)))
}

fn swap_everyone(group: &mut Group, program: &Program) -> Result<()> {
    (0..LEARNER).try_for_each(|n| swap(group, n, program))?;
    group.members[LEARNER].stop()?;
    group.members[LEARNER].program = program.clone();
    group.restart(LEARNER);
    wait_for_learner(group)
}

/// A learner answers little; it is there when it has applied what the others have.
fn wait_for_learner(group: &Group) -> Result<()> {
    until_ok("the learner has applied all", || {
        let (there, here) = (group.revision(0)?, group.revision(LEARNER)?);
        ensure!(there == here, "the learner is at revision {here} of {there}");
        Ok(())
    })
}

fn put(i: usize, lease: Option<&str>) -> Value {
    let (key, value) = (base64(format!("key-{i:06}").as_bytes()), base64(format!("value of {i}").as_bytes()));
    match lease {
        Some(lease) => json!({"requestPut": {"key": key, "value": value, "lease": lease}}),
        None => json!({"requestPut": {"key": key, "value": value}}),
    }
}

fn fill(group: &Group) -> Result<()> {
    let member = &group.members[0];
    let leases: Result<Vec<String>> = (1..=LEASES)
        .map(|id| {
            let answer = member.ask("/v3/lease/grant", &json!({"ID": id.to_string(), "TTL": "3600"}))?;
            Ok(answer["ID"].as_str().context("a lease has an id")?.to_owned())
        })
        .collect();
    let leases = leases?;
    for first in (0..KEYS).step_by(KEYS_PER_TXN) {
        // Every tenth transaction's keys hang on a lease.
        let at = first / KEYS_PER_TXN;
        let lease = at.is_multiple_of(10).then(|| leases[at / 10 % leases.len()].as_str());
        let puts: Vec<_> = (first..first + KEYS_PER_TXN).map(|i| put(i, lease)).collect();
        member.ask("/v3/kv/txn", &json!({ "success": puts }))?;
    }
    let revision = group.revision(0)?;
    member.ask("/v3/kv/deleterange", &json!({"key": base64(b"key-0001"), "range_end": base64(b"key-0002")}))?;
    member.ask("/v3/kv/compaction", &json!({"revision": (revision / 2).to_string(), "physical": true}))?;
    Ok(())
}

fn alarm(group: &Group, action: &str) -> Result<Value> {
    let id = group.id(1)?;
    group.members[0]
        .ask("/v3/maintenance/alarm", &json!({"action": action, "memberID": id.to_string(), "alarm": "NOSPACE"}))
}

fn arm(group: &Group) -> Result<()> {
    alarm(group, "ACTIVATE").map(drop)
}

fn disarm(group: &Group) -> Result<()> {
    alarm(group, "DEACTIVATE").map(drop)
}

/// The facts that must not change: hashes of the voters, leases with their keys, alarms.
fn look(group: &Group) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    let revision = group.revision(0)?;
    for (n, member) in group.members.iter().enumerate().take(LEARNER) {
        until_ok("the member has applied all", || {
            let here = group.revision(n)?;
            ensure!(here == revision, "at revision {here}");
            Ok(())
        })?;
        let hash = member.ask("/v3/maintenance/hashkv", &json!({}))?;
        seen.push(format!("{} since {} at {revision}", hash["hash"], hash["compact_revision"]));
    }
    for id in 1..=LEASES {
        let body = json!({"ID": id.to_string(), "keys": true});
        let lease = group.members[0].ask("/v3/lease/timetolive", &body)?;
        seen.push(format!("lease {id} of {} has {} keys", lease["grantedTTL"], count(&lease["keys"])));
    }
    seen.push(format!(
        "alarms {}",
        group.members[1].ask("/v3/maintenance/alarm", &json!({"action": "GET"}))?["alarms"]
    ));
    seen.push(format!("{} keys at the learner", keys_at_learner(group)?));
    Ok(seen)
}

fn count(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

/// The one read that a learner serves.
fn keys_at_learner(group: &Group) -> Result<String> {
    wait_for_learner(group)?;
    let all = json!({"key": base64(b"\0"), "range_end": base64(b"\0"), "count_only": true, "serializable": true});
    Ok(group.members[LEARNER].ask("/v3/kv/range", &all)?["count"].to_string())
}

fn same(group: &Group, expected: &[String], stage: &str) -> Result<()> {
    let found = look(group).with_context(|| format!("{stage}: looking"))?;
    for (expected, found) in expected.iter().zip(&found) {
        ensure!(expected == found, "{stage}: {found:?} instead of {expected:?}");
    }
    Ok(())
}
