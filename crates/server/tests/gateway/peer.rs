//! A real etcd to compare with.

use std::{
    env,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

pub struct Etcd {
    pub address: String,
    process: Child,
    _dir: tempfile::TempDir,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn binary(version: &str) -> PathBuf {
    let cache = || env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cache")));
    let peers = env::var_os("LOCKGATE_PEERS").map(PathBuf::from).or_else(|| Some(cache()?.join("lockgate/peers")));
    peers.unwrap_or_default().join(format!("etcd-{version}")).join("etcd")
}

/// A member with an empty directory, or `None` if there is no such etcd here.
pub async fn start(version: &str) -> Option<Etcd> {
    let binary = binary(version);
    if !binary.exists() {
        let what = format!("no etcd {version} at {}; set LOCKGATE_PEERS to a directory that has it", binary.display());
        assert_ne!(env::var("LOCKGATE_REQUIRE_PEERS").as_deref(), Ok("1"), "{what}");
        eprintln!("SKIPPED: {what}");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [client, peer] = ports.map(|listener| format!("http://{}", listener.local_addr().unwrap()));
    let process = Command::new(binary)
        .args([
            "--name",
            "gw",
            "--log-level",
            "error",
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("gw={peer}"), "--data-dir"])
        .arg(dir.path().join("data"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut etcd = Etcd { address: client.trim_start_matches("http://").to_owned(), process, _dir: dir };
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // If another program took the port meanwhile, ours has ended, and its answers must not be taken for etcd's.
        if let Some(status) = etcd.process.try_wait().unwrap() {
            panic!("etcd {version} ended at once: {status}");
        }
        if healthy(&etcd.address).await {
            return Some(etcd);
        }
    }
    panic!("etcd {version} did not become healthy within 10 s");
}

async fn healthy(address: &str) -> bool {
    let case = super::http::Case {
        comment: Vec::new(),
        head: vec!["GET /health".to_owned()],
        body: String::new(),
        expected: Vec::new(),
    };
    match tokio::net::TcpStream::connect(address).await {
        Ok(_) => case.run(address).await.iter().any(|line| line.contains("\"health\":\"true\"")),
        Err(_) => false,
    }
}
