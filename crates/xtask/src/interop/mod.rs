//! `cargo xtask interop`: lockgate beside real etcd, its tools and public clients.

mod ctl;
mod fetch;
mod gateway;
mod http;
mod normal;
mod peer;
mod report;
mod scenario;
mod server;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Subcommand;

use report::{Known, Step, Summary};
use scenario::Scenario;
use server::Program;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    compare: Compare,
}

#[derive(Subcommand)]
enum Action {
    /// Build the real peers and the scenario clients into the cache
    Fetch {
        /// Also those that only long runs need
        #[arg(long)]
        all: bool,
    },
}

#[derive(clap::Args)]
struct Compare {
    /// Only scenarios whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// The server to hold against etcd; built from this workspace unless given
    #[arg(long)]
    lockgate: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.action {
        Some(Action::Fetch { all }) => fetch::run(*all).map(|()| ExitCode::SUCCESS),
        None => compare(&args.compare),
    }
}

fn compare(args: &Compare) -> Result<ExitCode> {
    let cache = peer::cache_dir()?;
    let etcd = Program::new(peer::find(&cache, peer::ETCD, "etcd")?);
    let ours = Program::lockgate(lockgate(args.lockgate.as_deref())?);
    let mut known = Known::read(&root()?.join("interop/known-differences.txt"))?;
    let mut summaries = Vec::new();
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for scenario in Scenario::ALL.into_iter().filter(|scenario| wanted(scenario.name())) {
        summaries.push(timed(scenario.name(), &mut known, || scenario.run(&etcd, &ours)));
    }
    let well = report::print_table(&summaries);
    for row in known.unused(&summaries) {
        println!("no longer differs, remove it from known-differences.txt: {row}");
    }
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn timed(name: &str, known: &mut Known, run: impl FnOnce() -> Result<Vec<Step>>) -> Summary {
    let start = Instant::now();
    println!("== {name}");
    let summary = match run() {
        Ok(steps) => report::judge(name, steps, known),
        Err(error) => {
            println!("FAILED {name}: {error:#}");
            Summary { failed: Some(format!("{error:#}")), ..report::judge(name, Vec::new(), known) }
        }
    };
    println!("   {} steps in {:.1} s", summary.steps, start.elapsed().as_secs_f32());
    summary
}

/// The server to test: the one given, or this workspace's, built as this program was.
fn lockgate(given: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(path) => Ok(path.to_path_buf()),
        None => built("lockgate", "lockgate"),
    }
}

/// A binary of this workspace, built beside this program so that both share a profile.
fn built(package: &str, binary: &str) -> Result<PathBuf> {
    let own = env::current_exe().context("cannot tell where this program is")?;
    let dir = own.parent().context("this program is in no directory")?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", package, "--bin", binary]).current_dir(root()?);
    if dir.ends_with("release") {
        cargo.arg("--release");
    }
    if !cargo.status().context("failed to run cargo")?.success() {
        bail!("failed to build {binary}; give a path with --lockgate to test another");
    }
    Ok(dir.join(binary))
}

/// The workspace that this was built from.
fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.map(Path::to_path_buf).context("found no workspace above the xtask crate")
}

fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
