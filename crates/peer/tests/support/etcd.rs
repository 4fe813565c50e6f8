//! A real etcd: found in a directory of `etcd-<version>/{etcd,etcdctl}`, else the test skips.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    env,
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub const VERSION: &str = "3.7.3";

/// The directory of the release, or `None` after saying why the test is skipped.
pub fn find() -> Option<PathBuf> {
    let dir = peers_dir().join(format!("etcd-{VERSION}"));
    if dir.join("etcd").exists() {
        return Some(dir);
    }
    let missing = format!("etcd {VERSION} is not at {}; `LOCKGATE_PEERS` may name another place", dir.display());
    assert!(env::var_os("LOCKGATE_REQUIRE_PEERS").is_none_or(|v| v != "1"), "{missing}");
    // Not `eprintln!`, whose output a passing test swallows.
    writeln!(std::io::stderr(), "\nSKIPPED: {missing}").expect("stderr");
    None
}

fn peers_dir() -> PathBuf {
    if let Some(dir) = env::var_os("LOCKGATE_PEERS") {
        return dir.into();
    }
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    cache
        .unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache"))
        .join("lockgate/peers")
}

pub fn free_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    format!("http://{}", listener.local_addr().expect("address"))
}

/// A running etcd named `real`, killed when dropped.
pub struct Etcd {
    child: Child,
    programs: PathBuf,
    pub data: PathBuf,
    pub client_url: String,
    pub peer_url: String,
}

impl Etcd {
    /// `others` are the rest of the new cluster, as `name=url`.
    pub fn start(programs: &Path, data: PathBuf, peer_url: &str, others: &[String], extra: &[&str]) -> Etcd {
        let client_url = free_url();
        let cluster = [vec![format!("real={peer_url}")], others.to_vec()].concat().join(",");
        let log = std::fs::File::create(data.with_extension("log")).expect("log");
        let mut command = Command::new(programs.join("etcd"));
        command.args(["--name", "real", "--initial-cluster", &cluster, "--data-dir"]).arg(&data);
        command.args(["--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url]);
        command.args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url]);
        let child = command.args(extra).stdout(Stdio::null()).stderr(log).spawn().expect("start etcd");
        Etcd { child, programs: programs.into(), data, client_url, peer_url: peer_url.into() }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.data.with_extension("log")).expect("log")
    }

    /// Runs `etcdctl`; its output, or what it complained of.
    pub async fn ctl(&self, args: &[&str]) -> Result<String, String> {
        let mut command = tokio::process::Command::new(self.programs.join("etcdctl"));
        command.args(["--endpoints", &self.client_url, "--command-timeout", "5s"]).args(args);
        let output = command.output().await.expect("run etcdctl");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Runs `etcdctl` until it succeeds.
    pub async fn ctl_ok(&self, args: &[&str]) -> String {
        let start = Instant::now();
        let mut last = String::new();
        while start.elapsed() < Duration::from_secs(30) {
            match self.ctl(args).await {
                Ok(output) => return output,
                Err(error) => last = error,
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("etcdctl {args:?}: {last}\n{}", self.log())
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
