//! `cargo run -p sim -- --seeds 1000`: runs seeds until one fails, and says how to repeat it.
#![expect(clippy::disallowed_methods, reason = "the summary says how long the run took")]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::Instant,
};

use clap::Parser;
use sim::{Config, Report, run};

/// Runs whole clusters from seeds and checks what clients see.
#[derive(Parser)]
struct Args {
    /// How many seeds to run, one after the other.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Members that found the cluster; each seed chooses if not given.
    #[arg(long)]
    members: Option<usize>,
    /// Virtual seconds under faults.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Prints every event.
    #[arg(long)]
    trace: bool,
    /// Goes on after a failure.
    #[arg(long)]
    keep_going: bool,
    /// What the members log: a filter such as `warn` or `node=info`.
    #[arg(long, default_value = "off")]
    log: String,
}

fn main() -> ExitCode {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(&args.log))
        .without_time()
        .with_writer(std::io::stdout)
        .init();
    let last = args.seed + args.seeds.saturating_sub(1);
    println!("SEED {} to {last}", args.seed);
    let begin = Instant::now();
    let (mut sum, mut failed) = (Report::default(), 0u64);
    for seed in args.seed..=last {
        match run_one(&args, seed) {
            Ok(report) => add(&mut sum, &report),
            Err(text) => {
                failed += 1;
                println!("SEED {seed} failed: {text}");
                println!("repeat with: {}", command(&args, seed));
                println!("SEED {seed}");
                if !args.keep_going {
                    return ExitCode::FAILURE;
                }
            }
        }
        if (seed - args.seed + 1).is_multiple_of(1_000) {
            println!("{} seeds in {:.0?}, {failed} failed", seed - args.seed + 1, begin.elapsed());
        }
    }
    println!("{} seeds in {:.1?}, {failed} failed: {sum:?}", args.seeds, begin.elapsed());
    println!("SEED {} to {last}", args.seed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_one(args: &Args, seed: u64) -> Result<Report, String> {
    let config = Config { seed, members: args.members, seconds: args.seconds, trace: args.trace };
    match catch_unwind(AssertUnwindSafe(|| run(&config))) {
        Ok(result) => result.map_err(|violation| violation.to_string()),
        Err(_) => Err("a panic, see above".into()),
    }
}

fn command(args: &Args, seed: u64) -> String {
    let members = args.members.map_or(String::new(), |n| format!(" --members {n}"));
    format!("cargo run -p sim -- --seed {seed} --seeds 1 --seconds {}{members} --trace", args.seconds)
}

fn add(sum: &mut Report, one: &Report) {
    sum.trace ^= one.trace;
    sum.events += one.events;
    sum.operations += one.operations;
    sum.unknown += one.unknown;
    sum.entries += one.entries;
    sum.leaders += one.leaders;
    sum.crashes += one.crashes;
    sum.databases_received += one.databases_received;
    sum.member_changes += one.member_changes;
    sum.leases += one.leases;
    sum.gate_switches += one.gate_switches;
}
