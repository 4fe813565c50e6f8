//! Informers of client-go, dynamic and typed, with streamed lists and without (`interop/client-go`).

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        fetch::CLIENTS,
        peer,
    },
    api::{Api, Pair},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "client-go: informers on real etcd", short: true, run: on_etcd },
    Scenario { name: "client-go: informers on ours", short: false, run: on_ours },
    Scenario { name: "client-go: typed clients", short: false, run: typed },
];

fn on_etcd(world: &World, base: &Path) -> Result<Ending> {
    both(world, base, |base| Pair::start(world, base, &world.etcd))
}

fn on_ours(world: &World, base: &Path) -> Result<Ending> {
    both(world, base, |base| Pair::start(world, base, &world.ours))
}

/// Parts of common programs: clientsets with protobuf bodies, elections, mappers, pagers, watches that go on.
fn typed(world: &World, base: &Path) -> Result<Ending> {
    let mut pair = Pair::start(world, base, &world.ours)?;
    let said = finish(start(command(world, "clients", &[&pair.api])?)?)?;
    pair.api.check_well()?;
    Ok(Ending::Well(said))
}

/// With and without WatchList, at once: each waits for the back-off of client-go most of the time.
fn both(world: &World, base: &Path, pair: impl Fn(&Path) -> Result<Pair>) -> Result<Ending> {
    let mut running = Vec::new();
    for streamed in ["true", "false"] {
        let dir = base.join(streamed);
        std::fs::create_dir_all(&dir)?;
        let pair = pair(&dir)?;
        let mut command = command(world, "informer", &[&pair.api])?;
        command.args(["-etcd", &pair.store.endpoint]).env("KUBE_FEATURE_WatchListClient", streamed);
        running.push((start(command)?, pair));
    }
    let mut said = Vec::new();
    for (child, mut pair) in running {
        said.push(finish(child)?);
        pair.api.check_well()?;
    }
    Ok(Ending::Well(said.join("; ")))
}

/// The program of `interop/client-go` in one of its modes.
pub(super) fn program(world: &World, mode: &str) -> Result<Command> {
    let mut command = Command::new(peer::find(&world.cache.join(CLIENTS), "client-go", "scenario")?);
    command.arg(mode);
    Ok(command)
}

/// Starts a client whose output `finish` returns. It ends with this program.
pub(super) fn start(mut command: Command) -> Result<Child> {
    let failed = format!("failed to run {}", command.get_program().display());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    harness::spawn_child(command).context(failed)
}

/// The program of `interop/client-go` in one of its modes, against these servers.
pub(super) fn command(world: &World, mode: &str, apis: &[&Api]) -> Result<Command> {
    let mut command = program(world, mode)?;
    for api in apis {
        command.arg("-kubeconfig").arg(&api.kubeconfig);
    }
    Ok(command)
}

/// Returns the output after its `ok`; the error has all output.
pub(super) fn finish(child: Child) -> Result<String> {
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
    match said.strip_prefix("ok ") {
        Some(said) if output.status.success() => Ok(said.to_owned()),
        _ => bail!("the client ended with {}: {said}", output.status),
    }
}
