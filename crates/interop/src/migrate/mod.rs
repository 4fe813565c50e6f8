//! `cargo xtask interop migrate`: data dirs of real etcd 3.5, 3.6 and 3.7 and of Lockgate go up and down between versions, and
//! the server of each version finds in them what was there before.

mod fill;
mod killed;
mod people;
mod trip;
mod users;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;

use super::{
    Named, lockgate, our_utl, peer,
    report::{self, Known},
    server::Program,
    timed, tool,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Every version to every other, and everything twice as often
    #[arg(long)]
    all: bool,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only scenarios whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// The server to test, with lockgateutl in the same directory; built from this workspace unless given
    #[arg(long)]
    lockgate: Option<PathBuf>,
}

/// One version and who runs it.
#[derive(Clone)]
pub(crate) struct Release {
    pub version: &'static str,
    pub server: Program,
    /// etcdctl of the release itself; of 3.7 for Lockgate.
    pub etcdctl: PathBuf,
}

/// The programs that the scenarios use.
pub(crate) struct Tools {
    pub releases: Vec<Release>,
    pub utl: PathBuf,
    pub seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let cache = harness::peers_dir();
    let path = lockgate(args.lockgate.as_deref())?;
    let mut releases = Vec::new();
    for (version, dir) in [("3.5", peer::ETCD_3_5), ("3.6", peer::ETCD_3_6), ("3.7", peer::ETCD)] {
        let server = Program::new(peer::find(&cache, dir, "etcd")?);
        releases.push(Release { version, server, etcdctl: peer::find(&cache, dir, "etcdctl")? });
    }
    let etcdctl = peer::find(&cache, peer::ETCD, "etcdctl")?;
    releases.push(Release { version: "3.8", server: Program::new(&path), etcdctl });
    let tools = Tools { releases, utl: our_utl(&path, &cache)?, seed: args.seed };
    let mut known = Known::default();
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let scenarios = scenarios(&tools, args.all);
    let chosen = scenarios.iter().filter(|(name, _)| wanted(name));
    let summaries: Vec<_> = chosen.map(|(name, run)| timed(name, &mut known, run)).collect();
    Ok(if report::print_table(&summaries) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The short form has the oldest and the newest real release.
fn scenarios(tools: &Tools, all: bool) -> Vec<Named<'_>> {
    let [r5, r6, r7, ours] = &tools.releases[..] else { return Vec::new() };
    let mut list: Vec<Named<'_>> = Vec::new();
    list.push(("3.5 to 3.8 and back", Box::new(|dir| trip::there_and_back(tools, r5, ours, dir))));
    list.push(("3.7 to 3.8 and back", Box::new(|dir| trip::there_and_back(tools, r7, ours, dir))));
    list.push(("3.5, auth on", Box::new(|dir| trip::with_auth_on(tools, r5, dir))));
    list.push(("3.7, auth on", Box::new(|dir| trip::with_auth_on(tools, r7, dir))));
    list.push(("3.5 to 3.8, killed", Box::new(|dir| killed::server(tools, r5, ours, dir))));
    list.push(("3.5 to 3.6, users wait", Box::new(|dir| users::waiting(tools, r5, r6, users::by_script, dir))));
    list.push(("3.7 to 3.6, users wait", Box::new(|dir| users::waiting(tools, r7, r6, users::by_script, dir))));
    list.push(("3.5 to 3.7, random users", Box::new(|dir| users::waiting(tools, r5, r7, people::at_random, dir))));
    list.push(("3.7 to 3.5, random users", Box::new(|dir| users::waiting(tools, r7, r5, people::at_random, dir))));
    list.push(("3.6, log elsewhere", Box::new(|dir| trip::log_elsewhere(tools, r6, ours, dir))));
    list.push(("ours to 3.5 and back", Box::new(|dir| trip::there_and_back(tools, ours, r5, dir))));
    list.push(("tool killed", Box::new(move |dir| killed::migration(tools, r7, if all { 100 } else { 15 }, dir))));
    if all {
        list.push(("3.6 to 3.7, users wait", Box::new(|dir| users::waiting(tools, r6, r7, users::by_script, dir))));
        list.push(("3.6 to 3.5, random users", Box::new(|dir| users::waiting(tools, r6, r5, people::at_random, dir))));
        list.push((
            "3.5 to 3.8, random users",
            Box::new(|dir| users::waiting(tools, r5, ours, people::at_random, dir)),
        ));
        list.push((
            "3.7 to 3.8, random users",
            Box::new(|dir| users::waiting(tools, r7, ours, people::at_random, dir)),
        ));
        list.push(("3.6, auth on", Box::new(|dir| trip::with_auth_on(tools, r6, dir))));
        list.push(("3.7 to 3.8, killed", Box::new(|dir| killed::server(tools, r7, ours, dir))));
        list.push(("3.6 to 3.7, killed", Box::new(|dir| killed::server(tools, r6, r7, dir))));
        list.push(("3.5 to 3.6 and back", Box::new(|dir| trip::there_and_back(tools, r5, r6, dir))));
        list.push(("3.5 to 3.7 and back", Box::new(|dir| trip::there_and_back(tools, r5, r7, dir))));
        list.push(("3.6 to 3.5 and back", Box::new(|dir| trip::there_and_back(tools, r6, r5, dir))));
        list.push(("3.6 to 3.7 and back", Box::new(|dir| trip::there_and_back(tools, r6, r7, dir))));
        list.push(("3.6 to 3.8 and back", Box::new(|dir| trip::there_and_back(tools, r6, ours, dir))));
        list.push(("3.7 to 3.5 and back", Box::new(|dir| trip::there_and_back(tools, r7, r5, dir))));
        list.push(("3.7 to 3.6 and back", Box::new(|dir| trip::there_and_back(tools, r7, r6, dir))));
        list.push(("ours to 3.6 and back", Box::new(|dir| trip::there_and_back(tools, ours, r6, dir))));
        list.push(("ours to 3.7 and back", Box::new(|dir| trip::there_and_back(tools, ours, r7, dir))));
    }
    list
}

impl Tools {
    /// Brings a dir to a version; `extra` are more words for the command line.
    pub(crate) fn migrate(&self, dir: &Path, target: &str, extra: &[&str]) -> Result<String> {
        let dir = dir.to_string_lossy();
        let words = ["migrate", "-y", "--data-dir", &dir, "--target-version", target];
        tool::run(&self.utl, &[&words, extra].concat())
    }

    /// The hash of the database, as the tool sees it.
    pub(crate) fn hash(&self, dir: &Path) -> Result<String> {
        tool::run(&self.utl, &["hashkv", "--data-dir", &dir.to_string_lossy()])
    }
}
