//! `cargo xtask night`: everything long, in steps that a rerun does not repeat.

mod chunk;
mod plan;
mod state;
mod tool;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};

use self::{
    plan::{Job, plan},
    state::{Done, Journal},
    tool::Tools,
};
use crate::{
    runner::{Output, Runner},
    summary::{self, Outcome, Row},
    workspace::{self, git},
};

const HELP: &str = "\
Each finished step is recorded for the current commit, outside the tree; a rerun continues after the last one, and
runs failed steps again. Uncommitted changes count as a commit of their own. Corpora of fuzz targets are shared by
all commits. Ctrl-C ends the current step, which is then not recorded.";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Where state, logs and corpora are kept [default: $XDG_STATE_HOME/lockgate/night]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Forget what is done for this commit and start over
    #[arg(long)]
    fresh: bool,
    /// Only jobs whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// List the jobs and how much of each is done
    #[arg(long)]
    list: bool,
    /// Print the steps that are left and run none
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = workspace::root()?;
    let state = args.state.clone().map_or_else(state_dir, Ok)?;
    let state = std::path::absolute(&state).with_context(|| format!("failed to find {}", state.display()))?;
    let version = Version::read(&root)?;
    let dir = state.join(&version.key);
    let jobs = plan(version.seed, &Tools::look(), &tool::fuzz_targets(&root)?, &state);
    let jobs = chosen(jobs, args.only.as_deref())?;
    if args.list || args.dry_run {
        let done = if args.fresh { Done::default() } else { state::peek(&dir) };
        print!("{}", if args.list { list(&jobs, &done) } else { rest(&jobs, &done) });
        return Ok(ExitCode::SUCCESS);
    }
    if args.fresh {
        // Corpora are kept: they belong to no commit.
        let forgotten = Journal::open(&dir).and_then(|_lock| Ok(fs::remove_dir_all(&dir)?));
        forgotten.with_context(|| format!("failed to start over in {}", dir.display()))?;
    }
    println!("state, logs and results of {} are in {}", version.key, dir.display());
    let (journal, done) = Journal::open(&dir)?;
    let runner = Runner::new(&root, Output::Kept(dir.join("logs")))?;
    let rows = Night { runner, journal, done }.run(&jobs)?;
    print!("\n{}", summary::table(&rows));
    for job in jobs.iter().filter(|job| job.skip.is_none()) {
        job.without.iter().for_each(|without| println!("NOT WHOLE: {}: {without}", job.name));
    }
    if rows.iter().any(|row| matches!(row.outcome, Outcome::Stopped | Outcome::Failed(_))) {
        println!("run it again to continue: what is ok is not repeated");
    }
    Ok(summary::exit_code(&rows))
}

fn state_dir() -> Result<PathBuf> {
    let dir = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = dir("XDG_STATE_HOME").or_else(|| Some(dir("HOME")?.join(".local/state")));
    Ok(state.context("found no place for the state: set --state, XDG_STATE_HOME or HOME")?.join("lockgate/night"))
}

/// The version of the tree that a night is about.
struct Version {
    /// The commit, and a hash of what is not committed.
    key: String,
    /// Seeds follow from the commit, so that a rerun repeats them.
    seed: u64,
}

impl Version {
    fn read(root: &Path) -> Result<Version> {
        let commit = git(root, &["rev-parse", "HEAD"])?;
        let seed = commit.get(..7).and_then(|short| u64::from_str_radix(short, 16).ok()).unwrap_or(1);
        let edits = git(root, &["diff", "HEAD"])? + &git(root, &["ls-files", "--others", "--exclude-standard"])?;
        let key = match edits.as_str() {
            "" => commit,
            edits => format!("{commit}-edited-{:016x}", fnv1a(edits.as_bytes())),
        };
        Ok(Version { key, seed })
    }
}

/// FNV-1a: the hash must be the same in every build of this program.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn chosen(jobs: Vec<Job>, only: Option<&str>) -> Result<Vec<Job>> {
    let names: Vec<&str> = jobs.iter().map(|job| job.name).collect();
    let Some(only) = only else { return Ok(jobs) };
    if !names.iter().any(|name| name.contains(only)) {
        bail!("--only {only}: no job has such a name; the jobs are {}", names.join(", "));
    }
    Ok(jobs.into_iter().filter(|job| job.name.contains(only)).collect())
}

fn list(jobs: &[Job], done: &Done) -> String {
    let line = |job: &Job| {
        let ok = job.steps.iter().filter(|step| done.seconds(&step.name).is_some()).count();
        let note = job.skip.map(|why| format!(" (SKIPPED: {why})")).unwrap_or_default();
        let note = note + &job.without.map(|without| format!(" ({without})")).unwrap_or_default();
        format!("{:<8} {ok:>3} of {:>3} done  {}{note}\n", job.name, job.steps.len(), job.about)
    };
    jobs.iter().map(line).collect()
}

fn rest(jobs: &[Job], done: &Done) -> String {
    let mut text = String::new();
    for job in jobs {
        if let Some(why) = job.skip {
            text.push_str(&format!("{}: SKIPPED: {why}\n", job.name));
            continue;
        }
        let left = job.steps.iter().filter(|step| done.seconds(&step.name).is_none());
        left.for_each(|step| text.push_str(&format!("{}: {step}\n", step.name)));
    }
    text
}

struct Night {
    runner: Runner,
    journal: Journal,
    done: Done,
}

impl Night {
    fn run(&mut self, jobs: &[Job]) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for job in jobs {
            let row = match job.skip {
                Some(why) => Row { name: job.name.to_owned(), seconds: 0.0, outcome: Outcome::Skipped(why.to_owned()) },
                None => self.run_job(job)?,
            };
            rows.push(row);
        }
        Ok(rows)
    }

    /// A failed step does not keep the others of its job from running, unless they need it as their setup.
    fn run_job(&mut self, job: &Job) -> Result<Row> {
        let (mut ok, mut before, mut failed, mut skip) = (0, 0, Vec::new(), None);
        let mut seconds = 0.0;
        for (i, step) in job.steps.iter().enumerate() {
            if self.runner.is_stopped() || skip.is_some() {
                break;
            }
            // Setup is about the machine, not the commit: it is asked for each time.
            if let Some(took) = self.done.seconds(&step.name).filter(|_| i >= job.setup) {
                seconds += took;
                before += 1;
                continue;
            }
            let row = self.runner.run(step)?;
            seconds += row.seconds;
            match &row.outcome {
                Outcome::Stopped => break,
                Outcome::Ok => ok += 1,
                _ if i < job.setup => skip = Some(format!("{} did not work", step.name)),
                _ => failed.push(step.name.clone()),
            }
            if skip.is_none() {
                self.journal.record(&step.name, row.seconds, row.outcome == Outcome::Ok)?;
            }
        }
        let steps = job.steps.len();
        let name = match steps {
            1 if before == 0 => job.name.to_owned(),
            _ => format!("{} ({} of {steps} steps ok, {before} of them before)", job.name, ok + before),
        };
        let outcome = match skip {
            _ if !failed.is_empty() => Outcome::Failed(failed.join(", ")),
            Some(why) => Outcome::Skipped(why),
            None if ok + before < steps => Outcome::Stopped,
            None => Outcome::Ok,
        };
        Ok(Row { name, seconds, outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Step;

    fn job(name: &'static str, scripts: &[&str], setup: usize) -> Job {
        let step = |(i, script): (usize, &&str)| Step::new(format!("{name} {i}"), "sh", ["-c", *script]);
        let steps = scripts.iter().enumerate().map(step).collect();
        Job { name, about: "", steps, setup, skip: None, without: None }
    }

    /// Runs the jobs as one call of the program would, on the state in this directory.
    fn night(dir: &Path, jobs: &[Job]) -> Vec<String> {
        let (journal, done) = Journal::open(&dir.join("state")).expect("the state opens");
        let runner = Runner::new(dir, Output::Kept(dir.join("logs"))).expect("a runner");
        let rows = Night { runner, journal, done }.run(jobs).expect("the night runs");
        rows.iter().map(|row| format!("{} {:?}", row.name, row.outcome)).collect()
    }

    #[test]
    fn a_rerun_repeats_what_failed_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let scripts = ["echo x >>first", "test -e mended", "echo x >>third"];
        let jobs = [job("a", &scripts, 0)];
        let first = night(dir.path(), &jobs);
        assert_eq!(first, [r#"a (2 of 3 steps ok, 0 of them before) Failed("a 1")"#]);
        fs::write(dir.path().join("mended"), "").expect("written");
        assert_eq!(night(dir.path(), &jobs), ["a (3 of 3 steps ok, 2 of them before) Ok"]);
        for file in ["first", "third"] {
            assert_eq!(fs::read_to_string(dir.path().join(file)).expect("written"), "x\n", "{file} ran twice");
        }
        assert_eq!(rest(&jobs, &state::peek(&dir.path().join("state"))), "");
    }

    #[test]
    fn a_job_whose_setup_fails_is_skipped() {
        let dir = tempfile::tempdir().expect("a directory");
        let jobs = [job("a", &["exit 1", "echo x >ran"], 1), job("b", &["true"], 0)];
        let rows = night(dir.path(), &jobs);
        assert_eq!(rows, [r#"a (0 of 2 steps ok, 0 of them before) Skipped("a 0 did not work")"#, "b Ok"]);
        assert!(!dir.path().join("ran").exists());
    }

    #[test]
    fn only_names_what_it_cannot_find() {
        let jobs = || vec![job("sim", &["true"], 0), job("kube", &["true"], 0)];
        assert_eq!(chosen(jobs(), Some("im")).expect("one of them").len(), 1);
        let error = chosen(jobs(), Some("etcd")).expect_err("none of them").to_string();
        assert!(error.contains("the jobs are sim, kube"), "{error}");
    }

    #[test]
    fn the_list_shows_what_is_done_and_what_cannot_be() {
        let jobs = [Job { skip: Some("no Go"), ..job("fetch", &["true"], 0) }, job("sim", &["true", "true"], 0)];
        let text = list(&jobs, &Done::default());
        assert!(text.contains("SKIPPED: no Go") && text.contains("sim        0 of   2 done"), "{text}");
    }
}
