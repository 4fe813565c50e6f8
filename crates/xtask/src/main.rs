//! `cargo xtask`: checks and chores of the workspace, one module per subcommand.

mod change;
mod check;
mod forward;
mod night;
mod quick;
mod runner;
mod step;
mod summary;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Checks and chores of the workspace")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all of what CI runs: the script .ci/run (needs Go, Python 3 and a network)
    Check(check::Args),
    /// Print the table of features as it would be released now, or what it changes against a release
    #[command(disable_help_flag = true)]
    Features(forward::Args),
    /// Hold lockgate against real etcd, its tools and public clients
    #[command(disable_help_flag = true)]
    Interop(forward::Args),
    /// Run everything long; a rerun continues where the last one ended
    Night(night::Args),
    /// Check and test what the working copy changes, within 3 minutes on a warm target directory
    Quick(quick::Args),
    /// Run cargo test --workspace and print its time
    Test(test::Args),
    /// Hold the tree to its rules: code map, lints, file shape, no leftovers, no foreign paths
    Tidy(tidy::Args),
}

/// A subcommand answers with its exit code; an error is a chore that could not be done at all.
fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Check(args) => check::run(&args),
        Command::Features(args) => forward::run("features", &args),
        Command::Interop(args) => forward::run("interop", &args),
        Command::Night(args) => night::run(&args),
        Command::Quick(args) => quick::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Tidy(args) => tidy::run(&args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("Error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    /// What is wrong with a command line's definition shows only when it is used.
    #[test]
    fn clap_agrees() {
        super::Args::command().debug_assert();
    }
}
