//! kubectl, for tests of the Kubernetes-style API.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use crate::{Output, peer::find, skip, wait_max};

/// The newest kubectl that `cargo xtask interop fetch` builds by default.
const NEWEST: &str = "kubectl-0.37.2";

/// The kubectl among the peers, or else the one on `PATH`. Without either the test is skipped, see [`skip`].
#[track_caller]
pub fn kubectl() -> Option<PathBuf> {
    static FOUND: LazyLock<Option<PathBuf>> = LazyLock::new(|| find(NEWEST, "kubectl").or_else(on_path));
    if FOUND.is_none() {
        skip("kubectl is missing; put it on PATH, set LOCKGATE_PEERS or run `cargo xtask interop fetch`");
    }
    FOUND.clone()
}

fn on_path() -> Option<PathBuf> {
    let mut command = Command::new("kubectl");
    command.args(["version", "--client"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then(|| "kubectl".into())
}

/// A kubectl that talks to one API server. A value of this type exists only if the program does.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Kubectl {
    /// Returns `None`, and reports the test as skipped, if there is no kubectl. The cache of discovery is kept in `home`:
    /// two API servers must not share one.
    #[track_caller]
    pub fn new(kubeconfig: &Path, home: &Path) -> Option<Kubectl> {
        Some(Kubectl { program: kubectl()?, kubeconfig: kubeconfig.to_owned(), home: home.to_owned() })
    }

    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, "")
    }

    /// Runs kubectl with `input`, for `-f -`.
    #[track_caller]
    pub fn run_with(&self, args: &[&str], input: &str) -> Output {
        let mut command = Command::new(&self.program);
        command.args(args).env("KUBECONFIG", &self.kubeconfig).env("HOME", &self.home);
        Output::with_input(&mut command, input)
    }

    /// Runs `kubectl wait` with the limit that all waits share.
    #[track_caller]
    pub fn wait(&self, args: &[&str]) -> Output {
        self.run(&[&["wait", &limit()], args].concat())
    }

    /// Runs `kubectl delete`, which waits until the objects are gone, with the limit that all waits share.
    #[track_caller]
    pub fn delete(&self, args: &[&str]) -> Output {
        self.run(&[&["delete", &limit()], args].concat())
    }
}

fn limit() -> String {
    format!("--timeout={}s", wait_max().as_secs())
}
