//! Programs that end on purpose, to be started again.

use std::{
    process::{Command, ExitStatus},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{process::Process, tempdir, until, wait::POLL_INTERVAL};

/// A program that is started again whenever it ends, as a Deployment would. Dropping it kills it for good.
#[derive(Debug)]
pub struct Restarted {
    runs: Arc<Mutex<Runs>>,
    _dir: TempDir,
}

#[derive(Debug)]
struct Runs {
    /// Lines of the runs that have ended, each run followed by its exit status.
    ended: Vec<String>,
    /// `None` once the program is not to be started again.
    current: Option<Process>,
}

impl Restarted {
    /// Starts the program without input. `command` is asked for a command before each start.
    #[track_caller]
    pub fn start(mut command: impl FnMut() -> Command + Send + 'static) -> Restarted {
        let dir = tempdir();
        let log = dir.path().join("log");
        let first = Process::start(command(), &log);
        let runs = Arc::new(Mutex::new(Runs { ended: Vec::new(), current: Some(first) }));
        let shared = Arc::clone(&runs);
        thread::spawn(move || {
            while lock(&shared).start_again(|| Process::start(command(), &log)) {
                thread::sleep(POLL_INTERVAL);
            }
        });
        Restarted { runs, _dir: dir }
    }

    /// All complete lines of output, and `exit 0` or the like after each run that has ended.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.runs).lines()
    }

    /// Waits until the lines are `want`; panics as soon as another line appears.
    #[track_caller]
    pub fn wait_lines(&self, want: &[&str]) {
        until(&format!("the lines are {want:?}"), || {
            let lines = self.lines();
            let is_prefix = lines.len() <= want.len() && lines.iter().zip(want).all(|(line, want)| line == want);
            assert!(is_prefix, "the lines are {lines:?} instead of {want:?}");
            lines.len() == want.len()
        });
    }

    /// Sends a signal to the running process.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        lock(&self.runs).current.as_ref().expect("the program runs").signal(signal);
    }
}

impl Runs {
    /// Starts the program again if it has ended. Returns false if it is not to be started any more.
    fn start_again(&mut self, start: impl FnOnce() -> Process) -> bool {
        let Some(current) = &mut self.current else { return false };
        if let Some(status) = current.status() {
            let log = current.log();
            self.ended.extend(log.lines().map(str::to_owned));
            self.ended.push(shown(status));
            self.current = Some(start());
        }
        true
    }

    fn lines(&self) -> Vec<String> {
        let log = self.current.as_ref().map(Process::log).unwrap_or_default();
        let complete = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        self.ended.iter().cloned().chain(complete.map(str::to_owned)).collect()
    }
}

fn shown(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit {code}"))
}

fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Restarted {
    fn drop(&mut self) {
        let mut runs = lock(&self.runs);
        if thread::panicking() {
            eprintln!("--- lines of a restarted program ---\n{}\n--- end ---", runs.ended.join("\n"));
        }
        drop(runs.current.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_adds_its_lines_and_its_exit_status() {
        let mut count = 0;
        let program = Restarted::start(move || {
            count += 1;
            let mut command = Command::new("sh");
            command.args(["-c", "echo run $0; [ $0 = 1 ] && exit 3; sleep 1000", &count.to_string()]);
            command
        });
        program.wait_lines(&["run 1", "exit 3", "run 2"]);
    }
}
