//! `lockgate gates`: one file, one command for each step in the life of a gate.
//!
//! Decisions are made in `featureset`; here files are read and written, and people are told.

mod change;
mod cluster;
mod code;
mod disk;
mod evidence;
mod list;
mod output;
mod plan;
mod plan_source;
mod render;
mod retire;
mod status;
mod stray;
mod version;
mod write;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};

use output::{Format, Output};

/// Feature gates of a product: `gates.toml` has them all, everything else is made from it.
#[derive(Parser, Debug)]
#[command(name = "lockgate gates", version)]
pub struct Gates {
    /// The file with all gates.
    #[arg(long, short, global = true, default_value = "gates.toml")]
    file: PathBuf,
    /// How to write what is said.
    #[arg(long, short, global = true, value_enum, default_value_t = Format::Simple)]
    write_out: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Adds a gate, off or in preview sets.
    Add(change::Add),
    /// Turns a gate on in a set and all that must hold its gates; Default and OKD need evidence.
    ///
    /// Evidence is needed where the gate turns on in Default or OKD, in every profile where it does: clusters with these sets are
    /// upgraded, and get the gate without having asked for it. Preview sets are where a gate is tried out, and need none.
    /// Evidence that is given all the same is read and reported, so that one sees how far it is to Default; --dry-run
    /// writes nothing.
    Promote(change::Promote),
    /// Turns a gate off in every set beyond the one named.
    Demote(change::Demote),
    /// Takes a gate out for ever, if nobody needs it any more.
    Retire(retire::Retire),
    /// Shows all gates, where they are on, exceptions, and what is past its time.
    List,
    /// Checks gates.toml, and that all that is made from it is up to date.
    Verify,
    /// Makes constants, manifests, registry and docs; or a FeatureGate with its row, for bootstrap.
    Render(render::Render),
    /// Shows what choosing another set would do, and changes nothing.
    Plan(plan::Plan),
    /// Keeps ClusterVersion where no version operator does.
    Version(version::Version),
    /// Shows rows, conditions and who runs with which row; --wait is a barrier.
    Status(status::Status),
    /// Shows which sets were chosen when.
    History(status::History),
}

/// What a command answers, for those who call it from code: the text or JSON, and whether all is well.
pub fn answer(args: impl IntoIterator<Item = String>) -> Result<(String, bool), String> {
    let gates = Gates::try_parse_from(args).map_err(|error| error.to_string())?;
    let format = gates.write_out;
    let output = gates.run().map_err(|error| format!("{error:#}"))?;
    Ok((if format == Format::Json { output.json.to_string() } else { output.text }, output.good))
}

/// Runs the command and says how it went. Exit code 1: refused or found wanting; 2: not understood (by clap).
pub fn run(args: impl IntoIterator<Item = String>) -> ExitCode {
    let args: Vec<String> = args.into_iter().collect();
    let gates = match Gates::try_parse_from(&args) {
        Ok(gates) => gates,
        Err(error) => return not_understood(&error, wants_json(&args)),
    };
    let format = gates.write_out;
    match gates.run() {
        Ok(output) => output.print(format),
        Err(error) => {
            output::print_error(&error, format);
            ExitCode::FAILURE
        }
    }
}

/// Help and version are what was asked for; all else is told to programs in their way, too.
fn not_understood(error: &clap::Error, json: bool) -> ExitCode {
    let _ = error.print();
    if json && error.use_stderr() {
        output::print_json_error(error.to_string().trim_end());
    }
    ExitCode::from(error.exit_code() as u8)
}

/// Of a line that cannot be parsed.
fn wants_json(args: &[String]) -> bool {
    let pairs = args.windows(2).any(|two| matches!(&*two[0], "-w" | "--write-out") && two[1] == "json");
    pairs || args.iter().any(|arg| matches!(&**arg, "-wjson" | "-w=json" | "--write-out=json"))
}

impl Gates {
    fn run(self) -> Result<Output> {
        match self.command {
            Command::Add(add) => add.run(&self.file),
            Command::Promote(promote) => promote.run(&self.file),
            Command::Demote(demote) => demote.run(&self.file),
            Command::Retire(retire) => retire.run(&self.file),
            Command::List => list::run(&self.file),
            Command::Verify => render::verify(&self.file),
            Command::Render(render) => render.run(&self.file),
            Command::Plan(plan) => plan.run(&self.file),
            Command::Version(version) => version.run(),
            Command::Status(status) => status.run(),
            Command::History(history) => history.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wants_json;

    #[test]
    fn json_is_asked_for_in_all_its_ways() {
        let wants = |line: &str| wants_json(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in
            ["gates -w json list", "gates list --write-out json", "gates list --write-out=json", "gates -wjson x"]
        {
            assert!(wants(line), "{line}");
        }
        assert!(!wants("gates -w simple add json") && !wants("gates json"));
    }
}
