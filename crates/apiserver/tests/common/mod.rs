//! A store and an API server in this process, and the real kubectl beside them.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod board;
pub mod http;
pub mod member;
pub mod webhook;

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Everything that runs; ends when dropped.
pub struct World {
    api: Option<apiserver::Server>,
    member: Option<server::Server>,
    pub endpoint: String,
    pub dir: TempDir,
    runtime: Runtime,
}

pub struct Said {
    pub out: String,
    pub err: String,
    pub ok: bool,
}

impl Said {
    /// What was said, if the command did what it should.
    #[track_caller]
    pub fn good(self) -> String {
        assert!(self.ok, "kubectl failed: {}{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    pub fn bad(self) -> String {
        assert!(!self.ok, "kubectl should have failed: {}", self.out);
        self.err
    }
}

/// True if kubectl is there. A test without it says so and ends; where peers are required it fails.
pub fn has_kubectl() -> bool {
    let found =
        Command::new("kubectl").args(["version", "--client"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return true;
    }
    assert!(std::env::var("LOCKGATE_REQUIRE_PEERS").is_err(), "kubectl is required and was not found");
    eprintln!("SKIPPED: kubectl was not found");
    false
}

pub fn data(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).display().to_string()
}

impl World {
    pub fn start() -> World {
        World::start_with(|_| {})
    }

    pub fn start_with(change: impl FnOnce(&mut apiserver::Options)) -> World {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
        let dir = tempfile::tempdir().expect("temporary directory");
        let (member, endpoint) = runtime.block_on(member::start(&dir.path().join("member")));
        let mut options = apiserver::Options::new(vec![endpoint.clone()], dir.path().join("api"));
        change(&mut options);
        let api = runtime.block_on(apiserver::Server::start(options)).expect("API server");
        World { api: Some(api), member: Some(member), endpoint, dir, runtime }
    }

    /// A second API server on the same store.
    pub fn another(&self) -> apiserver::Server {
        let options = apiserver::Options::new(vec![self.endpoint.clone()], self.dir.path().join("other"));
        self.runtime.block_on(apiserver::Server::start(options)).expect("another API server")
    }

    pub fn api(&self) -> &apiserver::Server {
        self.api.as_ref().expect("runs until dropped")
    }

    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn kubectl(&self, args: &[&str]) -> Said {
        self.kubectl_on(self.api(), args, "")
    }

    pub fn kubectl_with(&self, args: &[&str], input: &str) -> Said {
        self.kubectl_on(self.api(), args, input)
    }

    pub fn kubectl_on(&self, api: &apiserver::Server, args: &[&str], input: &str) -> Said {
        use std::io::Write;
        let mut child = Command::new("kubectl")
            .args(args)
            .env("KUBECONFIG", api.kubeconfig())
            // The cache of discovery lives at home; each world has its own.
            .env("HOME", self.dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("kubectl reads");
        let output = child.wait_with_output().expect("kubectl ends");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said { out: text(output.stdout), err: text(output.stderr), ok: output.status.success() }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let (api, member) = (self.api.take(), self.member.take());
        self.runtime.block_on(async {
            drop(api);
            if let Some(member) = member {
                member.stop().await;
            }
        });
    }
}
