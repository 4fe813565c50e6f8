//! `migrate`: a data dir from one version to another, up or down, in one step.
//!
//! A dir is looked at ([`crate::survey`]), what must happen follows from that as plain data ([`plan`]), is printed
//! ([`show`]), confirmed, and carried out on a copy ([`work`]), which takes the place of the old files at the very end.

mod compare;
mod confirm;
mod hash;
mod plan;
mod show;
mod space;
mod work;

use std::{path::PathBuf, time::Duration};

use serde_json::json;

use crate::{
    failure::Failure,
    log,
    print::Format,
    schema::parse_version,
    survey::{Survey, named},
};

/// Brings the data dir of a stopped member to another version, up or down
#[derive(clap::Args)]
#[command(after_help = "Example: lockgateutl migrate --data-dir default.etcd --target-version 3.7 --dry-run")]
pub(crate) struct MigrateArgs {
    /// The data dir; no server may run on it
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where its log is, if not in the data dir
    #[arg(long, value_name = "DIR")]
    wal_dir: Option<PathBuf>,
    /// 3.5 to 3.8
    #[arg(long, value_name = "X.Y")]
    target_version: Option<String>,
    /// Prints the plan and changes nothing
    #[arg(long)]
    dry_run: bool,
    /// Does not ask before going down
    #[arg(short = 'y', long)]
    yes: bool,
    /// Skips safety checks, and says which
    #[arg(long)]
    force: bool,
    /// Instead of migrating: compares the data dirs of all members, which must be equal
    #[arg(long, num_args = 1.., value_name = "DIR", conflicts_with_all = ["data_dir", "wal_dir", "target_version", "dry_run", "yes", "force"])]
    compare: Vec<PathBuf>,
    #[arg(hide = true)]
    args: Vec<String>,
}

/// What the command line asks for is wrong.
pub(crate) enum Wrong {
    Usage(String),
    Failed(Failure),
}

impl<T: Into<Failure>> From<T> for Wrong {
    fn from(failure: T) -> Wrong {
        Wrong::Failed(failure.into())
    }
}

pub(crate) fn run(args: &MigrateArgs, format: &str, lock_timeout: Option<Duration>) -> Result<(), Wrong> {
    let format = Format::parse(format)?;
    if !args.compare.is_empty() {
        return Ok(compare::run(&args.compare, format, lock_timeout)?);
    }
    let (Some(data_dir), Some(target)) = (&args.data_dir, &args.target_version) else {
        let flags = [("data-dir", args.data_dir.is_none()), ("target-version", args.target_version.is_none())];
        let missing: Vec<_> =
            flags.iter().filter(|(_, missing)| *missing).map(|(name, _)| format!("{name:?}")).collect();
        return Err(Wrong::Usage(format!("required flag(s) {} not set", missing.join(", "))));
    };
    let target = parse_version(target)?;
    let survey = Survey::look(&named(data_dir, args.wal_dir.as_ref()), lock_timeout)?;
    let mut plan = plan::plan(&survey, target)?;
    if plan.is_nothing() {
        let version = target.stored();
        log::info("storage version up-to-date", &[("storage-version", json!(version))]);
        return Ok(());
    }
    plan.hash = Some(hash::of(&survey.file)?);
    show::plan(&plan, format)?;
    for check in &plan.checks {
        if !args.force {
            return Err(Failure::error(format!("{}; --force goes on all the same", check.found)).into());
        }
        eprintln!("WARNING: --force skips a check: {}. {}", check.found, check.risk);
    }
    if args.dry_run {
        return Ok(());
    }
    if plan.is_down() && !args.yes {
        confirm::ask()?;
    }
    Ok(work::carry_out(survey, &plan, args.force)?)
}
