//! `cargo xtask check`: runs `.ci/run`, the one list of what CI checks.

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print what would be run
    #[arg(long)]
    dry_run: bool,
}

/// The script takes the place of this process, so its output and exit code are the answer.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let script = workspace::root()?.join(".ci/run");
    if args.dry_run {
        println!("check: {} (its steps are listed in the file)", script.display());
        return Ok(ExitCode::SUCCESS);
    }
    let error = Command::new(&script).exec();
    Err(error).with_context(|| format!("failed to run {}", script.display()))
}
