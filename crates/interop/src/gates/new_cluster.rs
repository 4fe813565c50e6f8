//! A new cluster: off until the last member has proposed, then on in one step.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, bail, ensure};

use super::{
    super::cluster::{Ending, Scenario, World, faults::pause, group::Group, member::Host},
    gated::{CHECKPOINTS, Gated, INCREMENT, proposing},
    log::{self, Ours},
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "new cluster: on in one step", short: true, run: one_step }];

const BOTH: &str = "AtomicIncrement=true,PersistedLeaseCheckpoints=true";

fn one_step(world: &World, base: &Path) -> Result<Ending> {
    let program = proposing(&world.ours, BOTH);
    let hosts = vec![Host::default(); 3];
    let mut gated = Gated::with(Group::prepare(base, &[&program, &program, &program], &hosts, &[]));
    for n in [0, 1] {
        gated.group.start_as(n, "new");
    }
    gated.group.wait_ready()?;
    gated.stays(1500, "off while the third is away", |seen| seen.state.on.is_empty())?;
    let away = gated.look()?;
    gated.group.start_as(2, "new");
    gated.group.wait_member(2)?;
    let all = |seen: &super::book::Seen| seen.is_on(INCREMENT) && seen.is_on(CHECKPOINTS);
    let seen = gated.wait("both are on", all)?;
    let changes = gated.expect_history(&["AGREED: AtomicIncrement,PersistedLeaseCheckpoints"])?;
    ensure!(changes[0].index == seen.state.gate_index, "the gate is of {}", seen.state.gate_index);
    let well = gated.finish()?;
    pause(200);
    gated.group.stop_all();
    let order = order(&gated.group.members[0].dir, changes[0].index)?;
    Ok(Ending::Well(format!("before: {}; {order}; {well}", away[0].reasons(INCREMENT))))
}

/// The decision that turned both on was made from the last of three members' proposals.
fn order(dir: &Path, decided: u64) -> Result<String> {
    let (_, entries) = log::read(dir)?;
    let before = entries.iter().filter(|(index, _)| *index < decided);
    let mut proposals: Vec<(u64, u64)> = Vec::new();
    for (index, what) in before {
        match what {
            Ours::Proposal { member, .. } => proposals.push((*index, *member)),
            other => bail!("entry {index} is {other:?}, before all have proposed"),
        }
    }
    let members: BTreeSet<u64> = proposals.iter().map(|(_, member)| *member).collect();
    ensure!(members.len() == 3, "before the decision at {decided} only these had proposed: {proposals:?}");
    let (last, _) = proposals.last().context("there are proposals")?;
    match entries.iter().find(|(index, _)| *index == decided) {
        Some((_, Ours::Decision { decided_from })) if decided_from == last => {}
        other => bail!("the gate changed at {decided}, by {other:?}; the last proposal was at {last}"),
    }
    Ok(format!("last proposal at {last}, decision at {decided}"))
}
