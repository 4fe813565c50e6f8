//! The dynamic API of Kubernetes' Python client (`interop/python-kube`).

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        fetch::CLIENTS,
        peer, root,
    },
    api::Pair,
    client_go::finish,
};

pub const SCENARIOS: &[Scenario] = &[Scenario { name: "Python: dynamic client", short: true, run: dynamic }];

fn dynamic(world: &World, base: &Path) -> Result<Ending> {
    let mut pair = Pair::start(world, base, &world.ours)?;
    let python = peer::find(&world.cache.join(CLIENTS), "python-kube", "venv/bin/python")?;
    let child = Command::new(python)
        .arg(root()?.join("interop/python-kube/scenario.py"))
        .arg(&pair.api.kubeconfig)
        // It keeps discovery in the temporary directory.
        .env("TMPDIR", base)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("failed to run Python")?;
    let said = finish(child)?;
    pair.api.check_well()?;
    Ok(Ending::Well(said))
}
