//! Processes that a test starts and that never outlive it.

use std::{
    fs::{self, File},
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{LazyLock, Mutex, PoisonError, mpsc},
    thread,
};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::until_some;

/// How many lines of a server's log are printed when a test fails.
const TAIL_LINES: usize = 60;

/// A running process whose output goes to a log file.
///
/// It is killed when it is dropped, and by the kernel when the test program ends in any other way. If the test is failing,
/// the end of the log is printed.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
    /// True once the log was returned to the test, which then prints it where it matters.
    reported: bool,
}

/// How a process ended, and its log.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub log: String,
}

impl Ended {
    /// The signal that ended the process. etcd and Lockgate end by the signal that asked them to stop.
    pub fn by_signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

impl Process {
    /// Starts `command` without input, with its output in the new file `log`.
    #[track_caller]
    pub fn start(command: Command, log: &Path) -> Process {
        let file = File::create(log).unwrap_or_else(|error| panic!("failed to create {}: {error}", log.display()));
        Process::start_with(command, log, file)
    }

    /// Starts `command` without input, with its output at the end of `log`, after that of earlier processes.
    #[track_caller]
    pub fn start_appending(command: Command, log: &Path) -> Process {
        let file = File::options().create(true).append(true).open(log);
        let file = file.unwrap_or_else(|error| panic!("failed to open {}: {error}", log.display()));
        Process::start_with(command, log, file)
    }

    #[track_caller]
    fn start_with(mut command: Command, log: &Path, file: File) -> Process {
        let copy = file.try_clone().unwrap_or_else(|error| panic!("failed to share {}: {error}", log.display()));
        command.stdin(Stdio::null()).stdout(copy).stderr(file);
        let shown = format!("{:?}", command.get_program());
        let child = spawn_child(command).unwrap_or_else(|error| panic!("failed to start {shown}: {error}"));
        Process { child, log: log.to_owned(), reported: false }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything that the process has printed.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Memory that is not a mapped file, as the kernel counts it.
    #[track_caller]
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.expect("the kernel reports RssAnon of a running process") * 1024
    }

    /// Sends a signal to this process only.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.child);
        kill_process(id, signal).unwrap_or_else(|error| panic!("failed to signal process {}: {error}", self.id()));
    }

    pub fn has_ended(&mut self) -> bool {
        self.status().is_some()
    }

    /// The exit status of a process that has ended by itself.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap_or_else(|error| panic!("failed to wait for process {}: {error}", self.id()))
    }

    /// Waits until `ready` is true, or returns how the process ended before.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, mut ready: impl FnMut(&Process) -> bool) -> Result<(), Ended> {
        until_some(what, || {
            // A process that prints its last line and ends is ready, too.
            let status = self.status();
            if ready(self) {
                return Some(Ok(()));
            }
            status.map(|status| Err(self.ended(status)))
        })
    }

    /// Waits until the log contains `text`.
    #[track_caller]
    pub fn wait_log(&mut self, text: &str) {
        let waited = self.wait_until(&format!("the log contains {text:?}"), |process| process.log().contains(text));
        if let Err(ended) = waited {
            panic!("ended with {} before its log contained {text:?}:\n{}", ended.status, ended.log);
        }
    }

    /// Waits until the process has written its ports file (`--ports-file`), and returns the file's contents.
    #[track_caller]
    pub fn wait_ports(&mut self, file: &Path) -> serde_json::Value {
        let id = self.id();
        // A process that was killed leaves its file behind.
        let read = || {
            let text = fs::read_to_string(file).ok()?;
            let ports: serde_json::Value = serde_json::from_str(&text).expect("a ports file is complete JSON");
            (ports["pid"] == id).then_some(ports)
        };
        let what = format!("process {id} has written {}", file.display());
        if let Err(ended) = self.wait_until(&what, |_| read().is_some()) {
            panic!("ended with {} before it wrote {}:\n{}", ended.status, file.display(), ended.log);
        }
        read().unwrap_or_else(|| panic!("{} was removed or replaced", file.display()))
    }

    /// Waits until the process ends by itself.
    #[track_caller]
    pub fn wait_end(&mut self) -> Ended {
        let status = until_some("the process ends", || self.status());
        self.ended(status)
    }

    /// Asks the process to stop with SIGTERM and waits until it has ended.
    #[track_caller]
    pub fn stop(&mut self) -> Ended {
        self.signal(Signal::TERM);
        self.wait_end()
    }

    /// Ends the process with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn ended(&mut self, status: ExitStatus) -> Ended {
        self.reported = true;
        Ended { status, log: self.log() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() && !self.reported {
            eprintln!("--- last lines of {} ---\n{}\n--- end ---", self.log.display(), tail(&self.log()));
        }
    }
}

/// The end of a log, as it is printed when a test fails.
pub fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

type Job = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a process that the kernel kills when this program ends, for tests that talk to it through pipes.
///
/// Unlike a [`Process`], it is not killed when it is dropped.
///
/// The kernel acts at the end of the *thread* that started the process, so one thread that lives as long as the program
/// starts all of them.
pub fn spawn_child(mut command: Command) -> io::Result<Child> {
    static STARTER: LazyLock<Mutex<mpsc::Sender<Job>>> = LazyLock::new(|| {
        let (jobs, received) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for (mut command, reply) in received {
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(jobs)
    });
    // SAFETY: between fork and exec, the closure makes one system call and touches no memory of other threads.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    let (reply, child) = mpsc::channel();
    let sent = STARTER.lock().unwrap_or_else(PoisonError::into_inner).send((command, reply));
    let ended = || io::Error::other("the starting thread has ended");
    sent.map_err(|_| ended())?;
    child.recv().map_err(|_| ended())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir;

    fn shell(script: &str) -> (Process, tempfile::TempDir) {
        let dir = tempdir();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (Process::start(command, &dir.path().join("log")), dir)
    }

    #[test]
    fn a_log_line_is_waited_for() {
        let (mut process, _dir) = shell("echo one; sleep 0.2; echo two; sleep 100");
        process.wait_log("two");
        assert_eq!(process.log(), "one\ntwo\n");
    }

    #[test]
    fn an_early_end_is_reported_with_the_log() {
        let (mut process, _dir) = shell("echo broken; exit 3");
        let ended = process.wait_until("it is ready", |process| process.log().contains("ready")).unwrap_err();
        assert_eq!((ended.status.code(), ended.log.as_str()), (Some(3), "broken\n"));
    }

    #[test]
    fn a_stop_ends_by_the_signal() {
        let (mut process, _dir) = shell("echo up; sleep 100");
        process.wait_log("up");
        assert_eq!(process.stop().by_signal(), Some(15));
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let (mut process, _dir) = thread::spawn(|| shell("sleep 0.3; echo alive")).join().unwrap();
        process.wait_log("alive");
    }
}
