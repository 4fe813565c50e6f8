//! `lockgate ofrep` of a store that does not run yet, switches a feature, and stops.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::Command,
};

use harness::{Output, Place, Process, TempDir, request, until, wait_max};
use serde_json::{Value, json};

const LOCKGATE: &str = env!("CARGO_BIN_EXE_lockgate");
const KEY: &str = "/ofrep/v1/evaluate/flags/store.AtomicIncrement";
const ALL: &str = "/ofrep/v1/evaluate/flags";

struct Ofrep {
    _process: Process,
    address: String,
    _dir: TempDir,
}

impl Ofrep {
    /// Starts `lockgate ofrep` for a store, which need not run yet.
    #[track_caller]
    fn start(store: &str) -> Ofrep {
        let dir = harness::tempdir();
        let ports = dir.path().join("ports");
        let mut command = Command::new(LOCKGATE);
        command.args(["ofrep", "--listen", "127.0.0.1:0", "--no-feature-sets", "--store-endpoints", store]);
        command.arg("--ports-file").arg(&ports);
        let mut process = Process::start(command, &dir.path().join("log"));
        let url = process.wait_ports(&ports)["ofrep"][0].clone();
        let address = url.as_str().and_then(|url| url.strip_prefix("http://")).expect("a plain URL").to_owned();
        Ofrep { _process: process, address, _dir: dir }
    }

    #[track_caller]
    fn ask(&self, path: &str) -> (u16, Value) {
        let reply = request(&self.address, "POST", path, &[], "").expect("an answer");
        let body = serde_json::from_str(&reply.body).unwrap_or_else(|_| panic!("no JSON: {}", reply.body));
        (reply.status, body)
    }

    /// A stream of events, after its headers.
    #[track_caller]
    fn events(&self) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).expect("connect");
        stream.set_read_timeout(Some(wait_max())).expect("a time limit");
        let request = "GET /ofrep/v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("ask");
        let mut lines = BufReader::new(stream);
        next_line(&mut lines, |line| line == "\r\n");
        lines
    }
}

/// Reads up to the first line for which `is_wanted` is true.
#[track_caller]
fn next_line(lines: &mut BufReader<TcpStream>, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(lines.read_line(&mut line).expect("a line"), 0, "the stream has ended");
        if is_wanted(&line) {
            return line;
        }
    }
}

#[test]
fn a_store_that_starts_switches_a_feature_and_stops() {
    let place = Place::new(LOCKGATE);
    let ofrep = Ofrep::start(&place.address());
    // The store does not run yet: an error that names the cause, and no empty list.
    for path in [KEY, ALL] {
        let (status, said) = ofrep.ask(path);
        let details = said["errorDetails"].as_str().expect("details");
        assert_eq!(status, 500, "{said}");
        assert!(details.starts_with("cluster features of the store are not known: "), "{details}");
    }
    until("the error names the store", || {
        ofrep.ask(KEY).1["errorDetails"].as_str().is_some_and(|details| details.contains(&place.address()))
    });

    let member = place.start(&[]);
    let off = |said: &Value| said["metadata"]["heldOffBy"] == "held off by member m1: flag says off";
    until("the feature is off, with the reason", || off(&ofrep.ask(KEY).1));
    let (status, said) = ofrep.ask(KEY);
    assert_eq!((status, &said["value"], &said["metadata"]["clusterVersion"]), (200, &json!(false), &json!("3.8.0")));
    let (status, said) = ofrep.ask(ALL);
    let keys: Vec<&Value> = said["flags"].as_array().expect("flags").iter().map(|flag| &flag["key"]).collect();
    assert!(status == 200 && keys.contains(&&json!("store.PersistedLeaseCheckpoints")), "{said}");

    // The store stops: its last answer, marked as stale. It starts with another flag: on, and not stale.
    let mut events = ofrep.events();
    assert_eq!(member.stop().by_signal(), Some(15));
    until("the answer is stale", || ofrep.ask(KEY).1["metadata"]["stale"] == true);
    assert_eq!(ofrep.ask(KEY).1["value"], json!(false));
    let event = next_line(&mut events, |line| line.starts_with("data: "));
    assert_eq!(event.trim(), r#"data: {"type":"refetchEvaluation"}"#);
    let _member = place.start(&["--cluster-feature-gates", "AtomicIncrement=true"]);
    until("the feature is on", || ofrep.ask(KEY).1["value"] == true);
    let (status, said) = ofrep.ask(KEY);
    let want =
        json!({"level": "cluster", "stage": "ALPHA", "clusterVersion": "3.8.0", "default": false, "locked": false});
    assert_eq!((status, &said["metadata"]), (200, &want));
}

#[test]
fn invalid_flags_are_refused() {
    for (flags, part) in [
        (&["--no-feature-sets"][..], "--store-endpoints"),
        (&["--no-feature-sets", "--store-endpoints", "https://127.0.0.1:1"], "TLS is not supported yet"),
        (&["--no-feature-sets", "--store-endpoints", "127.0.0.1:1", "--tls-cert-file", "x"], "--tls-private-key-file"),
        (&["--no-feature-sets", "--store-endpoints", "127.0.0.1:1", "--token-file", "/nowhere"], "/nowhere"),
    ] {
        let said = Output::of(Command::new(LOCKGATE).args(["ofrep", "--listen", "127.0.0.1:0"]).args(flags)).error();
        assert!(said.contains(part), "{flags:?}: {said}");
    }
}
