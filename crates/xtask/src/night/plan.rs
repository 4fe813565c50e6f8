//! The plan of a night: jobs, each of steps in order, from a commit and what the machine has.

use std::path::Path;

use super::{
    chunk,
    tool::{Target, Tools},
};
use crate::step::Step;

pub(super) const SIM_SEEDS: u64 = 100_000;
const SIM_SEEDS_A_CHUNK: u64 = 1_000;
const KILL9_ROUNDS: u64 = 1_000;
const KILL9_ROUNDS_A_CHUNK: u64 = 100;
const FUZZ_SECONDS: u64 = 600;
const FUZZ_RANDOM_INPUTS: u64 = 200_000;
const HOUR: u64 = 3_600;

#[derive(Debug, Clone)]
pub(super) struct Job {
    pub name: &'static str,
    pub about: &'static str,
    pub steps: Vec<Step>,
    /// The first so many steps install what the others need. Where they fail, the job is skipped.
    pub setup: usize,
    /// The reason why this machine cannot run the job.
    pub skip: Option<&'static str>,
    /// A part of the job that this machine cannot run, for the report.
    pub without: Option<&'static str>,
}

impl Job {
    fn new(name: &'static str, about: &'static str, steps: Vec<Step>) -> Job {
        Job { name, about, steps, setup: 0, skip: None, without: None }
    }

    fn unless(mut self, can: bool, reason: &'static str) -> Job {
        self.skip = (!can).then_some(reason);
        self
    }
}

/// Every job, the short ones first. `seed` follows from the commit, so a rerun repeats its chunks.
pub(super) fn plan(seed: u64, tools: &Tools, targets: &[Target], corpus: &Path) -> Vec<Job> {
    let mut jobs = vec![deny(tools), fetch(tools)];
    jobs.extend(suites(seed));
    jobs.push(Job::new("model", "the gate protocol, explored completely", vec![release("model", "model", &[])]));
    jobs.push(miri(tools));
    jobs.push(fuzz(tools, targets, corpus));
    jobs.push(kill9(seed));
    jobs.push(sim(seed));
    jobs
}

/// A program of this workspace in its release build, within an hour.
fn release(name: &str, package: &str, args: &[&str]) -> Step {
    let mut words = vec!["run", "--quiet", "--release", "--package", package];
    if !args.is_empty() {
        words.push("--");
    }
    words.extend(args);
    Step::cargo(name, words).within_seconds(HOUR)
}

fn deny(tools: &Tools) -> Job {
    let step = Step::cargo("deny", ["deny", "check"]).within_seconds(HOUR);
    let missing = "cargo-deny is not installed (cargo install cargo-deny --locked)";
    Job::new("deny", "licences, sources, duplicate versions and advisories", vec![step]).unless(tools.deny, missing)
}

fn fetch(tools: &Tools) -> Job {
    let step = release("fetch", "interop", &["fetch", "--all"]).within_seconds(3 * HOUR);
    Job::new("fetch", "build every real peer and client", vec![step]).unless(tools.go, "Go is not installed")
}

fn suites(seed: u64) -> Vec<Job> {
    let seed = seed.to_string();
    let suite = |name: &'static str, about, args: &[&str]| {
        Job::new(name, about, vec![release(name, "interop", args).within_seconds(3 * HOUR)])
    };
    let seeded = |suite: &'static str| [suite, "--all", "--seed", seed.as_str()];
    vec![
        suite("interop", "clients, tools and data dirs against real etcd", &seeded("interop")[1..]),
        suite("migrate", "data dirs up and down between versions", &seeded("migrate")),
        suite("cluster", "clusters under faults", &seeded("cluster")),
        suite("gates", "cluster feature gates", &seeded("gates")),
        suite("kube", "the API server under kubectl and clients", &["kube", "--all"]),
    ]
}

/// Most of bolt's tests map a file into memory, which Miri cannot do: the unit tests of the library are what it runs.
fn miri(tools: &Tools) -> Job {
    let rustup = |name: &str, args: &[&str]| Step::new(name, "rustup", args.iter().copied()).within_seconds(2 * HOUR);
    let install = [
        "toolchain",
        "install",
        "nightly",
        "--no-self-update",
        "--profile",
        "minimal",
        "--component",
        "miri",
        "--component",
        "rust-src",
    ];
    let mut steps = Vec::new();
    if !tools.miri {
        steps.push(rustup("miri: install", &install));
    }
    steps.push(rustup("miri: setup", &["run", "nightly", "cargo", "miri", "setup"]));
    let setup = steps.len();
    let test = rustup("miri: bolt", &["run", "nightly", "cargo", "miri", "test", "--package", "bolt", "--lib"]);
    steps.push(test.env("MIRIFLAGS", "-Zmiri-disable-isolation"));
    let job = Job { setup, ..Job::new("miri", "undefined behaviour in bolt", steps) };
    job.unless(tools.rustup, "rustup is not installed, so there is no nightly toolchain with Miri")
}

/// With cargo-bolero each target is guided by coverage and keeps its corpus; without it the inputs are random.
fn fuzz(tools: &Tools, targets: &[Target], corpus: &Path) -> Job {
    let about = "every target of crates/fuzz";
    if tools.bolero {
        let steps = targets.iter().map(|target| guided(target, corpus)).collect();
        return Job::new("fuzz", about, steps);
    }
    let mut tests: Vec<&str> = targets.iter().map(|target| target.test.as_str()).collect();
    tests.dedup();
    let random = |test: &&str| {
        let args = ["test", "--quiet", "--release", "--package", "fuzz", "--test", *test];
        let step = Step::cargo(format!("fuzz: {test}"), args).within_seconds(2 * HOUR);
        step.env("BOLERO_RANDOM_ITERATIONS", FUZZ_RANDOM_INPUTS.to_string())
    };
    let without = "random inputs and no corpus: cargo-bolero is not installed (cargo install cargo-bolero --locked)";
    Job { without: Some(without), ..Job::new("fuzz", about, tests.iter().map(random).collect()) }
}

fn guided(target: &Target, corpus: &Path) -> Step {
    let Target { test, function } = target;
    let dir = |kind: &str| corpus.join(kind).join(test).join(function).to_string_lossy().into_owned();
    let (corpus, crashes, time) = (dir("corpus"), dir("crashes"), format!("{FUZZ_SECONDS}s"));
    let target = ["bolero", "test", "--package", "fuzz", "--test", test, function];
    let dirs = ["--corpus-dir", &corpus, "--crashes-dir", &crashes, "-T", &time];
    let args = target.into_iter().chain(dirs);
    Step::cargo(format!("fuzz: {test} {function}"), args).within_seconds(FUZZ_SECONDS + HOUR)
}

fn kill9(seed: u64) -> Job {
    let step = |chunk: &chunk::Chunk| {
        let (rounds, seed) = (chunk.count.to_string(), (seed + chunk.number).to_string());
        release(&format!("kill9 {:04}", chunk.number), "interop", &["kill9", "--rounds", &rounds, "--seed", &seed])
    };
    let chunks = chunk::cut(0, KILL9_ROUNDS, KILL9_ROUNDS_A_CHUNK);
    Job::new("kill9", "soak: a server that is killed again and again", chunks.iter().map(step).collect())
}

fn sim(seed: u64) -> Job {
    let step = |chunk: &chunk::Chunk| {
        let (first, count) = (chunk.first.to_string(), chunk.count.to_string());
        let args = ["--seed", first.as_str(), "--seeds", count.as_str(), "--keep-going"];
        release(&format!("sim {:04}", chunk.number), "sim", &args)
    };
    let chunks = chunk::cut(seed, SIM_SEEDS, SIM_SEEDS_A_CHUNK);
    Job::new("sim", "whole clusters in virtual time, 100,000 seeds", chunks.iter().map(step).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ALL: Tools = Tools { go: true, rustup: true, deny: true, bolero: true, miri: true };

    fn targets() -> Vec<Target> {
        let target = |test: &str, function: &str| Target { test: test.to_owned(), function: function.to_owned() };
        vec![target("bolt", "a"), target("bolt", "b"), target("wal", "c")]
    }

    fn job(name: &str, tools: &Tools) -> Job {
        let jobs = plan(7, tools, &targets(), Path::new("/state"));
        jobs.into_iter().find(|job| job.name == name).unwrap_or_else(|| panic!("no job {name}"))
    }

    /// The state file knows steps by their names.
    #[test]
    fn every_step_has_a_name_of_its_own() {
        for tools in [ALL, Tools::default()] {
            let jobs = plan(7, &tools, &targets(), Path::new("/state"));
            let names: Vec<&str> = jobs.iter().flat_map(|job| &job.steps).map(|step| step.name.as_str()).collect();
            assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{names:?}");
            assert!(names.iter().all(|name| !name.is_empty() && !name.contains('\n')), "{names:?}");
        }
    }

    #[test]
    fn the_simulator_runs_in_chunks_from_the_seed_on() {
        let steps = job("sim", &ALL).steps;
        assert_eq!(steps.len(), 100);
        let want = "cargo run --quiet --release --package sim -- --seed 1007 --seeds 1000 --keep-going";
        assert_eq!((steps[1].name.as_str(), steps[1].to_string().as_str()), ("sim 0002", want));
    }

    #[test]
    fn chunks_of_kills_have_seeds_of_their_own() {
        let steps = job("kill9", &ALL).steps;
        assert_eq!(steps.len(), 10);
        assert!(steps[9].to_string().ends_with("-- kill9 --rounds 100 --seed 17"), "{}", steps[9]);
    }

    #[test]
    fn fuzzing_is_guided_where_it_can_be() {
        let step = &job("fuzz", &ALL).steps[1];
        assert!(step.to_string().contains("--test bolt b --corpus-dir /state/corpus/bolt/b "), "{step}");
        let random = job("fuzz", &Tools { bolero: false, ..ALL });
        let names: Vec<&str> = random.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["fuzz: bolt", "fuzz: wal"]);
        assert!(
            random.without.is_some() && random.steps[0].to_string().starts_with("BOLERO_RANDOM_ITERATIONS=200000 ")
        );
    }

    #[test]
    fn what_a_machine_lacks_is_skipped_or_installed() {
        assert_eq!(job("deny", &ALL).skip, None);
        for name in ["deny", "fetch", "miri"] {
            assert!(job(name, &Tools::default()).skip.is_some(), "{name}");
        }
        assert_eq!((job("miri", &ALL).setup, job("miri", &ALL).steps.len()), (1, 2));
        let installs = job("miri", &Tools { miri: false, ..ALL });
        assert_eq!((installs.setup, installs.skip), (2, None));
        assert!(
            installs.steps[0].to_string().starts_with("rustup toolchain install nightly "),
            "{}",
            installs.steps[0]
        );
    }
}
