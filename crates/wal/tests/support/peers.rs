//! Real etcd releases to try files on: found in a directory of `etcd-<version>/{etcd,etcdctl}`, else the test skips.

use std::{
    env,
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The directory of release `version`, or `None` after saying why the test is skipped.
pub fn find(version: &str) -> Option<PathBuf> {
    let dir = peers_dir().join(format!("etcd-{version}"));
    if dir.join("etcd").exists() {
        return Some(dir);
    }
    let missing = format!("etcd {version} is not at {}; `LOCKGATE_PEERS` may name another place", dir.display());
    assert!(env::var_os("LOCKGATE_REQUIRE_PEERS").is_none_or(|v| v != "1"), "{missing}");
    // Not `eprintln!`, whose output a passing test swallows.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "\nSKIPPED: {missing}").unwrap();
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

/// A running etcd of one member, killed when dropped.
pub struct Etcd {
    child: Child,
    programs: PathBuf,
    endpoint: String,
}

impl Etcd {
    pub fn start(programs: &Path, data: &Path, extra: &[&str]) -> Self {
        let mut etcd = Self::spawn(programs, data, extra);
        etcd.wait_ready(data);
        etcd
    }

    /// What an etcd logs that ends by itself.
    pub fn start_refused(programs: &Path, data: &Path) -> String {
        let mut etcd = Self::spawn(programs, data, &[]);
        let start = Instant::now();
        while etcd.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "etcd runs on");
            thread::sleep(Duration::from_millis(50));
        }
        std::fs::read_to_string(data.with_extension("log")).unwrap()
    }

    fn spawn(programs: &Path, data: &Path, extra: &[&str]) -> Self {
        let (client, peer) = (free_url(), free_url());
        let log = std::fs::File::create(data.with_extension("log")).unwrap();
        let child = Command::new(programs.join("etcd"))
            .args(["--name", "m1", "--initial-cluster-token", "t"])
            .arg("--data-dir")
            .arg(data)
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("m1={peer}")])
            .args(extra)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, programs: programs.into(), endpoint: client }
    }

    pub fn put(&self, key: &str, value: &str) {
        self.ctl(&["put", key, value]).unwrap();
    }

    pub fn get(&self, key: &str) -> String {
        self.ctl(&["get", "--print-value-only", key]).unwrap().trim_end().to_owned()
    }

    /// SIGKILL: the log is left as a crash leaves it.
    pub fn kill(self) {}

    fn ctl(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new(self.programs.join("etcdctl"))
            .args(["--endpoints", &self.endpoint, "--dial-timeout", "1s", "--command-timeout", "3s"])
            .args(args)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn wait_ready(&mut self, data: &Path) {
        let start = Instant::now();
        while self.ctl(&["get", "ready?"]).is_err() {
            let ended = self.child.try_wait().unwrap();
            if ended.is_some() || start.elapsed() > Duration::from_secs(60) {
                let log = std::fs::read_to_string(data.with_extension("log")).unwrap_or_default();
                panic!("etcd did not get ready ({ended:?}):\n{log}");
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended by itself already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
