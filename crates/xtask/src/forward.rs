//! Subcommands with programs of their own: `cargo xtask interop ARGS` runs `cargo run --quiet -p interop -- ARGS`.
//!
//! The programs need much of the workspace; as dependencies they would have to be built before `cargo xtask tidy`.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Arguments for the program; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
}

/// Runs the program of this package in the caller's directory and passes its exit code on.
pub(crate) fn run(package: &str, args: &Args) -> Result<ExitCode> {
    let manifest = workspace::root()?.join("Cargo.toml");
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--manifest-path"]).arg(manifest).args(["--package", package, "--"]);
    let status = cargo.args(&args.args).status().context("failed to run cargo")?;
    // A program that a signal ended has no exit code.
    Ok(status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(u8::try_from(code).unwrap_or(1))))
}
