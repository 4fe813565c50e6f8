//! Clusters that begin at 3.7, from a snapshot, or from one member's dir: they have neither gate nor proposals, and agree
//! again where the version has a gate.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{
    super::{
        cluster::{Ending, Scenario, World, faults::pause, verdict},
        tool,
    },
    gated::{Gated, INCREMENT, increment, proposing, refused_increment, value},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "restored: held at 3.7", short: false, run: held },
    Scenario { name: "restored: by lockgateutl", short: true, run: by_ours },
    Scenario { name: "restored: by etcdutl", short: false, run: by_etcdutl },
    Scenario { name: "restored: young, by etcdutl into more members", short: false, run: young },
    Scenario { name: "restored: --force-new-cluster", short: false, run: forced },
];

fn held(world: &World, base: &Path) -> Result<Ending> {
    let mut program = proposing(&world.ours, "AtomicIncrement=true");
    program.flags.push("--initial-cluster-version=3.7".to_owned());
    let mut gated = Gated::of(base, &[&program, &program, &program], &[])?;
    gated.wait("3.7 is decided", |seen| seen.state.version == "3.7.0")?;
    gated.stays(3000, "no gate at 3.7", |seen| {
        seen.state.on.is_empty() && seen.state.relevant_index == 0 && seen.reasons(INCREMENT).contains("3.7 < 3.8")
    })?;
    refused_increment(&gated.group.members[0])?;
    ensure!(gated.history()?.is_empty(), "there is a history");
    let well = gated.finish()?;
    gated.group.stop_all();
    for member in &gated.group.members {
        super::log::check_nothing_newer(&member.dir, proto::Version::new(3, 7))?;
    }
    Ok(Ending::Well(well))
}

fn by_ours(world: &World, base: &Path) -> Result<Ending> {
    restored(world, base, &world.our_utl, false)
}

fn by_etcdutl(world: &World, base: &Path) -> Result<Ending> {
    restored(world, base, &world.etcdutl, true)
}

/// A cluster with a feature on, much used, and one that is made of its snapshot. Our tool leaves gate and proposals out;
/// what etcd's (`carries_along`) does not know it leaves in, and each member removes at its first start.
fn restored(world: &World, base: &Path, utl: &Path, carries_along: bool) -> Result<Ending> {
    let mut gated = used(world, base)?;
    let old = gated.history()?;
    let file = base.join("snapshot.db");
    let endpoint = gated.group.members[1].endpoint();
    tool::run(&world.etcdctl, &["--endpoints", &endpoint, "snapshot", "save", &file.to_string_lossy()])?;
    gated.group.stop_all();
    let initial = gated.group.initial();
    for member in &mut gated.group.members {
        member.dir = base.join(format!("{}-restored", member.name));
        let (file, dir) = (file.to_string_lossy(), member.dir.to_string_lossy().into_owned());
        let url = member.peer_url();
        let words = ["snapshot", "restore", &file, "--name", &member.name, "--initial-cluster", &initial];
        tool::run(utl, &[&words[..], &["--initial-advertise-peer-urls", &url, "--data-dir", &dir]].concat())?;
    }
    // A new cluster: indices begin again.
    let mut gated = Gated::with(gated.group);
    // The third says off: what the snapshot says of its proposal must not count.
    gated.set_flag(2, "AtomicIncrement=false");
    gated.group.begin().context("from the restored dirs")?;
    let seen = gated.wait_said(INCREMENT, 2, 1)?;
    ensure!(!seen.is_on(INCREMENT), "on in a cluster that never agreed: {seen:?}");
    gated.expect_history(&[])?;
    for member in &gated.group.members {
        let removed = member.log_text().contains("it is of another cluster");
        ensure!(removed == carries_along, "{}: gate removed at start: {removed}", member.name);
    }
    gated.restart_with(2, "AtomicIncrement=true")?;
    gated.wait_on(INCREMENT)?;
    let new = gated.expect_history(&["AGREED: AtomicIncrement"])?;
    ensure!(value(&gated.group.members[2], "counter")?.as_deref() == Some("20"), "the number is lost");
    Ok(Ending::Well(format!("{} changes before, agreed anew at {}; {}", old.len(), new[0].index, gated.finish()?)))
}

/// The new log begins with an entry for each of so many members that the gate is not ahead of it; but nobody has led yet.
fn young(world: &World, base: &Path) -> Result<Ending> {
    let program = proposing(&world.ours, "AtomicIncrement=true");
    let mut gated = Gated::of(base, &[&program], &[])?;
    let index = gated.wait_on(INCREMENT)?.state.gate_index;
    let file = base.join("snapshot.db").to_string_lossy().into_owned();
    let endpoint = gated.group.members[0].endpoint();
    tool::run(&world.etcdctl, &["--endpoints", &endpoint, "snapshot", "save", &file])?;
    gated.group.stop_all();
    let others = (1..=index).map(|n| format!("other{n}=http://127.0.0.1:{n}"));
    let member = &mut gated.group.members[0];
    let initial = [member.entry()].into_iter().chain(others).collect::<Vec<_>>().join(",");
    member.dir = base.join("restored");
    let (url, dir) = (member.peer_url(), member.dir.to_string_lossy().into_owned());
    let words = ["snapshot", "restore", &file, "--name", &member.name, "--initial-cluster", &initial];
    tool::run(&world.etcdutl, &[&words[..], &["--initial-advertise-peer-urls", &url, "--data-dir", &dir]].concat())?;
    member.start(&initial, "new", &[]);
    member.wait_log(0, &["no leader was ever elected: it is of another cluster"])?;
    Ok(Ending::Well(format!("on at {index}, removed from a log that begins with {} entries", index + 1)))
}

/// On, off, on, and some entries after that, so that indices are well above those of a new life.
fn used(world: &World, base: &Path) -> Result<Gated> {
    let mut gated = Gated::agreed(world, base)?;
    gated.restart_with(2, "AtomicIncrement=false")?;
    gated.wait_off(INCREMENT)?;
    gated.restart_with(2, "AtomicIncrement=true")?;
    gated.wait_on(INCREMENT)?;
    for n in 0..20 {
        increment(&gated.group.members[n % 3], "counter")?;
    }
    gated.wait("all have all", |_| true)?;
    Ok(gated)
}

fn forced(world: &World, base: &Path) -> Result<Ending> {
    let mut gated = used(world, base)?;
    // What the member has not written down as committed is dropped, as in etcd: one more entry writes it down.
    gated.any()?.ask("/v3/kv/put", &json!({"key": "eA==", "value": "eA=="}))?;
    gated.wait("all have all", |_| true)?;
    gated.group.stop_all();
    gated.group.members.truncate(1);
    let initial = gated.group.initial();
    // It now says off, so that what it said before would show.
    gated.set_flag(0, "AtomicIncrement=false");
    gated.group.members[0].start(&initial, "existing", &["--force-new-cluster"]);
    gated.group.wait_member(0)?;
    let mut gated = Gated::with(gated.group);
    let seen = gated.wait_said(INCREMENT, 0, 1)?;
    ensure!(!seen.is_on(INCREMENT), "on in a cluster that never agreed: {seen:?}");
    gated.expect_history(&[])?;
    gated.restart_with(0, "AtomicIncrement=true")?;
    gated.wait_on(INCREMENT)?;
    gated.expect_history(&["AGREED: AtomicIncrement"])?;
    pause(200);
    verdict::check_logs(&gated.group)?;
    ensure!(increment(&gated.group.members[0], "counter")? == 21, "the number is lost");
    Ok(Ending::Well(gated.finish()?))
}
