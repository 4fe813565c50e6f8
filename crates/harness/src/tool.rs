//! Programs that run to their end: command-line tools.

use std::{
    ffi::OsStr,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    thread,
};

/// How a tool ended and what it printed.
#[derive(Debug)]
pub struct Output {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program without input.
#[track_caller]
pub fn run(program: &Path, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    Output::of(Command::new(program).args(args))
}

impl Output {
    /// Runs a command without input.
    #[track_caller]
    pub fn of(command: &mut Command) -> Output {
        Output::with_input(command, "")
    }

    /// Runs a command that reads `input`; it may end before it has read all of it.
    #[track_caller]
    pub fn with_input(command: &mut Command, input: &str) -> Output {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn();
        let mut child = child.unwrap_or_else(|error| panic!("failed to start {command:?}: {error}"));
        let (stdin, input) = (child.stdin.take(), input.to_owned());
        // On a thread of its own, because the tool may print more than a pipe holds before it reads on.
        let writer = thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output();
        let output = output.unwrap_or_else(|error| panic!("failed to wait for {command:?}: {error}"));
        let _ = writer.join();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Standard output of a tool that succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Standard error of a tool that failed, without log lines of level info.
    #[track_caller]
    pub fn error(self) -> String {
        assert_ne!(self.code, Some(0), "the tool succeeded and printed {}", self.stdout);
        let errors = self.stderr.lines().filter(|line| !line.contains("\tinfo\t"));
        errors.collect::<Vec<_>>().join("\n")
    }
}
