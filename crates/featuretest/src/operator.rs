//! The example operators of the crate `accessor` as processes.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{Restarted, Signal};

/// An example operator of one version that is started again whenever it leaves, as a Deployment would.
#[derive(Debug)]
pub struct Operator(Restarted);

impl Operator {
    /// The program of an example. Cargo builds the examples with the tests of `accessor` and of the workspace; without
    /// them the test is skipped.
    #[track_caller]
    pub fn program(name: &str) -> Option<PathBuf> {
        let target = env::current_exe().ok().and_then(|test| test.parent()?.parent().map(Path::to_owned));
        let program = target.map(|dir| dir.join("examples").join(name)).filter(|program| program.is_file());
        if program.is_none() {
            harness::skip(&format!("example {name} is missing; run `cargo build -p accessor --examples`"));
        }
        program
    }

    /// A command that runs an example once.
    pub fn command(program: &Path, version: &str, kubeconfig: &Path) -> Command {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let mut command = Command::new(program);
        // A restarted container keeps the name of its pod.
        command.env("POD_NAME", format!("{name}-{version}"));
        command.env("KUBECONFIG", kubeconfig).env("OPERATOR_IMAGE_VERSION", version);
        command
    }

    #[track_caller]
    pub fn start(program: &Path, version: &str, kubeconfig: &Path) -> Operator {
        let (program, version, kubeconfig) = (program.to_owned(), version.to_owned(), kubeconfig.to_owned());
        Operator(Restarted::start(move || Operator::command(&program, &version, &kubeconfig)))
    }

    /// Waits until the operator has printed exactly these lines, with `exit 0` after each run that has left.
    #[track_caller]
    pub fn says(&self, want: &[&str]) {
        self.0.wait_lines(want);
    }

    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        self.0.signal(signal);
    }
}
