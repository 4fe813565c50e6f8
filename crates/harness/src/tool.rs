//! Programs that run to their end: command-line tools.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
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
    /// Runs a command without input, unless it has one.
    #[track_caller]
    pub fn of(command: &mut Command) -> Output {
        let output = command.stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("failed to run {command:?}: {error}"));
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
