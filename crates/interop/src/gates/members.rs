//! Voters that come, go, and are away.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{
    super::cluster::{Ending, Scenario, World},
    gated::{Between, Gated, INCREMENT, OFF, ON, nothing, proposing},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "members: voter added, started, removed", short: true, run: added },
    Scenario { name: "members: the same, leader killed between steps", short: false, run: added_under_kills },
    Scenario { name: "members: one is down", short: false, run: down },
];

fn added(world: &World, base: &Path) -> Result<Ending> {
    added_with(world, base, nothing)
}

fn added_under_kills(world: &World, base: &Path) -> Result<Ending> {
    added_with(world, base, Gated::restart_leader)
}

fn added_with(world: &World, base: &Path, between: Between) -> Result<Ending> {
    let mut gated = Gated::agreed(world, base)?;
    between(&mut gated)?;
    let (n, id) = gated.add_stopped("m4", &proposing(&world.ours, ON))?;
    let seen = gated.wait_off(INCREMENT)?;
    ensure!(seen.voters(INCREMENT).len() == 4 && seen.said(INCREMENT, id).is_none(), "{seen:?}");
    let reason = seen.reasons(INCREMENT);
    ensure!(reason.contains(&format!("{id:x}")), "the reason does not name {id:x}: {reason}");
    let changes = gated.expect_history(&["AGREED: AtomicIncrement", "VOTER_ADDED: "])?;
    ensure!(changes[1].member == id, "turned off by {:x}, not by {id:x}", changes[1].member);
    ensure!(seen.state.gate_index == seen.state.relevant_index, "not off at the entry that added it: {seen:?}");
    between(&mut gated)?;
    gated.wait_off(INCREMENT).context("no leader turns it on without the new voter")?;
    gated.group.start_as(n, "existing");
    gated.group.wait_member(n)?;
    between(&mut gated)?;
    gated.wait_on(INCREMENT)?;
    gated.restart_with(n, OFF)?;
    between(&mut gated)?;
    let seen = gated.wait_off(INCREMENT)?;
    let held = seen.reasons(INCREMENT);
    ensure!(held.contains("m4: flag says off"), "the reason does not name m4: {held}");
    gated.group.remove(n, id)?;
    between(&mut gated)?;
    let seen = gated.wait_on(INCREMENT)?;
    ensure!(seen.said(INCREMENT, id).is_none(), "a removed member's proposal is kept: {seen:?}");
    gated.expect_history(&[
        "AGREED: AtomicIncrement",
        "VOTER_ADDED: ",
        "AGREED: AtomicIncrement",
        "PROPOSAL: ",
        "AGREED: AtomicIncrement",
    ])?;
    Ok(Ending::Well(format!("{reason}; {}", gated.finish()?)))
}

fn down(world: &World, base: &Path) -> Result<Ending> {
    let mut gated = Gated::agreed(world, base)?;
    let n = gated.group.follower()?;
    let id = gated.group.id(n)?;
    gated.group.members[n].kill();
    gated.stays(3000, "a member that is down keeps its proposal", |seen| {
        seen.is_on(INCREMENT) && seen.said(INCREMENT, id) == Some(true)
    })?;
    let leader = gated.group.leader()?;
    let other = (0..3).find(|other| *other != n && *other != leader).context("there are three")?;
    gated.group.move_leader(other)?;
    gated.stays(1000, "a change of leader meanwhile flips nothing", |seen| seen.is_on(INCREMENT))?;
    gated.group.restart(n);
    gated.group.wait_member(n)?;
    gated.wait_on(INCREMENT)?;
    gated.expect_history(&["AGREED: AtomicIncrement"])?;
    Ok(Ending::Well(gated.finish()?))
}
