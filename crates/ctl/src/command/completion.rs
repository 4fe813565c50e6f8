//! `completion`: scripts that complete commands and flags in a shell.

use clap::Command;

use crate::{failure::Failure, print::print};

/// Generates completion scripts for bash, zsh, fish and powershell
#[derive(clap::Args)]
#[command(after_help = "Example: source <(lockgatectl completion bash)")]
pub(crate) struct CompletionArgs {
    /// bash, zsh, fish or powershell
    #[arg(value_name = "SHELL")]
    args: Vec<String>,
}

pub(crate) fn run(args: &CompletionArgs, root: &mut Command, program: &str) -> Result<(), Failure> {
    print(&cli::flag::completion(&args.args, root, program).map_err(Failure::error)?)
}
