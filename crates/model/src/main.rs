//! Explores the gate protocol and prints how many states there are: `cargo run --release -p model -- --events 2`.

use clap::Parser;
use model::{Config, Counts, explore};

#[derive(Parser)]
struct Args {
    /// Voters at the start.
    #[arg(long, default_value_t = 2)]
    voters: usize,
    /// Learners at the start.
    #[arg(long, default_value_t = 0)]
    learners: usize,
    /// Cluster features: 1 or 2.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    features: u32,
    /// How often each kind of event may happen, unless it has a number of its own.
    #[arg(long, default_value_t = 2)]
    events: u8,
    #[arg(long)]
    crashes: Option<u8>,
    #[arg(long)]
    joins: Option<u8>,
    #[arg(long)]
    removals: Option<u8>,
    #[arg(long)]
    promotions: Option<u8>,
    #[arg(long)]
    versions: Option<u8>,
    /// Cluster versions 3.x; the first is the one at the start.
    #[arg(long, default_value = "8,7,9", value_delimiter = ',')]
    minors: Vec<u8>,
    /// Members lag behind the log.
    #[arg(long)]
    lag: bool,
    /// Messages that can have no effect stay on their way.
    #[arg(long)]
    keep_void: bool,
    /// States that differ only in which member has which id are told apart.
    #[arg(long)]
    all_ids: bool,
    /// Some binaries know no cluster feature.
    #[arg(long)]
    unknowing: bool,
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    let counts = Counts {
        crashes: args.crashes.unwrap_or(args.events),
        joins: args.joins.unwrap_or(args.events),
        removals: args.removals.unwrap_or(args.events),
        promotions: args.promotions.unwrap_or(args.events),
        versions: args.versions.unwrap_or(args.events),
    };
    let config = Config {
        voters: args.voters,
        learners: args.learners,
        features: args.features,
        unknowing: args.unknowing,
        counts,
        minors: args.minors,
        lag: args.lag,
        keep_void: args.keep_void,
        symmetry: !args.all_ids,
    };
    println!("{config:?}");
    let report = explore(config, args.threads, || {});
    println!("{report}");
    if report.broken.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
