//! `cargo xtask interop gates`: every rule of cluster feature gates on clusters of real processes.
//!
//! Every answer that any member gives is written into a book ([`book::Book`]) that is held to the invariant: a feature
//! that is on is on in every voter's proposal, and equal applied index means equal gate, proposals and relevant index.

mod bad_start;
mod book;
mod data;
mod flips;
mod gated;
mod learners;
mod leases;
mod log;
mod members;
mod mixed;
mod new_cluster;
mod restarts;
mod restored;
mod timeline;
mod watched;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;

use super::cluster::{self, Scenario, World};

#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    scenarios: cluster::Args,
    /// Runs one rolling change of flags and draws what happened into this SVG file
    #[arg(long)]
    timeline: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let wanted = &args.scenarios;
    let world = World::new(wanted.lockgate.as_deref(), wanted.seed, wanted.all)?;
    match &args.timeline {
        Some(path) => timeline::record(&world, path).map(|()| ExitCode::SUCCESS),
        None => Ok(cluster::run_all(&world, &scenarios(), wanted.only.as_deref())),
    }
}

fn scenarios() -> Vec<Scenario> {
    let lists = [
        new_cluster::SCENARIOS,
        flips::SCENARIOS,
        members::SCENARIOS,
        learners::SCENARIOS,
        restarts::SCENARIOS,
        mixed::SCENARIOS,
        restored::SCENARIOS,
        leases::SCENARIOS,
        data::SCENARIOS,
        watched::SCENARIOS,
        bad_start::SCENARIOS,
    ];
    lists.into_iter().flatten().map(Scenario::copy).collect()
}
