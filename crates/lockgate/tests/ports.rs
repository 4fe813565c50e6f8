//! Port 0 and `--ports-file`, for every command that listens.

use crate::common::BINARY;

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
};

use client::{Client, ConnectOptions, Get, Put};
use harness::{Output, Process, tempdir, wait_max};
use serde_json::{Value, json};

const ANY: &str = "http://127.0.0.1:0";

/// A process with a ports file.
struct Listening {
    process: Process,
    ports_file: PathBuf,
}

impl Listening {
    fn start(dir: &Path, name: &str, args: &[&str]) -> Listening {
        let ports_file = dir.join(format!("{name}.ports"));
        let mut command = Command::new(BINARY);
        command.args(args).arg("--ports-file").arg(&ports_file).current_dir(dir);
        Listening { process: Process::start(command, &dir.join(format!("{name}.log"))), ports_file }
    }

    /// Waits until the process has written its ports file.
    fn ports(&mut self) -> Value {
        self.process.wait_ports(&self.ports_file)
    }

    fn log(&self) -> String {
        self.process.log()
    }

    fn stop(mut self) {
        self.process.stop();
        assert!(!self.ports_file.exists(), "a stopped process leaves no ports file");
    }
}

fn member(dir: &Path, more: &[&str]) -> Listening {
    let cluster = format!("m={ANY}");
    let flags = [
        &["--name", "m", "--data-dir", "data", "--initial-cluster", &cluster][..],
        &["--listen-client-urls", ANY, "--advertise-client-urls", ANY],
        &["--listen-peer-urls", ANY, "--initial-advertise-peer-urls", ANY],
        more,
    ];
    Listening::start(dir, "member", &flags.concat())
}

/// The URLs of one kind of listener.
fn urls(ports: &Value, kind: &str) -> Vec<String> {
    serde_json::from_value(ports[kind].clone()).unwrap_or_else(|error| panic!("{kind} in {ports}: {error}"))
}

async fn connect(ports: &Value) -> Client {
    let options = ConnectOptions::new().request_timeout(wait_max());
    Client::connect(urls(ports, "client"), options).await.expect("connect")
}

/// The client and peer URLs of the only member, as recorded by the cluster.
async fn advertised(client: &Client) -> (Vec<String>, Vec<String>) {
    let mut members = client.member_list(true).await.expect("members").members;
    assert_eq!(members.len(), 1);
    let member = members.remove(0);
    (member.client_ur_ls, member.peer_ur_ls)
}

fn address(url: &str) -> &str {
    url.strip_prefix("http://").unwrap_or_else(|| panic!("{url} is not a plain URL"))
}

fn http_status(url: &str, path: &str) -> u16 {
    let reply = harness::request(address(url), "GET", path, &[], "");
    reply.unwrap_or_else(|error| panic!("{url}: {error}")).status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_on_ports_that_the_system_chooses() {
    let dir = tempdir();
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
    first.process.kill();

    // The next process replaces the stale file; clients learn the new port, and the cluster keeps the peer URL.
    let mut second = member(dir.path(), &[]);
    let again = second.ports();
    let client = connect(&again).await;
    assert_eq!(client.get(Get::key("k")).await.expect("get").kvs[0].value, "v");
    assert_eq!(advertised(&client).await, (urls(&again, "client"), urls(&ports, "peer")));
    assert_eq!(again["metrics"], json!([]));
    assert!(!second.log().contains("recorded"), "no other member dials it:\n{}", second.log());
    // With a second member, which never starts, a changed peer port matters.
    client.member_add(vec!["http://127.0.0.1:1".into()], true).await.expect("add");
    second.stop();

    let mut third = member(dir.path(), &[]);
    connect(&third.ports()).await.get(Get::key("k")).await.expect("get");
    third.process.wait_log("the cluster records other peer URLs");
    third.stop();
}

#[test]
fn refused_starts_leave_the_data_dir_alone() {
    let refused = |more: &[&str]| {
        let dir = tempdir();
        let ended = member(dir.path(), more).process.wait_end();
        let log = ended.log;
        assert!(!ended.status.success(), "{log}");
        assert!(!dir.path().join("data").exists() && !dir.path().join("member.ports").exists(), "{log}");
        log
    };
    let log = refused(&["--initial-cluster", &format!("m={ANY},o={ANY}")]);
    assert!(log.contains("o=http://127.0.0.1:0: another member cannot be dialled at port 0"), "{log}");
    let log = refused(&["--listen-client-urls", "unix://x.sock"]);
    assert!(log.contains("--advertise-client-urls: http://127.0.0.1:0: port 0"), "{log}");
    let log = refused(&["--listen-peer-urls", "http://192.0.2.1:0"]);
    assert!(log.contains("192.0.2.1:0: bind"), "{log}");

    let dir = tempdir();
    let missing = dir.path().join("missing");
    let args = ["--data-dir", "data", "--ports-file", "missing/ports"].map(str::to_owned);
    let text = Output::of(Command::new(BINARY).args(args).current_dir(dir.path())).error();
    assert!(text.contains("--ports-file: failed to write missing/ports: No such file or directory"), "{text}");
    assert!(!dir.path().join("data").exists() && !missing.exists());
}

#[test]
fn a_playground_and_the_commands_that_follow_it() {
    let dir = tempdir();
    let mut playground = Listening::start(dir.path(), "playground", &["playground", "--listen", "127.0.0.1:0"]);
    let ports = playground.ports();
    let [api, store] = ["api", "client"].map(|kind| urls(&ports, kind).remove(0));
    let kubeconfig = fs::read_to_string(dir.path().join("lockgate.api/admin.kubeconfig")).expect("the kubeconfig");
    assert!(api.starts_with("https://127.0.0.1:") && kubeconfig.contains(&api), "{api}\n{kubeconfig}");

    let flags = ["apiserver", "--listen", "0.0.0.0:0", "--data-dir", "second", "--etcd-servers", &store];
    let mut apiserver = Listening::start(dir.path(), "apiserver", &flags);
    let ports = apiserver.ports();
    assert!(urls(&ports, "api")[0].starts_with("https://127.0.0.1:"), "{ports}");
    assert!(ports.get("client").is_none(), "{ports}");
    apiserver.stop();

    let flags = ["ofrep", "--listen", "127.0.0.1:0", "--no-feature-sets", "--store-endpoints", &store];
    let mut ofrep = Listening::start(dir.path(), "ofrep", &flags);
    let url = urls(&ofrep.ports(), "ofrep").remove(0);
    TcpStream::connect(address(&url)).expect("connect");
    ofrep.process.wait_log(address(&url));
    ofrep.stop();

    let gate =
        "[gate.A]\ndescription = \"d\"\nowner = \"o\"\ncontact = \"c\"\nenhancement = \"https://e\"\nsince = \"1.4\"\n";
    let gates = format!("schema = 1\nversion = \"1.4.0\"\n{gate}sets = []\n");
    fs::write(dir.path().join("gates.toml"), gates).expect("gates.toml");
    let flags = ["operator", "--release-version", "1.4.0", "--metrics-listen", "0.0.0.0:0"];
    let kubeconfig = ["--kubeconfig", "lockgate.api/admin.kubeconfig"];
    let mut operator = Listening::start(dir.path(), "operator", &[&flags[..], &kubeconfig].concat());
    let url = urls(&operator.ports(), "metrics").remove(0);
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert_eq!(http_status(&url, "/healthz"), 200);
    operator.stop();
    playground.stop();
}
