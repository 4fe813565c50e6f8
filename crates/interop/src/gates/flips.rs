//! Flags that change by rolling restarts: off with the first that says off, on with the last that says on, whoever leads.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use harness::Signal;

use super::{
    super::cluster::{Ending, Scenario, World, faults::pause},
    gated::{Gated, INCREMENT, OFF, ON},
    log::{self, Ours},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "flips: leader killed between steps", short: true, run: leader_killed },
    Scenario { name: "flips: leader paused between steps", short: false, run: leader_paused },
];

fn leader_killed(world: &World, base: &Path) -> Result<Ending> {
    flips(world, base, Gated::kill_leader)
}

fn leader_paused(world: &World, base: &Path) -> Result<Ending> {
    flips(world, base, pause_leader)
}

/// SIGSTOP until another leads, then SIGCONT.
fn pause_leader(gated: &mut Gated) -> Result<()> {
    let leader = gated.group.leader()?;
    gated.group.members[leader].signal(Signal::STOP)?;
    let next = gated.group.leader_among(&|n| n != leader).context("while the leader is paused");
    gated.group.members[leader].signal(Signal::CONT)?;
    ensure!(next? != leader, "a paused member leads");
    pause(500);
    Ok(())
}

fn flips(world: &World, base: &Path, between: fn(&mut Gated) -> Result<()>) -> Result<Ending> {
    let mut gated = Gated::agreed(world, base)?;
    let first = gated.group.id(0)?;
    for n in 0..3 {
        gated.restart_with(n, OFF)?;
        between(&mut gated)?;
        let seen = gated.wait_said(INCREMENT, 2 - n, n + 1)?;
        ensure!(!seen.is_on(INCREMENT), "on though {} says off: {seen:?}", gated.group.members[n].name);
    }
    for n in 0..3 {
        gated.restart_with(n, ON)?;
        if n < 2 {
            between(&mut gated)?;
            let seen = gated.wait_said(INCREMENT, n + 1, 2 - n)?;
            ensure!(!seen.is_on(INCREMENT), "on before the last said so: {seen:?}");
            let reasons = seen.reasons(INCREMENT);
            ensure!(reasons.contains("m3: flag says off"), "nothing says that m3 holds it off: {reasons}");
        }
    }
    gated.wait_on(INCREMENT)?;
    let wanted = ["AGREED: AtomicIncrement", "PROPOSAL: ", "AGREED: AtomicIncrement"];
    let changes = gated.expect_history(&wanted)?;
    ensure!(changes[1].member == first, "turned off by {:x}, not by the first, {first:x}", changes[1].member);
    let well = gated.finish()?;
    gated.group.stop_all();
    off_at_the_proposal(&gated.group.members[0].dir, changes[1].index, first)?;
    Ok(Ending::Well(format!("off at {}, on at {}; {well}", changes[1].index, changes[2].index)))
}

/// The entry that turned it off is the very proposal that says off.
fn off_at_the_proposal(dir: &Path, index: u64, id: u64) -> Result<()> {
    let (_, entries) = log::read(dir)?;
    let entry = entries.iter().find(|(at, _)| *at == index).with_context(|| format!("no entry of ours at {index}"))?;
    match &entry.1 {
        Ours::Proposal { member, proposal } => {
            let off = proposal.features.iter().any(|feature| feature.name == INCREMENT && !feature.enabled);
            ensure!(*member == id && off, "entry {index} is {entry:?}");
            Ok(())
        }
        other => anyhow::bail!("entry {index} is {other:?}, and no proposal"),
    }
}
