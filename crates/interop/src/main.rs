//! `cargo xtask interop`: Lockgate next to real etcd, its tools and public clients.

mod cluster;
mod ctl;
mod dir;
mod fetch;
mod gates;
mod gateway;
mod http;
mod kill9;
mod kube;
mod load;
mod migrate;
mod normal;
mod own_dir;
mod peer;
mod report;
mod required;
mod scenario;
mod server;
mod tool;
mod wait;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::{Parser as _, Subcommand};

use dir::Tools;
use report::{Known, Step, Summary};
use scenario::Scenario;
use server::{End, Program, is_lockgate};

#[derive(clap::Parser)]
#[command(name = "cargo xtask interop", about = "Hold lockgate against real etcd, its tools and public clients")]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
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
        /// Only those whose name contains this, such as kube-apiserver
        #[arg(long)]
        only: Option<String>,
    },
    /// Kill the server at random moments under load and look for lost, duplicate and half writes
    Kill9(kill9::Args),
    /// Data dirs up and down between versions, with the servers of each
    Migrate(migrate::Args),
    /// Clusters of real processes, Lockgate alone and mixed with real etcd, under a checked load with faults
    Cluster(cluster::Args),
    /// Every rule of cluster feature gates, on clusters of real processes
    Gates(gates::Args),
    /// The API server under kubectl, client-go and Python, on real etcd and on clusters of Lockgate
    Kube(kube::Args),
}

#[derive(clap::Args)]
struct Compare {
    /// Also with peers that only `fetch --all` builds
    #[arg(long)]
    all: bool,
    /// For the random load of data dirs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only scenarios whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// The server to hold against etcd; built from this workspace unless given
    #[arg(long)]
    lockgate: Option<PathBuf>,
}

/// A subcommand answers with its exit code; an error is a run that could not be done at all.
fn main() -> ExitCode {
    run(&Args::parse()).unwrap_or_else(|error| {
        eprintln!("Error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(args: &Args) -> Result<ExitCode> {
    match &args.action {
        Some(Action::Fetch { all, only }) => fetch::run(*all, only.as_deref()).map(|()| ExitCode::SUCCESS),
        Some(Action::Kill9(args)) => kill9::run(args, &lockgate(args.lockgate.as_deref())?),
        Some(Action::Cluster(args)) => cluster::run(args),
        Some(Action::Gates(args)) => gates::run(args),
        Some(Action::Kube(args)) => kube::run(args),
        Some(Action::Migrate(args)) => migrate::run(args),
        None => compare(&args.compare),
    }
}

/// A scenario by its name in the table.
type Named<'a> = (&'static str, Box<dyn Fn(&Path) -> Result<Vec<Step>> + 'a>);

fn compare(args: &Compare) -> Result<ExitCode> {
    let cache = harness::peers_dir();
    let etcd = Program::new(peer::find(&cache, peer::ETCD, "etcd")?);
    let path = lockgate(args.lockgate.as_deref())?;
    let ours = Program::lockgate(&path);
    let tools = Tools { our_utl: our_utl(&path, &cache)?, etcd, ours, cache, seed: args.seed };
    let mut known = Known::read(&root()?.join("interop/known-differences.txt"))?;
    let mut summaries = Vec::new();
    let scenarios = scenarios(&tools, args.all)?;
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for (name, run) in scenarios.iter().filter(|(name, _)| wanted(name)) {
        summaries.push(timed(name, &mut known, run));
    }
    let well = report::print_table(&summaries);
    for row in known.unused(&summaries) {
        println!("no longer differs, remove it from known-differences.txt: {row}");
    }
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn scenarios(tools: &Tools, all: bool) -> Result<Vec<Named<'_>>> {
    let (etcd, ours) = (&tools.etcd, &tools.ours);
    let mut list: Vec<Named<'_>> = Vec::new();
    for scenario in Scenario::ALL {
        list.push((scenario.name(), Box::new(move |dir| scenario.run(etcd, ours, dir))));
    }
    let etcdutl = peer::find(&tools.cache, peer::ETCD, "etcdutl")?;
    if ours.is_lockgate() {
        let path = ours.path.clone();
        list.push(("required feature (Go)", Box::new(move |dir| required::run(etcd, &path, dir))));
    }
    list.push(("dir: taken over, stopped", Box::new(|dir| dir::take_over(tools, End::Stop, dir))));
    list.push(("dir: taken over, killed", Box::new(|dir| dir::take_over(tools, End::Kill, dir))));
    list.push(("dir: founded, stopped", Box::new(|dir| dir::found(tools, (ours, etcd), "3.7.0", End::Stop, dir))));
    list.push(("dir: founded, killed", Box::new(|dir| dir::found(tools, (ours, etcd), "3.7.0", End::Kill, dir))));
    list.push(("dir: of 3.6, refused", Box::new(|dir| dir::refused(tools, peer::ETCD_3_6, dir))));
    list.push(("dir: of 3.5, refused", Box::new(|dir| dir::refused(tools, peer::ETCD_3_5, dir))));
    list.push(("snapshot: ours to etcd", Box::new(move |dir| dir::restore(tools, ours, &etcdutl, etcd, dir))));
    list.push(("snapshot: etcd to ours", Box::new(|dir| dir::restore(tools, etcd, &tools.our_utl, ours, dir))));
    if all {
        let newest = Program::new(peer::find(&tools.cache, peer::ETCD_3_8, "etcd")?);
        let founder = Program::new(&ours.path);
        let run = move |dir: &Path| dir::found(tools, (&founder, &newest), "3.8.0", End::Stop, dir);
        list.push(("dir: founded, 3.8", Box::new(run)));
    }
    Ok(list)
}

/// lockgateutl, or etcdutl when an etcd stands in for lockgate.
fn our_utl(server: &Path, cache: &Path) -> Result<PathBuf> {
    if !is_lockgate(server) {
        return peer::find(cache, peer::ETCD, "etcdutl");
    }
    let beside = server.with_file_name("lockgateutl");
    if beside.is_file() { Ok(beside) } else { built("utl", "lockgateutl") }
}

fn timed(name: &str, known: &mut Known, run: impl FnOnce(&Path) -> Result<Vec<Step>>) -> Summary {
    let start = Instant::now();
    println!("== {name}");
    let summary = match own_dir::in_own_dir(run) {
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

/// A binary of this workspace, built into the directory of this program, so that both share a profile.
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
    root.map(Path::to_path_buf).context("found no workspace above the interop crate")
}

fn unbase64(text: &str) -> Result<String> {
    Ok(String::from_utf8(STANDARD.decode(text)?)?)
}

fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    /// Errors in the definition of a command line show only when it is used.
    #[test]
    fn the_command_line_is_valid() {
        super::Args::command().debug_assert();
    }
}
