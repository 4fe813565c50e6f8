//! The runner of steps: starts a command, waits for it, and ends it at its time limit or on Ctrl-C.
//!
//! Each command has a process group of its own, so that a time limit or Ctrl-C also ends what the command started.

use std::{
    fs::{self, File},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{
    step::Step,
    summary::{Outcome, Row},
};

const POLL: Duration = Duration::from_millis(20);
/// The time between SIGINT and SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
const TAIL_LINES: usize = 200;

pub(crate) struct Runner {
    root: PathBuf,
    output: Output,
    stop: Arc<AtomicBool>,
}

pub(crate) enum Output {
    Shown,
    /// The output goes to a file in this directory and is shown if the step fails.
    Kept(PathBuf),
}

impl Runner {
    pub(crate) fn new(root: &Path, output: Output) -> Result<Runner> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // A second signal changes nothing: ending this program at once would leave the step's group running.
            signal_hook::flag::register(signal, Arc::clone(&stop)).context("failed to listen for signals")?;
        }
        Ok(Runner { root: root.to_owned(), output, stop })
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs the step and prints its name, command, time and outcome.
    pub(crate) fn run(&self, step: &Step) -> Result<Row> {
        println!("=== {}: {step}", step.name);
        let start = Instant::now();
        let outcome = match &self.output {
            Output::Shown => self.wait_for(step, self.command(step).spawn(), start)?,
            Output::Kept(dir) => {
                let path = dir.join(format!("{}.log", step.name.replace([' ', '/'], "-")));
                let outcome = self.run_into(step, &path, start)?;
                if let Outcome::Failed(_) = outcome {
                    show(&path);
                }
                outcome
            }
        };
        let row = Row { name: step.name.clone(), seconds: start.elapsed().as_secs_f64(), outcome };
        println!("{row}");
        Ok(row)
    }

    fn run_into(&self, step: &Step, path: &Path, start: Instant) -> Result<Outcome> {
        let open = || {
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            let file = File::create(path)?;
            Ok::<_, std::io::Error>((file.try_clone()?, file))
        };
        let (out, err) = open().with_context(|| format!("failed to write {}", path.display()))?;
        self.wait_for(step, self.command(step).stdout(out).stderr(err).spawn(), start)
    }

    fn command(&self, step: &Step) -> Command {
        let mut command = Command::new(&step.program);
        command.args(&step.args).envs(step.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.root).stdin(Stdio::null()).process_group(0);
        command
    }

    fn wait_for(&self, step: &Step, child: std::io::Result<Child>, start: Instant) -> Result<Outcome> {
        let mut child = match child {
            Ok(child) => child,
            Err(error) => return Ok(Outcome::Failed(format!("failed to start {}: {error}", step.program))),
        };
        loop {
            if let Some(status) = child.try_wait().context("failed to wait for a step")? {
                return Ok(if self.is_stopped() { Outcome::Stopped } else { judge(status) });
            }
            let ended = match step.seconds_max {
                _ if self.is_stopped() => Outcome::Stopped,
                Some(max) if start.elapsed().as_secs() >= max => Outcome::Failed(format!("ended after {max} s")),
                _ => {
                    thread::sleep(POLL);
                    continue;
                }
            };
            end(&mut child)?;
            return Ok(ended);
        }
    }
}

fn judge(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(0), _) => Outcome::Ok,
        (Some(code), _) => Outcome::Failed(format!("exit code {code}")),
        (None, Some(signal)) => Outcome::Failed(format!("signal {signal}")),
        (None, None) => Outcome::Failed(status.to_string()),
    }
}

/// Ends the child and its process group: SIGINT first, SIGKILL after a grace period.
fn end(child: &mut Child) -> Result<()> {
    let group = Pid::from_child(child);
    // An error means that the group has gone already.
    let _ = kill_process_group(group, Signal::INT);
    let asked = Instant::now();
    while child.try_wait().context("failed to wait for a step")?.is_none() && asked.elapsed() < GRACE {
        thread::sleep(POLL);
    }
    // Grandchildren may have ignored SIGINT.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().context("failed to wait for a step")?;
    Ok(())
}

fn show(path: &Path) {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(TAIL_LINES);
    if skipped > 0 {
        println!("... {skipped} lines before these are in {}", path.display());
    }
    lines[skipped..].iter().for_each(|line| println!("{line}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, seconds_max: Option<u64>) -> Row {
        let dir = tempfile::tempdir().expect("a directory");
        let runner = Runner::new(dir.path(), Output::Kept(dir.path().join("logs"))).expect("a runner");
        let step = Step { seconds_max, ..Step::new("a b", "sh", ["-c", script]) };
        let row = runner.run(&step).expect("the step runs");
        assert!(dir.path().join("logs/a-b.log").is_file());
        row
    }

    #[test]
    fn the_exit_code_decides() {
        assert_eq!(run("echo fine", None).outcome, Outcome::Ok);
        assert_eq!(run("echo shown; exit 3", None).outcome, Outcome::Failed("exit code 3".to_owned()));
        assert_eq!(run("kill -9 $$", None).outcome, Outcome::Failed("signal 9".to_owned()));
    }

    /// The time limit also ends a grandchild that keeps the output open.
    #[test]
    fn a_step_ends_at_its_time_limit() {
        let row = run("sleep 60 & sleep 60", Some(1));
        assert_eq!(row.outcome, Outcome::Failed("ended after 1 s".to_owned()));
        assert!(row.seconds < 30.0, "took {} s", row.seconds);
    }

    #[test]
    fn a_missing_program_is_a_failure_of_its_step() {
        let dir = tempfile::tempdir().expect("a directory");
        let runner = Runner::new(dir.path(), Output::Shown).expect("a runner");
        let row = runner.run(&Step::new("gone", "no-such-program-here", [""; 0])).expect("an outcome");
        assert!(matches!(&row.outcome, Outcome::Failed(why) if why.contains("no-such-program-here")), "{row}");
    }
}
