//! Port 0 and `--ports-file`, for every command that listens.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use client::{Client, ConnectOptions, Get, Put};
use serde_json::{Value, json};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_lockgate");
const WAIT_MAX: Duration = Duration::from_secs(60);
const ANY: &str = "http://127.0.0.1:0";

/// A process with a ports file in a directory of its own. Ends with the test.
struct Process {
    child: Child,
    ports_file: PathBuf,
    log: PathBuf,
}

impl Process {
    fn start(dir: &Path, name: &str, args: &[&str]) -> Process {
        let (ports_file, log) = (dir.join(format!("{name}.ports")), dir.join(format!("{name}.log")));
        let file = File::create(&log).expect("log file");
        let child = Command::new(BINARY)
            .args(args)
            .arg("--ports-file")
            .arg(&ports_file)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("log file"))
            .stderr(file)
            .spawn()
            .expect("start the binary");
        Process { child, ports_file, log }
    }

    /// Waits until this process has written its ports file.
    fn ports(&mut self) -> Value {
        let begin = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(&self.ports_file) {
                let ports: Value = serde_json::from_str(&text).expect("the file is whole whenever it is there");
                if ports["pid"] == self.child.id() {
                    return ports;
                }
            }
            let status = self.child.try_wait().expect("wait");
            assert!(status.is_none() && begin.elapsed() < WAIT_MAX, "no ports file ({status:?}):\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks the process to end and waits for it.
    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
        self.child.wait().expect("wait");
        assert!(!self.ports_file.exists(), "a stopped process leaves no ports file");
    }

    /// kill -9.
    fn kill(mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// Waits until the process has ended by itself.
    fn end(mut self) -> String {
        assert!(!self.child.wait().expect("wait").success());
        self.log()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn member(dir: &Path, more: &[&str]) -> Process {
    let cluster = format!("m={ANY}");
    let flags = [
        &["--name", "m", "--data-dir", "data", "--initial-cluster", &cluster][..],
        &["--listen-client-urls", ANY, "--advertise-client-urls", ANY],
        &["--listen-peer-urls", ANY, "--initial-advertise-peer-urls", ANY],
        more,
    ];
    Process::start(dir, "member", &flags.concat())
}

fn dir() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// The URLs of one kind of listener.
fn urls(ports: &Value, kind: &str) -> Vec<String> {
    serde_json::from_value(ports[kind].clone()).unwrap_or_else(|error| panic!("{kind} in {ports}: {error}"))
}

async fn connect(ports: &Value) -> Client {
    let options = ConnectOptions::new().request_timeout(Duration::from_secs(20));
    Client::connect(urls(ports, "client"), options).await.expect("connect")
}

/// Client and peer URLs of the only member, as the cluster has them.
async fn advertised(client: &Client) -> (Vec<String>, Vec<String>) {
    let mut members = client.member_list(true).await.expect("members").members;
    assert_eq!(members.len(), 1);
    let member = members.remove(0);
    (member.client_ur_ls, member.peer_ur_ls)
}

fn http_status(url: &str, path: &str) -> u16 {
    let address = url.strip_prefix("http://").expect("a plain URL");
    let mut stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("{url}: {error}"));
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("ask");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answer");
    text.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_on_ports_of_the_systems_choice() {
    let dir = dir();
    let more = ["--listen-client-http-urls", ANY, "--listen-metrics-urls", "http://127.0.0.1:0,http://127.0.0.2:0"];
    let mut first = member(dir.path(), &more);
    let ports = first.ports();
    let client = connect(&ports).await;
    client.put(Put::new("k", "v")).await.expect("put");
    assert_eq!(client.get(Get::key("k")).await.expect("get").kvs[0].value, "v");
    assert_eq!(advertised(&client).await, (urls(&ports, "client"), urls(&ports, "peer")));
    assert_eq!(http_status(&urls(&ports, "client-http")[0], "/version"), 200);
    let metrics = urls(&ports, "metrics");
    assert_eq!(metrics.len(), 2);
    metrics.iter().for_each(|url| assert_eq!(http_status(url, "/metrics"), 200, "{url}"));
    assert_eq!(http_status(&urls(&ports, "peer")[0], "/members"), 200);
    for url in ["client", "client-http", "metrics", "peer"].iter().flat_map(|kind| urls(&ports, kind)) {
        assert!(first.log().contains(&url), "{url} is not in the log:\n{}", first.log());
    }
    assert!(!first.log().contains("127.0.0.1:0\""), "{}", first.log());
    first.kill();

    // The stale file of the killed process is replaced; clients learn the new port, and the cluster keeps the peer URL.
    let mut second = member(dir.path(), &[]);
    let again = second.ports();
    let client = connect(&again).await;
    assert_eq!(client.get(Get::key("k")).await.expect("get").kvs[0].value, "v");
    assert_eq!(advertised(&client).await, (urls(&again, "client"), urls(&ports, "peer")));
    assert_eq!(again["metrics"], json!([]));
    assert!(!second.log().contains("recorded"), "nobody else dials it:\n{}", second.log());
    // With a second member, which never starts, a changed peer port matters.
    client.member_add(vec!["http://127.0.0.1:1".into()], true).await.expect("add");
    second.stop();

    let mut third = member(dir.path(), &[]);
    connect(&third.ports()).await.get(Get::key("k")).await.expect("get");
    assert!(third.log().contains("the cluster records other peer URLs"), "{}", third.log());
    third.stop();
}

#[test]
fn refused_starts_leave_the_data_dir_alone() {
    let refused = |more: &[&str]| {
        let dir = dir();
        let log = member(dir.path(), more).end();
        assert!(!dir.path().join("data").exists() && !dir.path().join("member.ports").exists(), "{log}");
        log
    };
    let log = refused(&["--initial-cluster", &format!("m={ANY},o={ANY}")]);
    assert!(log.contains("o=http://127.0.0.1:0: another member cannot be dialled at port 0"), "{log}");
    let log = refused(&["--listen-client-urls", "unix://x.sock"]);
    assert!(log.contains("--advertise-client-urls: http://127.0.0.1:0: port 0"), "{log}");
    let log = refused(&["--listen-peer-urls", "http://192.0.2.1:0"]);
    assert!(log.contains("192.0.2.1:0: bind"), "{log}");

    let dir = dir();
    let missing = dir.path().join("missing");
    let args = ["--data-dir", "data", "--ports-file", "missing/ports"].map(str::to_owned);
    let said = Command::new(BINARY).args(args).current_dir(dir.path()).output().expect("run the binary");
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(text.contains("--ports-file: failed to write missing/ports: No such file or directory"), "{text}");
    assert!(!dir.path().join("data").exists() && !missing.exists());
}

#[test]
fn a_playground_and_the_commands_that_follow_it() {
    let dir = dir();
    let mut playground = Process::start(dir.path(), "playground", &["playground", "--listen", "127.0.0.1:0"]);
    let ports = playground.ports();
    let [api, store] = ["api", "client"].map(|kind| urls(&ports, kind).remove(0));
    let kubeconfig = fs::read_to_string(dir.path().join("lockgate.api/admin.kubeconfig")).expect("the kubeconfig");
    assert!(api.starts_with("https://127.0.0.1:") && kubeconfig.contains(&api), "{api}\n{kubeconfig}");

    let flags = ["apiserver", "--listen", "0.0.0.0:0", "--data-dir", "second", "--etcd-servers", &store];
    let mut apiserver = Process::start(dir.path(), "apiserver", &flags);
    let ports = apiserver.ports();
    assert!(urls(&ports, "api")[0].starts_with("https://127.0.0.1:"), "{ports}");
    assert!(ports.get("client").is_none(), "{ports}");
    apiserver.stop();

    let flags = ["ofrep", "--listen", "127.0.0.1:0", "--no-feature-sets", "--store-endpoints", &store];
    let mut ofrep = Process::start(dir.path(), "ofrep", &flags);
    let url = urls(&ofrep.ports(), "ofrep").remove(0);
    TcpStream::connect(url.strip_prefix("http://").expect("a plain URL")).expect("connect");
    assert!(ofrep.log().contains(&url["http://".len()..]), "{}", ofrep.log());
    ofrep.stop();

    let gate =
        "[gate.A]\ndescription = \"d\"\nowner = \"o\"\ncontact = \"c\"\nenhancement = \"https://e\"\nsince = \"1.4\"\n";
    let gates = format!("schema = 1\nversion = \"1.4.0\"\n{gate}sets = []\n");
    fs::write(dir.path().join("gates.toml"), gates).expect("gates.toml");
    let flags = ["operator", "--release-version", "1.4.0", "--metrics-listen", "0.0.0.0:0"];
    let kubeconfig = ["--kubeconfig", "lockgate.api/admin.kubeconfig"];
    let mut operator = Process::start(dir.path(), "operator", &[&flags[..], &kubeconfig].concat());
    let url = urls(&operator.ports(), "metrics").remove(0);
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert_eq!(http_status(&url, "/healthz"), 200);
    operator.stop();
    playground.stop();
}
