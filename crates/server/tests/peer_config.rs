//! Refusals of the scripts in testdata/config against a real etcd 3.7.3: same exit code, same words.

use std::path::Path;
use std::process::Command;

use harness::{Port, Process};

/// Scripts whose refusals etcd shares, unless listed in `OWN`.
const SCRIPTS: &[&str] = &["flags", "env", "validation", "bootstrap"];

/// Inputs that we answer otherwise, with the reason.
const OWN: &[(&str, &str)] = &[
    ("--listen-clients-urls", "names the neighbour"),
    ("--initial-cluster-state=foo", "lists the choices"),
    ("--initial-cluster-state=existing", "cannot join"),
    ("--initial-cluster-version", "not a flag of etcd"),
    ("--lease-checkpoint-interval", "not a flag of etcd"),
    ("--metrics=foo", "etcd takes any word for basic"),
    ("--log-level=foo", "etcd panics"),
    ("--log-outputs=systemd/journal", "no journal"),
    ("--log-rotation-config-json={", "words of the JSON parser, compression"),
    ("--log-rotation-config-json='{\"maxsize\"", "words of the JSON parser, compression"),
    ("--auto-compaction-retention=5m", "etcd takes it for 300000000000 revisions"),
    ("--warning-apply-duration=-1s", "etcd takes it"),
    ("--backend-batch-limit=-1", "etcd takes it"),
    ("--experimental-", "names the successor"),
    ("--tls-min-version=TLS1.1", "refused when read"),
    ("--max-concurrent-streams=4294967296", "Go's strconv repeats the value"),
    ("ETCD_CONFIG_FILE", "names the file's part in it"),
    ("b=http://localhost:2381", "single member"),
    ("https://", "no TLS"),
    ("0.0.0.0", "the script has an address of its own for the machine"),
    ("http://localhost:2380,http://10.0.0.1:2380", "etcd prints the advertised URLs for those of the cluster"),
];

#[test]
fn refusals_of_a_real_etcd() {
    let Some(binary) = harness::peer("etcd-3.7.3", "etcd") else { return };
    // Some refusals come after etcd has opened its default ports.
    let ports = [2379, 2380].map(Port::exactly);
    let default_ports_are_free = ports.iter().all(Option::is_some);
    let mut compared = 0;
    for script in SCRIPTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/config/{script}.txt"));
        let text = std::fs::read_to_string(&path).expect("a script");
        for block in text.split("\n\n\n") {
            let Some((input, outcome)) = block.split_once("\n---\n") else { continue };
            let Some(refusal) = outcome.lines().find(|line| is_refusal(line)) else { continue };
            if input.contains("file:") || OWN.iter().any(|(known, _)| input.contains(known)) {
                continue;
            }
            let answer = run(&binary, input);
            if !default_ports_are_free && answer.contains("address already in use") {
                eprintln!("not compared, because a program listens on port 2379 or 2380: {input}");
                continue;
            }
            let (_, message) = refusal.split_once(": ").expect("a message");
            assert!(answer.contains(message), "{input}\nours:   {refusal}\netcd's: {answer}");
            if refusal.starts_with("exit 2") {
                assert!(answer.starts_with("exit 2"), "{input}: {answer}");
            } else {
                assert!(answer.starts_with("exit 1"), "{input}: {answer}");
            }
            compared += 1;
        }
    }
    assert!(compared > 40, "only {compared} refusals compared");
}

fn is_refusal(line: &str) -> bool {
    line.starts_with("exit ") || line.starts_with("no new cluster: ")
}

/// Exit code and all that etcd printed, with the escapes of its JSON undone.
fn run(binary: &Path, input: &str) -> String {
    let dir = harness::tempdir();
    let mut command = Command::new(binary);
    command.current_dir(dir.path()).env_clear();
    for line in input.lines() {
        if let Some(args) = line.strip_prefix("args:") {
            command.args(args.split_whitespace());
        } else if let Some((name, value)) = line.strip_prefix("env:").and_then(|env| env.trim().split_once('=')) {
            command.env(name, value);
        }
    }
    let mut etcd = Process::start(command, &dir.path().join("output"));
    // A refusal ends etcd at once. One that starts instead prints this line.
    let mut status = None;
    harness::until("etcd refuses or starts", || {
        status = etcd.status();
        status.is_some() || etcd.log().contains("now serving peer/client/metrics")
    });
    let Some(status) = status else { return "runs on".to_owned() };
    let code = status.code().unwrap_or(-1);
    // The variable of a conflict is a field of its own in etcd's log line.
    let text = etcd.log().replace("\\\"", "\"").replace("flag))\",\"environment-variable\":\"", "flag)): ");
    format!("exit {code}: {text}")
}
