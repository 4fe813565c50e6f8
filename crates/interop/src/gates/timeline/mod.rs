//! A figure of one real run: a flag changes by rolling restarts, off and on again, and the gate follows.

mod draw;
mod observe;

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, Result, ensure};

use super::{
    super::cluster::{World, faults::pause},
    gated::{Gated, INCREMENT, OFF, ON},
    log,
};
use observe::Observers;

/// Pause between two steps, so that each can be distinguished from the next in the figure.
const STEP_MS: u64 = 700;
/// As long as an operator's hands might need.
const DOWN_MS: u64 = 400;

/// All that is drawn. Times are seconds since the first look.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub end: f64,
    pub lanes: Vec<Lane>,
    pub leaders: Vec<Span<String>>,
    pub gate: Vec<Switch>,
}

/// One member.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub name: String,
    /// While its process runs, with its flag; from the moment on that it serves.
    pub up: Vec<Span<bool>>,
    /// From the start of its process until it serves.
    pub starting: Vec<Span<bool>>,
    /// When its proposal was seen applied: time, index, value.
    pub proposals: Vec<(f64, u64, bool)>,
}

#[derive(Clone, Debug)]
pub(super) struct Span<T> {
    pub from: f64,
    pub to: f64,
    pub what: T,
}

/// The gate from a moment on.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub at: f64,
    pub index: u64,
    pub on: bool,
    pub cause: String,
}

/// Runs a cluster of Lockgate members and writes the figure.
pub(super) fn record(world: &World, path: &Path) -> Result<()> {
    let temp = harness::tempdir();
    let mut gated = Gated::agreed(world, temp.path())?;
    pause(STEP_MS);
    let clock = Instant::now();
    let observers = Observers::start(&gated.group, clock)?;
    let mut lanes = Vec::new();
    for member in &gated.group.members {
        let up = vec![Span { from: 0.0, to: 0.0, what: true }];
        lanes.push(Lane { name: member.name.clone(), up, ..Lane::default() });
    }
    pause(STEP_MS);
    for value in [OFF, ON] {
        for (n, lane) in lanes.iter_mut().enumerate() {
            restart(&mut gated, n, value, lane, clock)?;
            pause(STEP_MS);
        }
        pause(STEP_MS);
    }
    gated.wait_on(INCREMENT)?;
    let changes = gated.expect_history(&["AGREED: AtomicIncrement", "PROPOSAL: ", "AGREED: AtomicIncrement"])?;
    let end = clock.elapsed().as_secs_f64();
    lanes.iter_mut().filter_map(|lane| lane.up.last_mut()).for_each(|span| span.to = end);
    gated.group.stop_all();
    let (_, log) = log::read(&gated.group.members[0].dir)?;
    let run = observers.finish(Run { end, lanes, ..Run::default() }, &changes, &log)?;
    ensure!(run.gate.len() == 3, "the gate should switch off once and on once: {:?}", run.gate);
    fs::write(path, draw::svg(&run)).with_context(|| format!("failed to write {}", path.display()))?;
    println!("{} shows {:.1} s; off at {}, on at {}", path.display(), end, run.gate[1].index, run.gate[2].index);
    Ok(())
}

fn restart(gated: &mut Gated, n: usize, value: &str, lane: &mut Lane, clock: Instant) -> Result<()> {
    let now = || clock.elapsed().as_secs_f64();
    gated.set_flag(n, value);
    gated.group.members[n].stop()?;
    if let Some(span) = lane.up.last_mut() {
        span.to = now();
    }
    pause(DOWN_MS);
    let (what, from) = (value == ON, now());
    gated.group.restart(n);
    gated.group.wait_member(n)?;
    lane.starting.push(Span { from, to: now(), what });
    lane.up.push(Span { from: now(), to: now(), what });
    Ok(())
}
