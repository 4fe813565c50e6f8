//! `cargo xtask interop kill9`: the server is killed at random moments under load, again and again on one dir. After each
//! start every acknowledged write is there exactly once, and of those that were under way, each is there whole or not
//! at all.
//!
//! Every write makes exactly one revision, so that the store's revision counts them: a write applied twice or a lost one
//! shows in it even if no key tells.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    base64,
    http::Http,
    load::{Rng, number},
    server::{Program, Server},
};

const WORKERS: u64 = 6;
const LIFE_MS_MIN: u64 = 30;
const LIFE_MS_MAX: u64 = 700;

#[derive(clap::Args)]
pub struct Args {
    #[arg(long, default_value_t = 100)]
    rounds: u64,
    /// Which keys, moments and compactions; random unless given, and printed
    #[arg(long)]
    seed: Option<u64>,
    /// The server to kill; built from this workspace unless given
    #[arg(long)]
    pub lockgate: Option<PathBuf>,
}

pub fn run(args: &Args, program: &Path) -> Result<ExitCode> {
    let seed = args.seed.unwrap_or_else(clock_seed);
    println!("SEED {seed}");
    let mut program = Program::lockgate(program);
    // Snapshots and new log segments happen within a run.
    program.flags.extend(["--snapshot-count=300".to_owned(), "--max-wals=2".to_owned()]);
    let temp = tempfile::tempdir()?;
    let dir = temp.path().join("data");
    let outcome = rounds(&program, &dir, args.rounds, &mut Rng(seed));
    if outcome.is_err() {
        let kept = temp.keep();
        println!("the data dir and the log are kept in {}", kept.display());
    }
    println!("SEED {seed}");
    let counts = outcome?;
    println!(
        "kill9: {} rounds, {} acknowledged writes, {} under way at a kill of which {} were kept, {} compactions: all well",
        args.rounds, counts.acknowledged, counts.under_way, counts.kept, counts.compactions
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

fn rounds(program: &Program, dir: &Path, rounds: u64, rng: &mut Rng) -> Result<Counts> {
    let mut truth = Truth { revision: 1, ..Truth::default() };
    let mut counts = Counts::default();
    let mut hash = None;
    for round in 0..rounds {
        let compacting = rng.below(4) == 0;
        let life = Duration::from_millis(LIFE_MS_MIN + rng.below(LIFE_MS_MAX - LIFE_MS_MIN));
        let context = || format!("round {round}, killed {life:?} after it was ready");
        let server = Server::start(program, dir).with_context(context)?;
        check(&server, &truth, &hash).with_context(context)?;
        let compact_at = compacting.then(|| truth.revision.saturating_sub(rng.below(100)));
        let outcomes = load_and_kill(server, round, life, compact_at, &truth.counters)?;
        counts.acknowledged += outcomes.iter().map(|o| o.done.len() as u64).sum::<u64>();
        counts.under_way += outcomes.iter().filter(|o| o.pending.is_some()).count() as u64;
        counts.compactions += u64::from(compacting);

        let server = Server::start(program, dir).with_context(context)?;
        counts.kept += settle(&server, outcomes, &mut truth).with_context(context)?;
        // A compaction that the kill cut short goes on now, and with it the hash changes.
        let (before, now) = (hash.take(), hash_at(&server, truth.revision)?);
        if let (Some((revision, then)), false) = (before, compacting) {
            let again = hash_at(&server, revision)?.1;
            ensure!(again == then, "the hash at revision {revision} was {then} and is {again}");
        }
        hash = Some(now);
        if round % 2 == 0 {
            server.kill()?
        } else {
            server.stop()?
        }
        if (round + 1) % 10 == 0 {
            println!("  {} rounds, revision {}", round + 1, truth.revision);
        }
    }
    let server = Server::start(program, dir)?;
    check(&server, &truth, &hash).context("at the end")?;
    Ok(counts)
}

/// What must be in the store.
#[derive(Default)]
struct Truth {
    revision: u64,
    /// Key → (value, revision), never overwritten.
    keys: BTreeMap<String, (String, u64)>,
    /// Of each worker, value and revision.
    counters: Vec<(u64, u64)>,
}

/// One write: a key of its own, or a pair of keys and a counter in one txn.
#[derive(Clone, Debug)]
struct Write {
    keys: Vec<String>,
    /// Worker and new value.
    counter: Option<(u64, u64)>,
}

struct Outcome {
    done: Vec<(Write, u64)>,
    /// Sent, and the server died before it answered.
    pending: Option<Write>,
}

fn load_and_kill(
    server: Server,
    round: u64,
    life: Duration,
    compact_at: Option<u64>,
    counters: &[(u64, u64)],
) -> Result<Vec<Outcome>> {
    let stopped = AtomicBool::new(false);
    let endpoint = server.endpoint.clone();
    thread::scope(|scope| {
        let work = |worker: u64| {
            let counter = counters.get(usize::try_from(worker).unwrap_or_default()).copied().unwrap_or_default();
            let (endpoint, stopped) = (&endpoint, &stopped);
            scope.spawn(move || write_until_killed(endpoint, worker, round, counter, stopped))
        };
        let workers: Vec<_> = (0..WORKERS).map(work).collect();
        thread::sleep(life / 2);
        if let Some(revision) = compact_at {
            let endpoint = &endpoint;
            // Refused if that is compacted already; the answer is lost with the server as a rule.
            scope.spawn(move || {
                let body = json!({"revision": revision, "physical": true}).to_string();
                Http::connect(endpoint).and_then(|mut http| http.post("/v3/kv/compaction", &body))
            });
        }
        thread::sleep(life / 2);
        server.kill()?;
        stopped.store(true, Ordering::Relaxed);
        let join = |worker: thread::ScopedJoinHandle<'_, Result<Outcome>>| {
            worker.join().map_err(|_| anyhow::anyhow!("a writer panicked"))?
        };
        workers.into_iter().map(join).collect()
    })
}

fn write_until_killed(
    endpoint: &str,
    worker: u64,
    round: u64,
    mut counter: (u64, u64),
    stopped: &AtomicBool,
) -> Result<Outcome> {
    let mut done = Vec::new();
    let Ok(mut http) = Http::connect(endpoint) else { return Ok(Outcome { done, pending: None }) };
    for n in 0_u64.. {
        let name = format!("k/{worker}/{round:04}/{n:05}");
        let (write, path, body) = if n % 3 == 2 { pair_txn(&name, worker, counter) } else { single_put(&name) };
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let Ok(answer) = http.post(path, &body.to_string()) else {
            return Ok(Outcome { done, pending: Some(write) });
        };
        ensure!(answer.status == 200, "{name} was refused with {}: {}", answer.status, answer.body);
        let answer: Value = serde_json::from_str(&answer.body)?;
        ensure!(path.ends_with("put") || answer["succeeded"] == true, "the counter of {worker} is not {counter:?}");
        let revision = number(&answer["header"]["revision"])?;
        if let Some((_, value)) = write.counter {
            counter = (value, revision);
        }
        done.push((write, revision));
    }
    Ok(Outcome { done, pending: None })
}

fn single_put(name: &str) -> (Write, &'static str, Value) {
    let body = json!({"key": base64(name.as_bytes()), "value": base64(value_of(name).as_bytes())});
    (Write { keys: vec![name.to_owned()], counter: None }, "/v3/kv/put", body)
}

/// Two keys and the worker's counter, if that is what it was.
fn pair_txn(name: &str, worker: u64, (value, revision): (u64, u64)) -> (Write, &'static str, Value) {
    let keys = vec![format!("{name}/a"), format!("{name}/b")];
    let put = |key: &str, value: &str| json!({"request_put": {"key": base64(key.as_bytes()), "value": base64(value.as_bytes())}});
    let counter = format!("c/{worker}");
    let body = json!({
        "compare": [{"key": base64(counter.as_bytes()), "target": "MOD", "result": "EQUAL", "mod_revision": revision}],
        "success": [
            put(&keys[0], &value_of(&keys[0])),
            put(&counter, &(value + 1).to_string()),
            put(&keys[1], &value_of(&keys[1])),
        ],
    });
    (Write { keys, counter: Some((worker, value + 1)) }, "/v3/kv/txn", body)
}

fn value_of(key: &str) -> String {
    format!("value of {key} {}", "x".repeat(key.len() * 5))
}

/// Adds what came of a round to the truth, after the restart has decided about writes that were under way.
fn settle(server: &Server, outcomes: Vec<Outcome>, truth: &mut Truth) -> Result<u64> {
    let found = read_all(server)?;
    let mut kept = 0;
    truth.counters.resize(WORKERS as usize, (0, 0));
    let mut revisions = Vec::new();
    for outcome in outcomes {
        let pending = outcome.pending.into_iter().filter_map(|write| found.decide(&write).transpose());
        let pending: Vec<(Write, u64)> = pending.collect::<Result<_>>()?;
        kept += pending.len() as u64;
        for (write, revision) in outcome.done.into_iter().chain(pending) {
            revisions.push(revision);
            if let Some((worker, value)) = write.counter {
                truth.counters[usize::try_from(worker)?] = (value, revision);
            }
            truth.keys.extend(write.keys.into_iter().map(|key| (key.clone(), (value_of(&key), revision))));
        }
    }
    revisions.sort_unstable();
    let expected: Vec<u64> = (truth.revision + 1..).take(revisions.len()).collect();
    ensure!(
        revisions == expected,
        "after revision {} writes should have {} to {}, but they have {revisions:?}",
        truth.revision,
        truth.revision + 1,
        truth.revision + revisions.len() as u64
    );
    truth.revision += revisions.len() as u64;
    found.compare(truth)?;
    Ok(kept)
}

fn check(server: &Server, truth: &Truth, hash: &Option<(u64, String)>) -> Result<()> {
    read_all(server)?.compare(truth)?;
    if let Some((revision, then)) = hash {
        let now = hash_at(server, *revision)?.1;
        ensure!(now == *then, "the hash at revision {revision} was {then} before the restart and is {now} after it");
    }
    Ok(())
}

struct Row {
    value: String,
    version: u64,
    created: u64,
    modified: u64,
}

struct Found {
    revision: u64,
    keys: BTreeMap<String, Row>,
    counters: Vec<(u64, u64)>,
}

impl Found {
    /// A write under way when the server died: its revision if it is there, whole; an error if a part of it is.
    fn decide(&self, write: &Write) -> Result<Option<(Write, u64)>> {
        let there: Vec<_> = write.keys.iter().filter_map(|key| self.keys.get(key)).collect();
        let Some(first) = there.first() else { return Ok(None) };
        let whole = there.len() == write.keys.len() && there.iter().all(|row| row.modified == first.modified);
        ensure!(whole, "{write:?} is there in part");
        Ok(Some((write.clone(), first.modified)))
    }

    fn compare(&self, truth: &Truth) -> Result<()> {
        ensure!(self.revision == truth.revision, "the store is at {} instead of {}", self.revision, truth.revision);
        for (key, (value, revision)) in &truth.keys {
            let Some(row) = self.keys.get(key) else { bail!("{key}, written at {revision}, is lost") };
            ensure!(row.value == *value, "{key} has the value {:?}", row.value);
            let stamps = (row.version, row.created, row.modified);
            ensure!(stamps == (1, *revision, *revision), "{key} has {stamps:?} instead of version 1 at {revision}");
        }
        if let Some(key) = self.keys.keys().find(|key| !truth.keys.contains_key(*key)) {
            bail!("{key} is there and was never written");
        }
        for (worker, (found, wanted)) in self.counters.iter().zip(&truth.counters).enumerate() {
            ensure!(found == wanted, "counter {worker} is {found:?} instead of {wanted:?}");
        }
        Ok(())
    }
}

fn read_all(server: &Server) -> Result<Found> {
    let mut http = server.http()?;
    let (mut keys, mut next, mut revision) = (BTreeMap::new(), "k/".to_owned(), 0);
    loop {
        let page =
            json!({"key": base64(next.as_bytes()), "range_end": base64(b"k0"), "limit": 2000, "revision": revision});
        let answer = http.call("/v3/kv/range", &page)?;
        if revision == 0 {
            revision = number(&answer["header"]["revision"])?;
        }
        for kv in answer["kvs"].as_array().unwrap_or(&Vec::new()) {
            let (key, row) = read_row(kv)?;
            next = format!("{key}\0");
            keys.insert(key, row);
        }
        if answer["more"] != true {
            break;
        }
    }
    let mut counters = vec![(0, 0); WORKERS as usize];
    let answer = http.call("/v3/kv/range", &json!({"key": base64(b"c/"), "range_end": base64(b"c0")}))?;
    for kv in answer["kvs"].as_array().unwrap_or(&Vec::new()) {
        let (key, row) = read_row(kv)?;
        let worker: usize = key.trim_start_matches("c/").parse()?;
        counters[worker] = (row.value.parse()?, row.modified);
    }
    Ok(Found { revision, keys, counters })
}

fn read_row(kv: &Value) -> Result<(String, Row)> {
    let text = |name: &str| super::unbase64(kv[name].as_str().unwrap_or_default());
    let row = Row {
        value: text("value")?,
        version: number(&kv["version"])?,
        created: number(&kv["create_revision"])?,
        modified: number(&kv["mod_revision"])?,
    };
    Ok((text("key")?, row))
}

fn hash_at(server: &Server, revision: u64) -> Result<(u64, String)> {
    let answer = server.http()?.call("/v3/maintenance/hashkv", &json!({"revision": revision}))?;
    Ok((revision, format!("{} since {}", answer["hash"], answer["compact_revision"])))
}

fn clock_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| u64::from(since.subsec_nanos()) + since.as_secs())
}
