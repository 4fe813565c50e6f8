//! `lockgate ofrep` read by the stock OpenFeature provider of another language (`interop/python-ofrep`).

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use super::{
    super::{
        cluster::{Ending, Scenario, World, member},
        fetch::CLIENTS,
        peer, root,
        server::{Program, Server},
    },
    api::Api,
    client_go::finish,
    sets::{EVERYWHERE, METRICS, NO_UPGRADES, PREVIEWS, Process, Sets},
};

pub const SCENARIOS: &[Scenario] = &[Scenario { name: "OFREP: stock provider of Python", short: true, run: python }];

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
    let metrics = format!("127.0.0.1:{}", member::free_port()?);
    for version in ["1.4.0", "1.5.0"] {
        running.push(sets.controller(version, &api.kubeconfig, &["--metrics-listen", &metrics])?);
        sets.ours(&["gates", "version", "begin", version, "--wait-seconds", "90"])?;
        sets.ours(&["gates", "version", "complete", version])?;
        // Whoever holds the lease reports its own version, so the older one has to go.
        if version == "1.4.0" {
            running.clear();
        }
    }
    let listen = format!("127.0.0.1:{}", member::free_port()?);
    let (config, log) = (api.kubeconfig.display().to_string(), base.join("ofrep.log"));
    let args = ["ofrep", "--listen", &listen, "--kubeconfig", &config, "--store-endpoints", &store.endpoint];
    running.push(Process::start(world, &args, log)?);
    let mut said = ask(world, &listen, "default")?;
    sets.choose("TechPreviewNoUpgrade")?;
    said = format!("{said} in Default, {} in TechPreviewNoUpgrade", ask(world, &listen, "preview")?);
    sets.until_condition("clusteroperator", "config-operator", "Upgradeable", NO_UPGRADES)?;
    sets.check_metrics(&metrics, METRICS)?;
    running.iter_mut().try_for_each(Process::check_well)?;
    api.check_well()?;
    Ok(Ending::Well(said))
}

fn ask(world: &World, listen: &str, phase: &str) -> Result<String> {
    let python = peer::find(&world.cache.join(CLIENTS), "python-ofrep", "venv/bin/python")?;
    let child = Command::new(python)
        .arg(root()?.join("interop/python-ofrep/scenario.py"))
        .args([&format!("http://{listen}"), phase])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("failed to run Python")?;
    finish(child).with_context(|| format!("the set is {phase}"))
}
