//! A real etcd beside ours.

use std::{
    env,
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::free_port;

/// A real etcd of one member. Dropping it kills it.
pub struct Etcd {
    child: Child,
    pub port: u16,
    _dir: TempDir,
}

impl Etcd {
    /// `None`, after saying so loudly, if there is no etcd to start.
    pub fn start_at(port: u16) -> Option<Etcd> {
        let program = peer()?;
        let dir = tempfile::tempdir().expect("temporary directory");
        let peer = free_port();
        let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
        let child = Command::new(program)
            .args(["--name", "m1", "--data-dir"])
            .arg(dir.path())
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("m1={peer}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start etcd");
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(30), "etcd does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(Etcd { child, port, _dir: dir })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `None`, after saying so loudly, if it is not there.
pub fn peer() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    let default = || cache.unwrap_or_else(home).join("lockgate/peers");
    let root = env::var_os("LOCKGATE_PEERS").map(PathBuf::from).unwrap_or_else(default);
    let path = root.join("etcd-3.7.3/etcd");
    if path.is_file() {
        return Some(path);
    }
    let reason = format!("{} is missing; set LOCKGATE_PEERS or run `cargo xtask interop fetch`", path.display());
    assert!(env::var_os("LOCKGATE_REQUIRE_PEERS").is_none_or(|value| value != "1"), "{reason}");
    eprintln!("SKIPPED: {reason}");
    None
}
