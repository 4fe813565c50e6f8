//! What flips nothing: all members killed at once, and any change of leader.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{
    super::cluster::{Ending, Scenario, World},
    gated::{Gated, INCREMENT},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "restarts: all killed at once", short: true, run: all_killed },
    Scenario { name: "restarts: leader moved, killed", short: false, run: leaders },
];

fn all_killed(world: &World, base: &Path) -> Result<Ending> {
    let mut gated = Gated::agreed(world, base)?;
    let before = gated.wait_on(INCREMENT)?;
    let changes = gated.history()?;
    for _ in 0..if world.all { 3 } else { 1 } {
        gated.group.stop_all();
        for n in 0..3 {
            gated.group.restart(n);
        }
        gated.group.wait_ready()?;
        // The first answers already: from the file, and from what the log had beyond it.
        for seen in gated.look()? {
            ensure!(seen.state == before.state, "was {before:?}, and is {seen:?}");
        }
        ensure!(gated.history()? == changes, "a restart changed the history");
    }
    gated.stays(1000, "on after the restart", |seen| seen.is_on(INCREMENT))?;
    ensure!(gated.history()? == changes, "something changed after the restart");
    Ok(Ending::Well(gated.finish()?))
}

fn leaders(world: &World, base: &Path) -> Result<Ending> {
    let mut gated = Gated::agreed(world, base)?;
    let before = gated.wait_on(INCREMENT)?;
    for n in 0..3 {
        gated.group.move_leader(n)?;
        gated.stays(700, "on while another leads", |seen| seen.is_on(INCREMENT))?;
        gated.kill_leader()?;
        gated.stays(700, "on after the leader was killed", |seen| seen.is_on(INCREMENT))?;
    }
    let after = gated.wait_on(INCREMENT)?;
    ensure!(after.state == before.state, "was {before:?}, and is {after:?}");
    gated.expect_history(&["AGREED: AtomicIncrement"])?;
    Ok(Ending::Well(gated.finish()?))
}
