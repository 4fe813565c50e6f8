//! The cost of requests for Lockgate and a real kube-apiserver, each with its own store, in one run: CPU of the servers, memory, time to start.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        server::Server,
        wait::until_some,
    },
    api::Api,
    client_go::{finish, program, start},
    kubectl::newest,
    real::{Real, is_ready},
};

pub(super) const SCENARIOS: &[Scenario] = &[Scenario { name: "kube-apiserver: figures", short: false, run: figures }];

/// Objects that are created and updated.
const COUNT: &str = "2000";
const ROUNDS: usize = 3;

/// One system under load: start of its API server, and the line that the load printed.
struct Round {
    start: Duration,
    figures: Value,
}

/// The rounds take turns, so that both meet the same moods of the machine.
fn figures(world: &World, base: &Path) -> Result<Ending> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for n in 0..ROUNDS {
        ours.push(round_of_ours(world, &base.join(format!("ours-{n}")))?);
        theirs.push(round_of_theirs(world, &base.join(format!("theirs-{n}")))?);
    }
    println!("   | | kube-apiserver + etcd | ours | ratio |\n   |---|---|---|---|");
    row("start to ready, ms", &theirs, &ours, |round| round.start.as_secs_f64() * 1000.0);
    row("idle with 20 definitions, API server, MB", &theirs, &ours, |round| {
        number(&round.figures["idle_kb"][0]) / 1024.0
    });
    row("the same with the store, MB", &theirs, &ours, |round| sum(&round.figures["idle_kb"]) / 1024.0);
    for n in 0..4 {
        let name = theirs[0].figures["figures"][n]["name"].as_str().unwrap_or_default();
        let cpu = |round: &Round| round.figures["figures"][n]["cpu_ms"].clone();
        row(&format!("CPU a {name}, API server, µs"), &theirs, &ours, |round| number(&cpu(round)[0]) * 1000.0);
        row("the same with the store, µs", &theirs, &ours, |round| sum(&cpu(round)) * 1000.0);
    }
    Ok(Ending::Well(format!("medians of {ROUNDS} rounds")))
}

fn round_of_ours(world: &World, base: &Path) -> Result<Round> {
    std::fs::create_dir_all(base)?;
    let store = Server::start(&world.ours, &base.join("store"))?;
    let begin = Instant::now();
    let api = Api::start(world, &base.join("api"), std::slice::from_ref(&store.endpoint), &[])?;
    // Asked in the same way as the other, whose answer takes a kubectl.
    let kubectl = newest(world)?;
    until_some("it is ready", || Ok(is_ready(&kubectl, &api.kubeconfig)?.then_some(())))?;
    let start = begin.elapsed();
    Ok(Round { start, figures: load(world, &api.kubeconfig, &[api.pid(), store.pid()])? })
}

fn round_of_theirs(world: &World, base: &Path) -> Result<Round> {
    std::fs::create_dir_all(base)?;
    let store = Server::start(&world.etcd, &base.join("store"))?;
    // Only a key for service accounts is taken from Lockgate, which does not run meanwhile.
    let beside = Server::start(&world.ours, &base.join("beside"))?;
    let key = Api::start(world, &base.join("key"), std::slice::from_ref(&beside.endpoint), &[])?.key();
    beside.stop()?;
    let real = Real::start(world, &base.join("real"), &store.endpoint, &key)?;
    Ok(Round { start: real.took, figures: load(world, &real.kubeconfig, &[real.pid(), store.pid()])? })
}

fn load(world: &World, kubeconfig: &Path, pids: &[u32]) -> Result<Value> {
    let mut command: Command = program(world, "figures")?;
    command.arg("-kubeconfig").arg(kubeconfig).args(["-count", COUNT]);
    for pid in pids {
        command.args(["-pid", &pid.to_string()]);
    }
    let said = finish(start(command)?)?;
    serde_json::from_str(&said).with_context(|| format!("not figures: {said}"))
}

fn row(name: &str, theirs: &[Round], ours: &[Round], value: impl Fn(&Round) -> f64) {
    let (left, right) = (median(theirs.iter().map(&value)), median(ours.iter().map(&value)));
    println!("   | {name} | {left:.1} | {right:.1} | {:.2} |", right / left);
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn sum(values: &Value) -> f64 {
    values.as_array().into_iter().flatten().map(number).sum()
}
