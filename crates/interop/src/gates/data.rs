//! Each cluster feature on, data written, off, data read, on again.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{
    super::cluster::{Ending, Scenario, World},
    gated::{CHECKPOINTS, Gated, INCREMENT, increment, refused_increment, value},
    leases,
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "data: each feature on, off, on again", short: true, run: on_off_on }];

const BOTH: &str = "AtomicIncrement=true,PersistedLeaseCheckpoints=true";
const NEITHER: &str = "AtomicIncrement=false,PersistedLeaseCheckpoints=false";
const TTL: u64 = 600;

fn on_off_on(world: &World, base: &Path) -> Result<Ending> {
    let program = leases::often(&super::gated::proposing(&world.ours, BOTH));
    let mut gated = Gated::of(base, &[&program, &program, &program], &[])?;
    both(&mut gated, true)?;
    for n in 0..6 {
        increment(&gated.group.members[n % 3], "counter")?;
    }
    let lease = leases::grant(&gated.group.members[0], TTL)?;
    leases::wait_checkpoint(world, &gated.group, base, lease, TTL - 4)?;
    // One member is enough to turn both off.
    gated.restart_with(2, NEITHER)?;
    both(&mut gated, false)?;
    for member in &gated.group.members {
        ensure!(value(member, "counter")?.as_deref() == Some("6"), "{} has lost the number", member.name);
        let text = refused_increment(member)?;
        ensure!(text.contains("AtomicIncrement is off"), "refused with {text}");
    }
    let stored = leases::level(world, &gated.group, base)?;
    ensure!(leases::remaining(&stored, lease)? > 0, "the checkpoint is gone with the feature");
    let left = leases::time_to_live(&gated.group.members[0], lease)?;
    ensure!(left < TTL - 2, "{left} s of {TTL} are left");
    gated.restart_with(2, BOTH)?;
    both(&mut gated, true)?;
    let sum = increment(&gated.group.members[1], "counter")?;
    ensure!(sum == 7, "adding went on from another number, to {sum}");
    let wanted = "AtomicIncrement,PersistedLeaseCheckpoints";
    gated.expect_history(&[&format!("AGREED: {wanted}"), "PROPOSAL: ", &format!("AGREED: {wanted}")])?;
    Ok(Ending::Well(gated.finish()?))
}

fn both(gated: &mut Gated, on: bool) -> Result<()> {
    let what = if on { "both are on" } else { "both are off" };
    gated.wait(what, |seen| seen.is_on(INCREMENT) == on && seen.is_on(CHECKPOINTS) == on).map(drop)
}
