//! A manager of controller-runtime with a controller, a cache and a leader election (`interop/controller-runtime`), in its newest release and in
//! one of two years before.

use std::{fs, path::Path, process::Command};

use anyhow::Result;

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        fetch::CLIENTS,
        peer,
    },
    api::Pair,
    client_go::{finish, start},
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "controller-runtime: a manager", short: false, run: managers }];

fn managers(world: &World, base: &Path) -> Result<Ending> {
    let mut said = Vec::new();
    for age in ["scenario", "older"] {
        let dir = base.join(age);
        fs::create_dir_all(&dir)?;
        let mut pair = Pair::start(world, &dir, &world.ours)?;
        let mut command = Command::new(peer::find(&world.cache.join(CLIENTS), "controller-runtime", age)?);
        command.arg("-kubeconfig").arg(&pair.api.kubeconfig);
        said.push(format!("{age}: {}", finish(start(command)?)?));
        pair.api.check_well()?;
    }
    Ok(Ending::Well(said.join("; ")))
}
