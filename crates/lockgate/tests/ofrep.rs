//! `lockgate ofrep` of a store: one that is not there yet, one that switches a feature, one that goes away.

use crate::common;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use common::{BINARY, Place, free_port};
use serde_json::{Value, json};

const WAIT_MAX: Duration = Duration::from_secs(60);
const KEY: &str = "/ofrep/v1/evaluate/flags/store.AtomicIncrement";
const ALL: &str = "/ofrep/v1/evaluate/flags";

/// Ends with the test.
struct Ofrep {
    child: Child,
    port: u16,
}

impl Drop for Ofrep {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ofrep {
    fn start(store: u16) -> Ofrep {
        let port = free_port();
        let (listen, store) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{store}"));
        let child = Command::new(BINARY)
            .args(["ofrep", "--listen", &listen, "--no-feature-sets", "--store-endpoints", &store])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start the binary");
        let ofrep = Ofrep { child, port };
        ofrep.until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        ofrep
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connect");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a time limit");
        stream.write_all(request.as_bytes()).expect("ask");
        stream
    }

    fn ask(&self, path: &str) -> (u16, Value) {
        let request = format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        let mut text = String::new();
        self.send(&request).read_to_string(&mut text).expect("answer");
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {text}")))
    }

    /// A stream of events, after its headers.
    fn events(&self) -> BufReader<TcpStream> {
        let request = "GET /ofrep/v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n";
        let mut lines = BufReader::new(self.send(request));
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).expect("headers");
        }
        lines
    }

    #[track_caller]
    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(begin.elapsed() < WAIT_MAX, "waited too long until {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_store_that_comes_switches_and_goes() {
    let place = Place::new();
    let port = free_port();
    let ofrep = Ofrep::start(port);
    // Nobody there yet: an error that names the cause, and no empty list.
    for path in [KEY, ALL] {
        let (status, said) = ofrep.ask(path);
        let details = said["errorDetails"].as_str().expect("details");
        assert_eq!(status, 500, "{said}");
        assert!(details.starts_with("cluster features of the store are not known: "), "{details}");
    }
    ofrep.until("the cause is told", || {
        ofrep.ask(KEY).1["errorDetails"].as_str().is_some_and(|details| details.contains(&format!("127.0.0.1:{port}")))
    });

    let member = place.start_at(port, &[]);
    let off = |said: &Value| said["metadata"]["heldOffBy"] == "held off by member m1: flag says off";
    ofrep.until("it is off, with the reason", || off(&ofrep.ask(KEY).1));
    let (status, said) = ofrep.ask(KEY);
    assert_eq!((status, &said["value"], &said["metadata"]["clusterVersion"]), (200, &json!(false), &json!("3.8.0")));
    let (status, said) = ofrep.ask(ALL);
    let keys: Vec<&Value> = said["flags"].as_array().expect("flags").iter().map(|flag| &flag["key"]).collect();
    assert!(status == 200 && keys.contains(&&json!("store.PersistedLeaseCheckpoints")), "{said}");

    // Gone: its last answer, marked stale; then back with another flag: on, and not stale.
    let mut events = ofrep.events();
    assert!(member.stop().by_signal());
    ofrep.until("the answer is stale", || ofrep.ask(KEY).1["metadata"]["stale"] == true);
    assert_eq!(ofrep.ask(KEY).1["value"], json!(false));
    let mut event = String::new();
    while !event.starts_with("data: ") {
        event.clear();
        events.read_line(&mut event).expect("an event");
    }
    assert_eq!(event.trim(), r#"data: {"type":"refetchEvaluation"}"#);
    let _member = place.start_at(port, &["--cluster-feature-gates", "AtomicIncrement=true"]);
    ofrep.until("it is on", || ofrep.ask(KEY).1["value"] == true);
    let (status, said) = ofrep.ask(KEY);
    let want =
        json!({"level": "cluster", "stage": "ALPHA", "clusterVersion": "3.8.0", "default": false, "locked": false});
    assert_eq!((status, &said["metadata"]), (200, &want));
}

#[test]
fn flags_that_cannot_be_meant() {
    for (flags, part) in [
        (&["--no-feature-sets"][..], "--store-endpoints"),
        (&["--no-feature-sets", "--store-endpoints", "https://127.0.0.1:1"], "TLS is not supported yet"),
        (&["--no-feature-sets", "--store-endpoints", "127.0.0.1:1", "--tls-cert-file", "x"], "--tls-private-key-file"),
        (&["--no-feature-sets", "--store-endpoints", "127.0.0.1:1", "--token-file", "/nowhere"], "/nowhere"),
    ] {
        let listen = format!("127.0.0.1:{}", free_port());
        let ended = Command::new(BINARY).args(["ofrep", "--listen", &listen]).args(flags).output().expect("run");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && said.contains(part), "{flags:?}: {said}");
    }
}
