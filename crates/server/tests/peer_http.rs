//! Records and checks answers of a real etcd 3.7.3: the golden file that our own router is held to.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use harness::{Member, Place};

const TARGETS: &[&str] = &[
    "GET /health",
    "GET /health?serializable=true",
    "GET /health?exclude=NOSPACE",
    "GET /health?exclude=CORRUPT",
    "GET /health?serializable=false&exclude=",
    "GET /livez",
    "GET /livez?verbose",
    "GET /livez?verbose=true",
    "GET /livez/serializable_read",
    "GET /livez/serializable_read?verbose",
    "GET /livez?exclude=serializable_read&verbose",
    "GET /livez?exclude=nothing",
    "GET /livez/nothere",
    "GET /livez/data_corruption",
    "GET /readyz",
    "GET /readyz?verbose",
    "GET /readyz?exclude=data_corruption",
    "GET /readyz?verbose&exclude=linearizable_read&exclude=non_learner&exclude=data_corruption",
    "GET /readyz/data_corruption?verbose",
    "GET /readyz/data_corruption?exclude=data_corruption",
    "GET /readyz/linearizable_read",
    "GET /readyz/non_learner",
    "GET /readyz/serializable_read",
];

const HEALTHY_ONLY: &[&str] = &[
    "GET /version",
    "GET /version/",
    "GET /",
    "GET /nothing",
    "GET /healthz",
    "GET /health/",
    "GET /debug/pprof/",
    "GET /debug/requests",
    "GET /v2/keys",
    "POST /health",
    "POST /livez",
    "POST /readyz/non_learner",
    "POST /version",
    "POST /debug/vars",
    "PUT /health",
    "DELETE /readyz",
    "HEAD /health",
    "HEAD /livez",
    "HEAD /version",
    "OPTIONS /health",
    "OPTIONS /livez",
    "OPTIONS /metrics",
    "OPTIONS /nothing",
];

#[test]
fn answers_of_a_real_etcd() {
    let Some(etcd) = Etcd::start() else { return };
    let mut recorded =
        String::from("# Answers of etcd 3.7.3, recorded by tests/peer_http.rs; lines of bodies are sorted.\n\n");
    for target in TARGETS.iter().chain(HEALTHY_ONLY) {
        recorded += &etcd.record("healthy", target);
    }
    for (state, alarm) in [("nospace", "NOSPACE"), ("corrupt", "CORRUPT")] {
        etcd.alarm("ACTIVATE", alarm);
        for target in TARGETS {
            recorded += &etcd.record(state, target);
        }
        etcd.alarm("DEACTIVATE", alarm);
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/http/etcd-3.7-answers.txt");
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(&golden, &recorded).expect("the golden file");
    }
    assert_eq!(recorded, std::fs::read_to_string(&golden).unwrap_or_default(), "{}", golden.display());
}

/// The list of metric names holds all that a real server shows.
#[test]
fn metrics_of_a_real_etcd() {
    let Some(etcd) = Etcd::start() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/metrics/etcd-3.7-metrics.txt");
    let list = std::fs::read_to_string(path).expect("the list of metrics");
    let scrape = etcd.ask("GET", "/metrics", "");
    let mut seen = 0;
    for line in scrape.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let line = line.trim_end();
        if line.starts_with("go_") {
            continue;
        }
        seen += 1;
        let known = |row: &str| row == line || row.strip_prefix(line).is_some_and(|rest| rest.starts_with(' '));
        assert!(list.lines().any(known), "{line} is not in the list");
    }
    assert!(seen > 80, "only {seen} metrics in the scrape");
}

struct Etcd {
    member: Member,
    _place: Place,
}

impl Etcd {
    fn start() -> Option<Etcd> {
        let place = Place::new(harness::peer("etcd-3.7.3", "etcd")?);
        let etcd = Etcd { member: place.start(&[]), _place: place };
        harness::until("the storage version is written", || {
            etcd.ask("GET", "/version", "").contains("\"storage\":\"3.7.0\"")
        });
        Some(etcd)
    }

    fn alarm(&self, action: &str, alarm: &str) {
        let body = format!(r#"{{"action":"{action}","memberID":"1","alarm":"{alarm}"}}"#);
        let answer = self.ask("POST", "/v3/maintenance/alarm", &body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn record(&self, state: &str, target: &str) -> String {
        let (method, path) = target.split_once(' ').expect("a method and a path");
        let answer = self.ask(method, path, "").replace("3.7.3", "X.Y.Z").replace("3.7.0", "X.Y.0");
        let (head, body) = answer.split_once("\r\n\r\n").expect("headers and a body");
        let mut head = head.split("\r\n");
        let status = head.next().and_then(|line| line.split(' ').nth(1)).expect("a status");
        let skipped = ["date", "content-length", "connection"];
        let mut headers: Vec<String> = head
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .filter(|(name, _)| !skipped.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        headers.sort();
        let mut lines: Vec<&str> = body.split_inclusive('\n').collect();
        lines.sort_unstable();
        let lines: String = lines.iter().map(|line| format!("{line:?}\n")).collect();
        format!("## {state} {target}\n{status}\n{}{lines}\n", headers.concat())
    }

    /// HTTP/1.0 keeps bodies free of chunks.
    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let (host, length) = (self.member.address(), body.len());
        let mut stream = TcpStream::connect(host).expect("a connection");
        write!(stream, "{method} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer of etcd");
        answer.replacen("HTTP/1.0", "HTTP/1.1", 1)
    }
}
