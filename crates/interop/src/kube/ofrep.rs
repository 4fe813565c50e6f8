//! `lockgate ofrep` read by the stock OpenFeature provider of another language (`interop/python-ofrep`).

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        fetch::CLIENTS,
        peer, root,
        server::{Program, Server},
    },
    api::Api,
    client_go::{finish, start},
    sets::{ANY, EVERYWHERE, METRICS, NO_UPGRADES, PREVIEWS, Running, Sets},
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "OFREP: stock provider of Python", short: true, run: python }];

fn python(world: &World, base: &Path) -> Result<Ending> {
    // The store has features of its own, of which one is on.
    let mut program = Program::new(&world.ours.path);
    program.flags.push("--cluster-feature-gates=AtomicIncrement=true".to_owned());
    let store = Server::start(&program, &base.join("store"))?;
    let mut api = Api::start(world, &base.join("api"), std::slice::from_ref(&store.endpoint), &[])?;
    let sets = Sets::new(world, base, &api.kubeconfig)?;
    sets.release("1.4.0", &[("A", PREVIEWS), ("B", &[])])?;
    sets.release("1.5.0", &[("A", EVERYWHERE), ("B", PREVIEWS), ("C", &[])])?;
    for name in ["0-crds.yaml", "1-namespace.yaml", "2-policies.yaml"] {
        sets.good(&["apply", "-f", &sets.manifest("1.5.0", name)])?;
    }
    let mut running = Vec::new();
    let mut metrics = String::new();
    for version in ["1.4.0", "1.5.0"] {
        let mut controller = sets.controller(version, &api.kubeconfig, &[]);
        metrics = controller.endpoint("metrics")?;
        running.push(controller);
        sets.ours(&["gates", "version", "begin", version, "--wait-seconds", "90"])?;
        sets.ours(&["gates", "version", "complete", version])?;
        // Whoever holds the lease reports its own version, so the older one has to go.
        if version == "1.4.0" {
            running.clear();
        }
    }
    let config = api.kubeconfig.display().to_string();
    let args = ["ofrep", "--listen", ANY, "--kubeconfig", &config, "--store-endpoints", &store.endpoint];
    let mut ofrep = Running::start(world, &args, &base.join("ofrep.log"));
    let listen = ofrep.endpoint("ofrep")?;
    running.push(ofrep);
    let mut said = ask(world, &listen, "default")?;
    sets.choose("TechPreviewNoUpgrade")?;
    said = format!("{said} in Default, {} in TechPreviewNoUpgrade", ask(world, &listen, "preview")?);
    sets.until_condition("clusteroperator", "config-operator", "Upgradeable", NO_UPGRADES)?;
    sets.check_metrics(&metrics, METRICS)?;
    running.iter_mut().try_for_each(Running::check_well)?;
    api.check_well()?;
    Ok(Ending::Well(said))
}

fn ask(world: &World, listen: &str, phase: &str) -> Result<String> {
    let python = peer::find(&world.cache.join(CLIENTS), "python-ofrep", "venv/bin/python")?;
    let mut command = Command::new(python);
    command.arg(root()?.join("interop/python-ofrep/scenario.py")).args([&format!("http://{listen}"), phase]);
    finish(start(command)?).with_context(|| format!("the set is {phase}"))
}
