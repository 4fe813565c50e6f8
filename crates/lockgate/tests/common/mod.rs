//! A member of the built binary in a temporary directory, for tests from the outside.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod etcd;
pub mod group;
pub mod plain_http;

use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

use client::{Client, ConnectOptions};
use tempfile::TempDir;

pub const BINARY: &str = env!("CARGO_BIN_EXE_lockgate");
const START_MAX: Duration = Duration::from_secs(30);
const READY: &str = "ready to serve client requests";

/// A directory for one member: `data` for its data, `log` for what it says.
pub struct Place {
    dir: TempDir,
    /// Kept over restarts, because a new member's id follows from it.
    peer: u16,
}

/// How a member ended by itself.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub log: String,
}

impl Ended {
    /// After a clean stop the member ends by the signal that asked for it, as etcd does.
    pub fn by_signal(&self) -> bool {
        self.status.signal() == Some(15)
    }
}

/// A running member. Dropping it kills it.
pub struct Member {
    child: Child,
    pub port: u16,
    log: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        Place { dir: tempfile::tempdir().expect("temporary directory"), peer: free_port() }
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn wal(&self) -> PathBuf {
        self.data().join("member/wal")
    }

    pub fn db(&self) -> PathBuf {
        self.data().join("member/snap/db")
    }

    /// Starts a member and waits until it serves.
    pub fn start(&self, flags: &[&str]) -> Member {
        match self.try_start(flags) {
            Ok(member) => member,
            Err(ended) => panic!("the member ended with {}:\n{}", ended.status, ended.log),
        }
    }

    /// Starts a member and waits until it serves or has ended.
    pub fn try_start(&self, flags: &[&str]) -> Result<Member, Ended> {
        loop {
            let mut member = self.spawn(flags);
            match member.wait_ready() {
                // Somebody took the port between our look at it and the member's.
                Err(ended) if ended.log.contains("Address already in use") => continue,
                other => return other.map(|()| member),
            }
        }
    }

    /// Starts a member and waits for nothing.
    pub fn spawn(&self, flags: &[&str]) -> Member {
        let mut command = Command::new(BINARY);
        command.args(flags);
        self.spawn_command(command)
    }

    /// Starts a member on a port that another has left, and waits until it serves.
    pub fn start_at(&self, port: u16, flags: &[&str]) -> Member {
        let mut command = Command::new(BINARY);
        command.args(flags);
        let mut member = self.spawn_at(port, command);
        member.wait_ready().unwrap_or_else(|ended| panic!("the member ended with {}:\n{}", ended.status, ended.log));
        member
    }

    /// Starts a member by a command that ends in the binary and its first flags.
    pub fn spawn_command(&self, command: Command) -> Member {
        self.spawn_at(free_port(), command)
    }

    fn spawn_at(&self, port: u16, mut command: Command) -> Member {
        let peer = self.peer;
        let log = self.dir.path().join("log");
        let file = File::create(&log).expect("log file");
        let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
        command
            .args(["--name", "m1", "--data-dir"])
            .arg(self.data())
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("m1={peer}")])
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("log file"))
            .stderr(file);
        Member { child: command.spawn().expect("start the binary"), port, log }
    }

    /// Every name and every byte below the data dir.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut out = Vec::new();
        walk(&self.data(), &mut out);
        out.sort();
        out
    }
}

impl Member {
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub async fn client(&self) -> Client {
        let options = ConnectOptions::new().request_timeout(Duration::from_secs(20));
        Client::connect([self.url()], options).await.expect("connect")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Memory that is not a mapped file, from the kernel.
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("process status");
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("RssAnon");
        line.split_whitespace().nth(1).expect("number").parse::<u64>().expect("number") * 1024
    }

    /// As a power cut would, as far as a process can.
    pub fn kill(mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// Asks the member to end and waits for it.
    pub fn stop(mut self) -> Ended {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
        self.wait_end()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_some()
    }

    pub fn wait_end(&mut self) -> Ended {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                return Ended { status, log: self.log() };
            }
            assert!(begin.elapsed() < START_MAX, "the member does not end:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn wait_ready(&mut self) -> Result<(), Ended> {
        let begin = Instant::now();
        while !self.log().contains(READY) {
            if let Some(status) = self.child.try_wait().expect("wait") {
                return Err(Ended { status, log: self.log() });
            }
            assert!(begin.elapsed() < START_MAX, "the member does not get ready:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Members propose and the leader decides a moment after the start.
pub async fn wait_for_feature(client: &Client, feature: &str, on: bool) {
    let begin = Instant::now();
    loop {
        let status = client.feature_gate_status([feature]).await.expect("status");
        if status.features[0].enabled == on {
            return;
        }
        assert!(begin.elapsed() < START_MAX, "{feature} is never {on}: {status:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The leader decides on a version a moment after the start.
pub async fn wait_for_version(client: &Client, version: &str) {
    let begin = Instant::now();
    while client.feature_gate_status([""; 0]).await.expect("status").cluster_version != version {
        assert!(begin.elapsed() < START_MAX, "the cluster version is never {version}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Small random numbers from a seed, so that a failure can be run again.
pub struct Rng(pub u64);

impl Rng {
    /// From `LOCKGATE_SEED`, or new; printed either way.
    pub fn from_env() -> Rng {
        let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |d| d.as_nanos() as u64);
        let seed = std::env::var("LOCKGATE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(now);
        println!("LOCKGATE_SEED={seed}");
        Rng(seed)
    }

    pub fn below(&mut self, max: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % max
    }
}

/// A port that nobody listens on, below those that the system hands out for outgoing connections: nobody takes it before
/// the member does. Test binaries that run at once begin at different ones.
pub fn free_port() -> u16 {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id() % u32::from(COUNT)) as u16;
    loop {
        let port = FIRST + begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn walk(dir: &Path, out: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            out.push((path.clone(), Vec::new()));
            walk(&path, out);
        } else {
            let bytes = fs::read(&path).expect("read");
            out.push((path, bytes));
        }
    }
}
