//! Lockgate with real etcd 3.7 in one cluster: no feature is on, and no entry of a feature reaches the log, until the last real
//! member is replaced.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use proto::Version;
use serde_json::json;

use super::{
    super::{
        cluster::{Ending, Scenario, World, group::Group, member::Host, mixed::wait_version, verdict},
        http::Http,
        peer,
        server::Program,
    },
    book::Seen,
    gated::{CHECKPOINTS, Gated, INCREMENT, increment, proposing, refused_increment},
    log,
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "mixed: one etcd, replaced, and refused at 3.8", short: true, run: one_etcd },
    Scenario { name: "mixed: two etcd, replaced", short: false, run: two_etcd },
    Scenario { name: "mixed: etcd 3.8 is refused", short: false, run: newer_etcd },
];

const BOTH: &str = "AtomicIncrement=true,PersistedLeaseCheckpoints=true";
const REFUSED_STAYS_MS: u64 = 6000;

fn one_etcd(world: &World, base: &Path) -> Result<Ending> {
    let ours = proposing(&world.ours, BOTH);
    let (said, mut gated) = replaced(world, base, &[&ours, &ours, &world.etcd])?;
    let refused = older_is_refused(world, &mut gated)?;
    Ok(Ending::Well(format!("{said}; {refused}")))
}

fn two_etcd(world: &World, base: &Path) -> Result<Ending> {
    let ours = proposing(&world.ours, BOTH);
    replaced(world, base, &[&ours, &world.etcd, &world.etcd]).map(|(said, _)| Ending::Well(said))
}

/// The first of `programs` is Lockgate.
fn replaced(world: &World, base: &Path, programs: &[&Program]) -> Result<(String, Gated)> {
    let group = Group::found(base, programs, &[])?;
    wait_version(&group, "3.7.0")?;
    for n in 0..programs.len() {
        group.move_leader(n)?;
        nothing_on(world, &group)?;
    }
    let mut gated = Gated::with(group);
    let entries = clean_logs(&gated.group)?;
    for n in 0..programs.len() {
        let Some(at) = gated.group.members.iter().position(|member| member.program.path == world.etcd.path) else {
            break;
        };
        nothing_on(world, &gated.group)?;
        clean_logs(&gated.group)?;
        verdict::check_logs(&gated.group)?;
        // The new one first: with the last real one gone the version rises, and what comes then is compared.
        let new = gated.group.add(&format!("o{n}"), programs[0], Host::default(), false)?;
        gated.group.wait_member(new)?;
        let id = gated.group.id(at)?;
        gated.group.remove(at, id)?;
    }
    let on = |seen: &Seen| seen.is_on(INCREMENT) && seen.is_on(CHECKPOINTS) && seen.state.version == "3.8.0";
    gated.wait("3.8, and both are on", on)?;
    let changes = gated.expect_history(&["AGREED: AtomicIncrement,PersistedLeaseCheckpoints"])?;
    increment(&gated.group.members[1], "counter")?;
    let well = gated.finish()?;
    Ok((format!("{entries} entries clean at 3.7; on by itself at {}; {well}", changes[0].index), gated))
}

/// Lockgate members report that the version is too low, and refuse requests of a feature.
fn nothing_on(world: &World, group: &Group) -> Result<()> {
    for member in group.members.iter().filter(|member| member.program.path == world.ours.path) {
        let seen = Seen::ask(member)?;
        ensure!(seen.state.version == "3.7.0" && seen.state.on.is_empty(), "{seen:?}");
        ensure!(seen.state.gate_index == 0 && seen.state.relevant_index == 0, "there is a gate: {seen:?}");
        for feature in [INCREMENT, CHECKPOINTS] {
            let why = seen.reasons(feature);
            ensure!(why == "cluster version 3.7 < 3.8", "{feature} is off because {why:?}");
        }
        let text = refused_increment(member)?;
        ensure!(text.contains("it needs cluster version 3.8"), "refused with {text}");
        let put = json!({"key": "eA==", "value": "eA=="}).to_string();
        let answer = Http::connect(&member.endpoint())?.post_requiring(INCREMENT, "/v3/kv/put", &put)?;
        let refused = answer.status == 400 && answer.body.contains("AtomicIncrement is off");
        ensure!(refused, "a put that requires {INCREMENT} was answered with {}: {}", answer.status, answer.body);
    }
    for member in &group.members {
        member.ask("/v3/kv/put", &json!({"key": "eA==", "value": "eA=="}))?;
    }
    Ok(())
}

/// Of every member; how many entries the longest log has.
fn clean_logs(group: &Group) -> Result<usize> {
    let mut most = 0;
    for member in &group.members {
        most = most.max(log::check_nothing_newer(&member.dir, Version::new(3, 7))?);
    }
    Ok(most)
}

/// A real etcd 3.7 that is to join at 3.8 ends by itself; the others go on, and the gate comes back with its removal.
fn older_is_refused(world: &World, gated: &mut Gated) -> Result<String> {
    let n = gated.group.add("older", &world.etcd, Host::default(), true)?;
    let status = gated.group.members[n].wait_end()?;
    let log = gated.group.members[n].log_text();
    ensure!(
        log.contains("incompatible with current running cluster"),
        "it says:\n{}",
        gated.group.members[n].log_tail()
    );
    gated.group.members.pop();
    gated.stays(1000, "a refused learner flips nothing", |seen| seen.is_on(INCREMENT))?;
    gated.finish()?;
    Ok(format!("etcd 3.7 is refused with {status}"))
}

/// etcd 3.8 has a fitting number, but knows nothing of the gate: it gets neither entries nor snapshots.
fn newer_etcd(world: &World, base: &Path) -> Result<Ending> {
    let Ok(path) = peer::find(&world.cache, peer::ETCD_3_8, "etcd") else {
        return Ok(Ending::Skipped("etcd 3.8 is not built: run `cargo xtask interop fetch --all`".to_owned()));
    };
    let mut gated = Gated::found(world, base, BOTH)?;
    gated.wait_on(INCREMENT)?;
    increment(&gated.group.members[0], "counter")?;
    let n = gated.group.add("newer", &Program::new(path), Host::default(), true)?;
    let mut newer = gated.group.members.remove(n);
    gated.stays(REFUSED_STAYS_MS, "a member that is not ours flips nothing", |seen| seen.is_on(INCREMENT))?;
    ensure!(log::read(&newer.dir).map_or(0, |(count, _)| count) == 0, "it was sent entries");
    let told = gated.group.members.iter().any(|member| member.log_text().contains("412"))
        || newer.log_text().contains("412")
        || newer.log_text().contains("Precondition");
    ensure!(told, "nobody says that it was refused; it says:\n{}", newer.log_tail());
    newer.kill();
    let well = gated.finish().context("the others go on")?;
    Ok(Ending::Well(well))
}
