//! `cargo xtask test`: exactly `cargo test --workspace`, with its time.

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    runner::{Output, Runner},
    step::Step,
    summary, workspace,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the step and run nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let step = Step::cargo("test", ["test", "--workspace"]);
    if args.dry_run {
        println!("{}: {step}", step.name);
        return Ok(ExitCode::SUCCESS);
    }
    let rows = [Runner::new(&workspace::root()?, Output::Shown)?.run(&step)?];
    print!("\n{}", summary::table(&rows));
    Ok(summary::exit_code(&rows))
}
