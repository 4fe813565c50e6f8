//! `cargo xtask interop cluster`: whole clusters of real processes, Lockgate alone and mixed with real etcd, under a load that
//! is checked while members die, pause, lose their links or their disks, come and go.

mod corruption;
mod etcdctl;
pub(super) mod faults;
mod garbage;
pub(super) mod group;
pub(super) mod member;
pub(super) mod mixed;
mod netns;
mod partition;
mod recovery;
mod refuse;
pub(super) mod storage_faults;
mod table;
pub(super) mod traffic;
mod users;
pub(super) mod verdict;
mod versions;
mod versions_full;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::{Context, Result, bail};

use super::{our_utl, own_dir::in_own_dir, peer, root, server::Program};
use table::{Row, print_table};
use verdict::Figures;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Every scenario, in its long form
    #[arg(long)]
    pub all: bool,
    /// Only scenarios whose name contains this
    #[arg(long)]
    pub only: Option<String>,
    /// For the choices of clients
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The server to test; a release build of this workspace unless given
    #[arg(long)]
    pub lockgate: Option<PathBuf>,
}

/// The programs and choices that scenarios use.
pub(crate) struct World {
    pub ours: Program,
    pub etcd: Program,
    pub etcdctl: PathBuf,
    pub etcdutl: PathBuf,
    pub our_utl: PathBuf,
    pub cache: PathBuf,
    pub seed: u64,
    pub all: bool,
}

/// How a scenario ended that did not fail.
pub(crate) enum Ending {
    Well(String),
    /// This machine does not allow it: why.
    Skipped(String),
}

impl From<Figures> for Ending {
    fn from(figures: Figures) -> Ending {
        Ending::Well(figures.to_string())
    }
}

/// A scenario: its name, whether the short form has it, and what it does in a directory of its own.
pub(crate) struct Scenario {
    pub name: &'static str,
    pub short: bool,
    pub run: fn(&World, &Path) -> Result<Ending>,
}

fn scenarios() -> Vec<Scenario> {
    let lists = [
        faults::SCENARIOS,
        storage_faults::SCENARIOS,
        corruption::SCENARIOS,
        partition::SCENARIOS,
        mixed::SCENARIOS,
        users::SCENARIOS,
        etcdctl::SCENARIOS,
        refuse::SCENARIOS,
        garbage::SCENARIOS,
        recovery::SCENARIOS,
        versions::SCENARIOS,
        versions_full::SCENARIOS,
    ];
    lists.into_iter().flatten().map(Scenario::copy).collect()
}

impl Scenario {
    pub(crate) fn copy(&self) -> Scenario {
        Scenario { ..*self }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let world = World::new(args.lockgate.as_deref(), args.seed, args.all)?;
    Ok(run_all(&world, &scenarios(), args.only.as_deref()))
}

/// Runs those that are wanted, one after the other, and prints the table.
pub(crate) fn run_all(world: &World, scenarios: &[Scenario], only: Option<&str>) -> ExitCode {
    println!("SEED {}", world.seed);
    let wanted = |scenario: &&Scenario| match only {
        Some(only) => scenario.name.contains(only),
        None => world.all || scenario.short,
    };
    let rows: Vec<Row> = scenarios.iter().filter(wanted).map(|scenario| timed(world, scenario)).collect();
    // Peers that are missing have failed above; what is left to skip is what only root may do.
    let strict = env::var("LOCKGATE_REQUIRE_ROOT").is_ok_and(|value| value == "1");
    let well = print_table(&rows, strict);
    println!("SEED {}", world.seed);
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl World {
    /// With the server given, or a release build of this workspace.
    pub(crate) fn new(lockgate: Option<&Path>, seed: u64, all: bool) -> Result<World> {
        let cache = harness::peers_dir();
        let find = |name: &str| peer::find(&cache, peer::ETCD, name);
        let (etcd, etcdctl, etcdutl) = (find("etcd")?, find("etcdctl")?, find("etcdutl")?);
        let path = match lockgate {
            Some(path) => path.to_owned(),
            None => release_build()?,
        };
        let our_utl = our_utl(&path, &cache)?;
        let (ours, etcd) = (Program::new(path), Program::new(etcd));
        Ok(World { ours, etcd, etcdctl, etcdutl, our_utl, cache, seed, all })
    }
}

/// Timing matters in a cluster: what is tested is what is shipped.
fn release_build() -> Result<PathBuf> {
    let root = root()?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--release", "--package", "lockgate", "--package", "utl"]).current_dir(&root);
    if !cargo.status().context("failed to run cargo")?.success() {
        bail!("failed to build lockgate; give a path with --lockgate to test another");
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/lockgate"))
}

fn timed(world: &World, scenario: &Scenario) -> Row {
    println!("== {}", scenario.name);
    let start = Instant::now();
    let ending = in_own_dir(|dir| (scenario.run)(world, dir));
    let row = Row { name: scenario.name, took: start.elapsed(), ending };
    println!("   {}", row.line());
    row
}
