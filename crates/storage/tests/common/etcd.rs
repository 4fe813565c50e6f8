//! A real etcd to write files and to read ours.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

pub struct Etcd {
    dir: PathBuf,
    process: Child,
    port: u16,
}

impl Etcd {
    /// Starts the etcd in `bin` on `data` and waits until it serves.
    pub fn start(bin: &Path, data: &Path, ports: (u16, u16)) -> Etcd {
        let (port, peer) = ports;
        let client_url = format!("http://127.0.0.1:{port}");
        let peer_url = format!("http://127.0.0.1:{peer}");
        let log = std::fs::File::create(data.with_extension("log")).expect("log");
        let process = Command::new(bin.join("etcd"))
            .args(["--name", "m", "--snapshot-count", "30", "--data-dir"])
            .arg(data)
            .args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url])
            .args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
            .args(["--initial-cluster", &format!("m={peer_url}")])
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .expect("start etcd");
        let etcd = Etcd { dir: bin.to_owned(), process, port };
        let begin = Instant::now();
        while !etcd.try_ctl("endpoint health").status.success() {
            assert!(begin.elapsed() < Duration::from_secs(60), "etcd does not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
        etcd
    }

    pub fn ctl(&self, line: &str) -> String {
        let output = self.try_ctl(line);
        assert!(output.status.success(), "etcdctl {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn try_ctl(&self, line: &str) -> Output {
        Command::new(self.dir.join("etcdctl"))
            .arg(format!("--endpoints=127.0.0.1:{}", self.port))
            .args(line.split(' '))
            .output()
            .expect("run etcdctl")
    }

    /// POSTs JSON to the gateway and returns the body.
    pub fn post(&self, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connect");
        let n = body.len();
        write!(stream, "POST {path} HTTP/1.0\r\nHost: etcd\r\nContent-Length: {n}\r\n\r\n{body}").expect("send");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("receive");
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }

    /// Stops it as an operator would, and waits.
    pub fn stop(mut self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").arg(pid).status().expect("kill").success());
        self.process.wait().expect("wait");
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // For a test that fails; after `stop` there is nothing left to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two that nobody listens on now: for clients and for peers.
pub fn free_ports() -> (u16, u16) {
    let listen = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = |l: &TcpListener| l.local_addr().expect("an address").port();
    let (a, b) = (listen(), listen());
    (port(&a), port(&b))
}
