//! `cargo xtask interop kube`: the API server as a process, on real etcd and on clusters of Lockgate, asked by other people's clients.

mod api;
pub(super) mod build;
mod client_go;
mod controller_runtime;
mod everyday;
mod figures;
mod kubectl;
mod loosened;
mod ofrep;
mod python;
mod real;
mod real_sets;
mod requests;
mod script;
mod sets;
mod share;
pub(super) mod suite;
mod transcript;
mod two_servers;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;

use super::cluster::{self, Scenario, World};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Every scenario in its long form, with every kubectl (after `fetch --all`)
    #[arg(long)]
    all: bool,
    /// Only scenarios whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// The server to test; a release build of this workspace unless given
    #[arg(long)]
    lockgate: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // No scenario draws lots: what differs from run to run is the machine.
    let world = World::new(args.lockgate.as_deref(), 0, args.all)?;
    Ok(cluster::run_all(&world, &scenarios(), args.only.as_deref()))
}

fn scenarios() -> Vec<Scenario> {
    let lists = [
        kubectl::SCENARIOS,
        everyday::SCENARIOS,
        client_go::SCENARIOS,
        controller_runtime::SCENARIOS,
        python::SCENARIOS,
        ofrep::SCENARIOS,
        two_servers::SCENARIOS,
        real::SCENARIOS,
        real_sets::SCENARIOS,
        requests::SCENARIOS,
        figures::SCENARIOS,
        share::SCENARIOS,
        suite::SCENARIOS,
    ];
    lists.into_iter().flatten().map(Scenario::copy).collect()
}
