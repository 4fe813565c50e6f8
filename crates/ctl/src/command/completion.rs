//! `completion`: scripts that complete commands and flags in a shell.

use clap::Command;
use clap_complete::Shell;

use crate::{failure::Failure, print::print};

/// Generates completion scripts for bash, zsh, fish and powershell
#[derive(clap::Args)]
#[command(after_help = "Example: source <(lockgatectl completion bash)")]
pub struct CompletionArgs {
    /// bash, zsh, fish or powershell
    #[arg(value_name = "SHELL")]
    args: Vec<String>,
}

pub fn run(args: CompletionArgs, root: &mut Command, program: &str) -> Result<(), Failure> {
    let [shell] = &args.args[..] else {
        return Err(Failure::error(format!("accepts 1 arg(s), received {}", args.args.len())));
    };
    let shell = match shell.as_str() {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        "powershell" => Shell::PowerShell,
        other => return Err(Failure::error(format!("invalid argument {other:?} for \"{program} completion\""))),
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, root, program, &mut script);
    print(&script)
}
