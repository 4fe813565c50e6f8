//! `cargo xtask suite`: all that `cargo test --workspace` runs, several test programs at a time, with the time of each.
//!
//! Many of our tests wait for processes, elections and time-outs. cargo runs one program after the other, so that the
//! machine waits with them.

mod programs;

use std::{
    process::ExitCode,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use programs::{Outcome, Program, doc_tests, list};

#[derive(clap::Args)]
pub struct Args {
    /// Programs at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only programs whose name contains this, such as `server` or `lockgate/required`
    #[arg(long)]
    only: Option<String>,
}

/// So many of the slowest are named at the end.
const SLOWEST: usize = 15;

/// What one program came to.
struct Ran {
    name: String,
    took: Duration,
    outcome: Outcome,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut programs = list()?;
    programs.push(doc_tests());
    programs.retain(|program| args.only.as_ref().is_none_or(|only| program.name.contains(only)));
    if programs.is_empty() {
        bail!("no program of tests has such a name");
    }
    let start = Instant::now();
    let ran = run_all(programs, args.jobs.max(1));
    Ok(report(ran, start.elapsed()))
}

/// In the order given, but so many at a time.
fn run_all(programs: Vec<Program>, jobs: usize) -> Vec<Ran> {
    let waiting = Mutex::new(programs.into_iter());
    let ran = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(program) = next() {
                    let one = run_one(&program);
                    ran.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(one);
                }
            });
        }
    });
    ran.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What a program says is printed in one piece when it has ended.
fn run_one(program: &Program) -> Ran {
    let start = Instant::now();
    let outcome = program.run();
    let took = start.elapsed();
    println!("--- {} ({:.1} s)\n{}", program.name, took.as_secs_f32(), outcome.output.trim_end());
    Ran { name: program.name.clone(), took, outcome }
}

fn report(mut ran: Vec<Ran>, took: Duration) -> ExitCode {
    ran.sort_by_key(|one| std::cmp::Reverse(one.took));
    println!("\nslowest of {} programs, which took {:.0} s:", ran.len(), took.as_secs_f32());
    for one in ran.iter().take(SLOWEST) {
        println!("{:7.1} s  {}", one.took.as_secs_f32(), one.name);
    }
    let failed: Vec<&Ran> = ran.iter().filter(|one| !one.outcome.well).collect();
    for one in &failed {
        println!("FAILED: {}", one.name);
    }
    println!("{} programs well, {} failed", ran.len() - failed.len(), failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_run_and_a_failure_is_told() {
        let shell = |name: &str, script: &str| Program::new(name, "sh", &["-c", script]);
        let programs = vec![shell("well", "echo fine"), shell("broken", "echo no; exit 3"), shell("slow", "sleep 0.2")];
        let ran = run_all(programs, 2);
        let find = |name: &str| ran.iter().find(|one| one.name == name).expect(name);
        assert!(find("well").outcome.well && find("well").outcome.output.contains("fine"));
        assert!(!find("broken").outcome.well && find("broken").outcome.output.contains("no"));
        assert!(find("slow").took >= Duration::from_millis(200));
        assert_eq!(report(ran, Duration::ZERO), ExitCode::FAILURE);
    }

    #[test]
    fn a_program_that_is_not_there_has_failed() {
        let ran = run_all(vec![Program::new("none", "/nonexistent/program", &[])], 1);
        assert!(!ran[0].outcome.well && ran[0].outcome.output.contains("nonexistent"));
    }
}
