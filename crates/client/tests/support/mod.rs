//! Real servers for tests, and a proxy that breaks connections.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::{
    env,
    ffi::OsStr,
    fs::File,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// A program of a real etcd release, or `None` after saying loudly why the test is skipped.
pub fn peer(version: &str, program: &str) -> Option<PathBuf> {
    let root = env::var_os("LOCKGATE_PEERS").map(PathBuf::from).unwrap_or_else(default_root);
    let path = root.join(format!("etcd-{version}")).join(program);
    if path.is_file() {
        return Some(path);
    }
    let reason = format!("{} is missing; set LOCKGATE_PEERS or run `cargo xtask interop fetch`", path.display());
    assert!(env::var_os("LOCKGATE_REQUIRE_PEERS").is_none_or(|value| value != "1"), "{reason}");
    eprintln!("SKIPPED: {reason}");
    None
}

fn default_root() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    cache.unwrap_or_else(home).join("lockgate/peers")
}

/// A member in a directory of its own; killed when dropped.
pub struct Server {
    pub program: PathBuf,
    child: Option<Child>,
    dir: tempfile::TempDir,
    pub client: String,
    pub peer: String,
    flags: Vec<String>,
}

/// All one-member clusters advertise this address, which nobody uses, so that all have the same ids.
const PEER: &str = "http://127.0.0.1:2380";

impl Server {
    pub fn start(program: &Path) -> Server {
        Server::start_with(program, &[])
    }

    /// A cluster of one.
    pub fn start_with(program: &Path, flags: &[&str]) -> Server {
        let mut server = Server::new(program);
        server.flag(&["--name", "m1", "--initial-cluster", &format!("m1={PEER}")]);
        server.flag(&["--initial-advertise-peer-urls", PEER]);
        server.flag(flags);
        server.run();
        server
    }

    /// A cluster of several.
    pub fn cluster(program: &Path, members: usize) -> Vec<Server> {
        let mut servers: Vec<Server> = (0..members).map(|_| Server::new(program)).collect();
        let names: Vec<String> =
            servers.iter().enumerate().map(|(i, server)| format!("m{i}=http://{}", server.peer)).collect();
        for (i, server) in servers.iter_mut().enumerate() {
            let url = format!("http://{}", server.peer);
            server.flag(&["--name", &format!("m{i}"), "--initial-cluster", &names.join(",")]);
            server.flag(&["--initial-advertise-peer-urls", &url]);
            server.spawn();
        }
        servers.iter_mut().for_each(Server::wait_ready);
        servers
    }

    /// The same cluster from its beginning: same addresses, and so the same ids, but no data.
    pub fn begin_again(servers: &mut [Server]) {
        for server in servers.iter_mut() {
            server.kill();
            let _ = std::fs::remove_dir_all(server.dir.path().join("data"));
        }
        servers.iter_mut().for_each(Server::spawn);
        servers.iter_mut().for_each(Server::wait_ready);
    }

    fn new(program: &Path) -> Server {
        let address = || format!("127.0.0.1:{}", free_port());
        let (client, peer, dir) = (address(), address(), tempfile::tempdir().unwrap());
        Server { program: program.to_owned(), child: None, dir, client, peer, flags: Vec::new() }
    }

    fn flag(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|flag| flag.to_string()));
    }

    pub fn run(&mut self) {
        self.spawn();
        self.wait_ready();
    }

    fn spawn(&mut self) {
        let (client, peer) = (format!("http://{}", self.client), format!("http://{}", self.peer));
        let log = self.dir.path().join("log");
        let child = Command::new(&self.program)
            .args([OsStr::new("--data-dir"), self.dir.path().join("data").as_os_str()])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--unsafe-no-fsync", "--log-level", "warn"])
            .args(&self.flags)
            .stdout(File::create(&log).unwrap())
            .stderr(File::options().append(true).open(&log).unwrap())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    fn wait_ready(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.is_ready() {
            let exited = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
            if exited.is_some() || Instant::now() > deadline {
                let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
                panic!("{} did not get ready ({exited:?}):\n{log}", self.program.display());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn is_ready(&self) -> bool {
        use std::io::{Read, Write};
        let Ok(mut stream) = TcpStream::connect(&self.client) else { return false };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
        let request = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.client);
        let mut answer = String::new();
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.contains("\"true\"")
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Passes bytes on to a server, until told to cut all connections.
pub struct Proxy {
    pub address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub fn start(target: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (target, live) = (target.to_owned(), Arc::clone(&streams));
        thread::spawn(move || {
            for inbound in listener.incoming().flatten() {
                let Ok(outbound) = TcpStream::connect(&target) else { continue };
                pipe(&inbound, &outbound);
                pipe(&outbound, &inbound);
                live.lock().unwrap().extend([inbound, outbound]);
            }
        });
        Proxy { address, streams }
    }

    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn pipe(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}
