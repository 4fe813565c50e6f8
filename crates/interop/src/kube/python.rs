//! The dynamic API of Kubernetes' Python client (`interop/python-kube`).

use std::{path::Path, process::Command};

use anyhow::Result;

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        fetch::CLIENTS,
        peer, root,
    },
    api::Pair,
    client_go::{finish, start},
};

pub(super) const SCENARIOS: &[Scenario] = &[Scenario { name: "Python: dynamic client", short: true, run: dynamic }];

fn dynamic(world: &World, base: &Path) -> Result<Ending> {
    let mut pair = Pair::start(world, base, &world.ours)?;
    let python = peer::find(&world.cache.join(CLIENTS), "python-kube", "venv/bin/python")?;
    let mut command = Command::new(python);
    command.arg(root()?.join("interop/python-kube/scenario.py")).arg(&pair.api.kubeconfig);
    // It keeps discovery in the temporary directory.
    command.env("TMPDIR", base);
    let said = finish(start(command)?)?;
    pair.api.check_well()?;
    Ok(Ending::Well(said))
}
