//! `cargo xtask interop kill9`: the server is killed at random moments under load, again and again on one dir. After each
//! start every acknowledged write is there exactly once, and of those that were under way, each is there whole or not
//! at all.
//!
//! Every write makes exactly one revision, so that the store's revision counts them: a write applied twice or a lost one
//! shows in it even if no key tells.

mod found;
mod scope;
mod truth;
mod writer;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};
use random::Random;
use serde_json::json;

use super::{
    own_dir::in_own_dir,
    server::{Program, Server},
};
use found::Found;
use scope::Scope;
use truth::Truth;
use writer::{Outcome, load_and_kill};

const LIFE_MS_MIN: u64 = 30;
const LIFE_MS_MAX: u64 = 700;
/// In rounds between, each key of the last round is read, and of the older ones their number, the store's revision and
/// its hash.
const WHOLE_EVERY: u64 = 25;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 100)]
    rounds: u64,
    /// Which keys, moments and compactions; random unless given, and printed
    #[arg(long)]
    seed: Option<u64>,
    /// The server to kill; built from this workspace unless given
    #[arg(long)]
    pub lockgate: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, program: &Path) -> Result<ExitCode> {
    let seed = args.seed.unwrap_or_else(clock_seed);
    println!("SEED {seed}");
    let mut program = Program::lockgate(program);
    // Snapshots and new log segments happen within a run.
    program.flags.extend(["--snapshot-count=300".to_owned(), "--max-wals=2".to_owned()]);
    let start = Instant::now();
    let outcome = in_own_dir(|dir| rounds(&program, &dir.join("data"), args.rounds, &mut Random::new(seed)));
    println!("SEED {seed}");
    let counts = outcome?;
    println!(
        "kill9: {} rounds, {} acknowledged writes, {} under way at a kill of which {} were kept, {} compactions, {:.0} s: all \
         well",
        args.rounds,
        counts.acknowledged,
        counts.under_way,
        counts.kept,
        counts.compactions,
        start.elapsed().as_secs_f32()
    );
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Counts {
    acknowledged: u64,
    under_way: u64,
    kept: u64,
    compactions: u64,
}

fn rounds(program: &Program, dir: &Path, rounds: u64, rng: &mut Random) -> Result<Counts> {
    let mut truth = Truth { revision: 1, ..Truth::default() };
    let mut counts = Counts::default();
    let mut hash = None;
    for round in 0..rounds {
        let compacting = rng.below(4) == 0;
        let life = Duration::from_millis(LIFE_MS_MIN + rng.below(LIFE_MS_MAX - LIFE_MS_MIN));
        let context = || format!("round {round}, killed {life:?} after it was ready");
        let server = Server::start(program, dir).with_context(context)?;
        check(&server, &scope(round), &truth, &hash).with_context(context)?;
        let compact_at = compacting.then(|| truth.revision.saturating_sub(rng.below(100)));
        let outcomes = load_and_kill(server, round, life, compact_at, &truth.counters)?;
        counts.acknowledged += outcomes.iter().map(|o| o.done.len() as u64).sum::<u64>();
        counts.under_way += outcomes.iter().filter(|o| o.pending.is_some()).count() as u64;
        counts.compactions += u64::from(compacting);

        let server = Server::start(program, dir).with_context(context)?;
        counts.kept += settle(&server, round, outcomes, &mut truth).with_context(context)?;
        // A compaction that the kill cut short goes on now, and with it the hash changes.
        let (before, now) = (hash.take(), hash_at(&server, truth.revision)?);
        if let (Some((revision, then)), false) = (before, compacting) {
            let again = hash_at(&server, revision)?.1;
            ensure!(again == then, "the hash at revision {revision} was {then} and is {again}");
        }
        hash = Some(now);
        if round % 2 == 0 {
            server.kill()
        } else {
            server.stop()?
        }
        if (round + 1) % 10 == 0 {
            println!("  {} rounds, revision {}", round + 1, truth.revision);
        }
    }
    let server = Server::start(program, dir)?;
    check(&server, &Scope::All, &truth, &hash).context("at the end")?;
    Ok(counts)
}

/// The keys that are read before a round: those of the round before it, and now and then all.
fn scope(round: u64) -> Scope {
    if round.is_multiple_of(WHOLE_EVERY) { Scope::All } else { Scope::Round(round - 1) }
}

/// Reads what the round has left behind, lets it decide about writes that were under way, and holds it to them.
fn settle(server: &Server, round: u64, outcomes: Vec<Outcome>, truth: &mut Truth) -> Result<u64> {
    let found = Found::read(server, &Scope::Round(round))?;
    let kept = truth.settle(&found, outcomes)?;
    truth.compare(&Scope::Round(round), &found)?;
    Ok(kept)
}

fn check(server: &Server, scope: &Scope, truth: &Truth, hash: &Option<(u64, String)>) -> Result<()> {
    truth.compare(scope, &Found::read(server, scope)?)?;
    if let Some((revision, then)) = hash {
        let now = hash_at(server, *revision)?.1;
        ensure!(now == *then, "the hash at revision {revision} was {then} before the restart and is {now} after it");
    }
    Ok(())
}

fn hash_at(server: &Server, revision: u64) -> Result<(u64, String)> {
    let answer = server.http()?.call("/v3/maintenance/hashkv", &json!({"revision": revision}))?;
    Ok((revision, format!("{} since {}", answer["hash"], answer["compact_revision"])))
}

fn clock_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| u64::from(since.subsec_nanos()) + since.as_secs())
}
