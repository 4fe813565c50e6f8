//! What field gates take of an update: the load is `interop/client-go`'s `gated`, the time of the gates is what the server counts.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    super::cluster::{Ending, Scenario, World},
    api::Pair,
    client_go::{command, finish, start},
    figures::{median, number},
};

// The name lets `--only figures` run it with the others.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario { name: "field gates: figures", short: false, run: share }];

const UPDATES: &str = "2000";
const ROUNDS: usize = 3;

/// With 20 gates that are off and without any, in turns, each on a store of its own.
fn share(world: &World, base: &Path) -> Result<Ending> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for n in 0..ROUNDS {
        with.push(round(world, &base.join(format!("gates-{n}")), true)?);
        without.push(round(world, &base.join(format!("none-{n}")), false)?);
    }
    let of = |rounds: &[Value], value: fn(&Value) -> f64| median(rounds.iter().map(value));
    let cpu = |said: &Value| number(&said["figures"][0]["cpu_ms"][0]) * 1000.0;
    let engine = |said: &Value| number(&said["engine_ms"]) * 1000.0;
    let share = of(&with, |said| number(&said["engine_ms"]) / number(&said["figures"][0]["cpu_ms"][0]));
    println!("   | an update of 10 kB | 20 gates | no gates |\n   |---|---|---|");
    println!("   | CPU, API server, µs | {:.1} | {:.1} |", of(&with, cpu), of(&without, cpu));
    println!("   | of that field gates, µs | {:.1} | {:.1} |", of(&with, engine), of(&without, engine));
    println!("   | share | {:.1} % | |", share * 100.0);
    Ok(Ending::Well(format!("medians of {ROUNDS} rounds of {UPDATES} updates")))
}

fn round(world: &World, base: &Path, gates: bool) -> Result<Value> {
    std::fs::create_dir_all(base)?;
    let mut pair = Pair::start(world, base, &world.ours)?;
    let mut command = command(world, "gated", &[&pair.api])?;
    command.args(["-count", UPDATES, "-pid", &pair.api.pid().to_string()]);
    command.arg(format!("-gates={gates}"));
    let said = finish(start(command)?)?;
    pair.api.check_well()?;
    serde_json::from_str(&said).with_context(|| format!("not figures: {said}"))
}
