//! Cluster features through lockgatectl, against real members: what it prints, and what its exit code says.
//!
//! The server is the `lockgate` that lies beside the tool, or `LOCKGATE_BIN`.

use crate::support;

use std::{
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use support::{Server, peer};

const TOOL: &str = env!("CARGO_BIN_EXE_lockgatectl");
const ON: &[&str] = &["--cluster-feature-gates", "AtomicIncrement=true"];
const OLD: [&str; 2] = ["--initial-cluster-version", "3.7"];

/// The server's program, or `None` after saying loudly why the test is skipped.
fn lockgate() -> Option<PathBuf> {
    let beside = Path::new(TOOL).with_file_name("lockgate");
    let path = env::var_os("LOCKGATE_BIN").map_or(beside, PathBuf::from);
    if path.is_file() {
        return Some(path);
    }
    let reason = format!("{} is missing; run `cargo build -p lockgate` or set LOCKGATE_BIN", path.display());
    assert!(env::var_os("LOCKGATE_REQUIRE_PEERS").is_none_or(|value| value != "1"), "{reason}");
    eprintln!("SKIPPED: {reason}");
    None
}

struct Ended {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn run(endpoint: &str, args: &[&str]) -> Ended {
    let output = Command::new(TOOL).arg(format!("--endpoints={endpoint}")).args(args).env_clear().output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

fn gate(endpoint: &str, args: &[&str]) -> Ended {
    run(endpoint, &[&["endpoint", "featuregate"], args].concat())
}

/// Members come to agree after they have started, so the first answers may be no.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came that {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn wait_on(endpoint: &str) {
    wait_until("AtomicIncrement is on", || gate(endpoint, &["AtomicIncrement"]).code == Some(0));
}

#[test]
fn one_feature_is_answered_by_the_exit_code() {
    let Some(lockgate) = lockgate() else { return };
    let server = Server::start_with(&lockgate, ON);
    let at = server.client.as_str();
    wait_on(at);
    for (args, stdout, code) in [
        (&["AtomicIncrement"][..], "true\n", 0),
        (&["AtomicIncrement", "--consistency=s"], "true\n", 0),
        (&["AtomicIncrement", "--cluster"], "true\n", 0),
        (&["PersistedLeaseCheckpoints"], "false\n", 1),
    ] {
        let ended = gate(at, args);
        assert_eq!((ended.stdout.as_str(), ended.code), (stdout, Some(code)), "{args:?}: {}", ended.stderr);
    }
    let off = gate(at, &["PersistedLeaseCheckpoints", "-w", "json"]);
    assert!(off.stdout.contains(r#""name":"PersistedLeaseCheckpoints","enabled":false"#), "{}", off.stdout);
    assert_eq!(off.code, Some(1));
}

/// Whatever goes wrong, it does not look like "off".
#[test]
fn no_error_ends_with_the_code_for_off() {
    let Some(lockgate) = lockgate() else { return };
    let server = Server::start(&lockgate);
    let (at, dead) = (server.client.as_str(), format!("127.0.0.1:{}", support::free_port()));
    let both = format!("{at},{dead}");
    for (endpoints, args, words) in [
        (at, &["Bogus"][..], "\"Bogus\" is no cluster feature at cluster version"),
        (at, &["A", "B"], "takes one feature name at most"),
        (at, &["--bogus"], "unknown flag: --bogus"),
        (at, &["AtomicIncrement", "--consistency=x"], "unknown consistency flag"),
        (at, &["AtomicIncrement", "--consistency"], "flag needs an argument"),
        (at, &["AtomicIncrement", "-w", "bogus"], "unsupported output format"),
        (at, &["history", "--from=x"], "invalid argument \"x\""),
        (at, &["history", "--follow", "-w", "table"], "table not supported"),
        (&dead, &["AtomicIncrement", "--command-timeout=300ms"], "Failed to get the feature gate of endpoint"),
        (&both, &["AtomicIncrement", "--command-timeout=300ms"], "Failed to get the feature gate of endpoint"),
        ("ftp://x:1", &["AtomicIncrement"], "cannot be used"),
    ] {
        let ended = gate(endpoints, args);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        assert!(ended.code.is_some_and(|code| code > 1), "{args:?} ended with {:?}", ended.code);
    }
}

#[test]
fn all_features_with_what_holds_them_off() {
    let Some(lockgate) = lockgate() else { return };
    let server = Server::start_with(&lockgate, ON);
    let at = server.client.as_str();
    wait_on(at);
    let simple = gate(at, &[]);
    let rows: Vec<Vec<&str>> = simple
        .stdout
        .lines()
        .filter(|line| line.starts_with('│'))
        .map(|line| line.split('│').map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let want: [&[&str]; 3] = [
        &["FEATURE", "STAGE", "ENABLED", "PROPOSALS", "HELD OFF BY"],
        &["AtomicIncrement", "ALPHA", "on", "m1: on"],
        &["PersistedLeaseCheckpoints", "ALPHA", "off", "m1: off", "member m1: flag says off"],
    ];
    assert_eq!(rows, want, "{}", simple.stdout);
    assert_eq!((gate(at, &["-w", "table"]).stdout, simple.code), (simple.stdout, Some(0)));

    let several = gate(&format!("{at},{at}"), &[]);
    assert_eq!(several.stdout.matches(at).count(), 4, "a row for each endpoint and feature: {}", several.stdout);
    let fields = gate(at, &["-w", "fields"]).stdout;
    assert!(fields.contains("\"HeldOffBy\" : \"held off by member m1: flag says off\"\n"), "{fields}");
    let json = gate(at, &["-w", "json"]).stdout;
    assert!(json.starts_with("[{\"Endpoint\":") && json.contains(r#""cluster_version":"3.8.0""#), "{json}");
    assert!(gate(at, &["-w", "protobuf"]).stdout.contains("AtomicIncrement"));
}

#[test]
fn a_cluster_version_that_is_too_low_is_named() {
    let Some(lockgate) = lockgate() else { return };
    let server = Server::start_with(&lockgate, &[ON, &OLD].concat());
    // The version is decided a moment after the start.
    let begin = Instant::now();
    let mut all = gate(&server.client, &[]);
    while all.stdout.contains("is not decided yet") && begin.elapsed() < Duration::from_secs(10) {
        all = gate(&server.client, &[]);
    }
    assert!(all.stdout.contains("cluster version 3.7 < 3.8"), "{}", all.stdout);
    assert_eq!(gate(&server.client, &["AtomicIncrement"]).code, Some(1));
}

#[test]
fn changes_are_listed_and_followed_over_a_restart() {
    let Some(lockgate) = lockgate() else { return };
    let mut server = Server::start_with(&lockgate, ON);
    let at = server.client.clone();
    wait_on(&at);
    let listed = gate(&at, &["history"]);
    assert!(listed.stdout.ends_with(": AtomicIncrement on: every voting member proposes on\n"), "{}", listed.stdout);
    let index: u64 = listed.stdout.split(':').next().unwrap().parse().unwrap();
    assert_eq!(gate(&at, &["history", "--from", &(index + 1).to_string()]).stdout, "");
    let json = gate(&at, &["history", "-w", "json"]).stdout;
    assert!(json.contains(&format!(r#"{{"index":{index},"cause":"AGREED""#)), "{json}");

    let endpoints = format!("--endpoints={at}");
    let mut follower = Command::new(TOOL)
        .args([&endpoints, "endpoint", "featuregate", "history", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), listed.stdout.trim_end());
    server.kill();
    server.run();
    run(&at, &["member", "add", "m2", "--peer-urls=http://127.0.0.1:1"]);
    let off = lines.next().unwrap();
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert!(off.contains("AtomicIncrement off: member ") && off.ends_with("was added and had not proposed"), "{off}");
}

#[test]
fn increments_print_the_sum() {
    let Some(lockgate) = lockgate() else { return };
    let server = Server::start_with(&lockgate, ON);
    let at = server.client.as_str();
    wait_on(at);
    for (args, stdout, words, code) in [
        (&["n"][..], "1\n", "", 0),
        (&["n", "5"], "6\n", "", 0),
        (&["n", "-2"], "4\n", "", 0),
        (&["--", "n", "-5"], "-1\n", "", 0),
        (&["n", "--", "-5"], "-6\n", "", 0),
        (&["n", "--min=-6", "-1"], "", "-7 would be below the minimum -6", 1),
        (&["n", "--max", "-6", "0"], "-6\n", "", 0),
        (&["n", "--max", "-6"], "", "-5 would be above the maximum -6", 1),
        (&["seats", "-1", "--initial=100", "--min=0"], "99\n", "", 0),
        (&["seats", "-1", "--initial=100", "--min=0"], "98\n", "", 0),
        (&["--", "-dash"], "1\n", "", 0),
        (&[""], "", "etcdserver: key is not provided", 1),
        (&[], "", "needs one argument as key", 128),
        (&["-5"], "", "unknown shorthand flag", 1),
        (&["n", "1", "2"], "", "needs one argument as key", 128),
        (&["n", "x"], "", "bad delta (strconv.ParseInt: parsing \"x\": invalid syntax)", 128),
        (&["n", "9223372036854775808"], "", "value out of range", 128),
        (&["n", "1", "-w", "table"], "", "table not supported as output format", 4),
    ] {
        let ended = run(at, &[&["increment"], args].concat());
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        assert_eq!((ended.stdout.as_str(), ended.code), (stdout, Some(code)), "{args:?}: {}", ended.stderr);
    }
    let json = run(at, &["increment", "zero", "0", "-w", "json"]).stdout;
    assert!(json.contains(r#""value":0,"created":true"#), "{json}");
    assert!(run(at, &["increment", "n", "-w", "fields"]).stdout.contains("\"Value\" : "));
    run(at, &["put", "word", "hello"]);
    let word = run(at, &["increment", "word"]);
    assert!(
        word.stderr.contains("the value of the key is \"hello\", which is not a decimal number"),
        "{}",
        word.stderr
    );
}

#[test]
fn an_increment_while_off_says_where_to_look() {
    let Some(lockgate) = lockgate() else { return };
    let server = Server::start(&lockgate);
    let ended = run(&server.client, &["increment", "n"]);
    assert!(ended.stderr.contains("cluster feature AtomicIncrement is off"), "{}", ended.stderr);
    assert_eq!((ended.stdout.as_str(), ended.code), ("", Some(1)));
}

#[test]
fn adding_a_voter_tells_what_goes_off() {
    let Some(lockgate) = lockgate() else { return };
    let server = Server::start_with(&lockgate, ON);
    let at = server.client.as_str();
    wait_on(at);
    let learner = run(at, &["member", "add", "l", "--learner", "--peer-urls=http://127.0.0.1:1"]);
    assert_eq!((learner.stderr.as_str(), learner.code), ("", Some(0)), "a learner turns nothing off");
    let voter = run(at, &["member", "add", "v", "--peer-urls=http://127.0.0.1:2"]);
    let lines: Vec<&str> = voter.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", voter.stderr);
    assert!(lines[0].starts_with("Warning: cluster feature AtomicIncrement is off until member v has started"));
    assert!(lines[1].contains("--learner"), "{}", voter.stderr);
    assert_eq!(voter.code, Some(0));
    assert!(voter.stdout.starts_with("Member ") && !voter.stdout.contains("AtomicIncrement"), "{}", voter.stdout);
    // The cluster has lost its quorum, so only the member at hand can say so.
    let off = gate(at, &["AtomicIncrement", "--consistency=s"]);
    assert_eq!((off.stdout.as_str(), off.code), ("false\n", Some(1)), "{}", off.stderr);
}

#[test]
fn adding_a_voter_says_nothing_when_nothing_is_on() {
    let Some(lockgate) = lockgate() else { return };
    let server = Server::start(&lockgate);
    let voter = run(&server.client, &["member", "add", "v", "--peer-urls=http://127.0.0.1:2"]);
    assert_eq!((voter.stderr.as_str(), voter.code), ("", Some(0)));
}

#[test]
fn a_real_etcd_is_named_with_its_version() {
    let Some(etcd) = peer("3.7.3", "etcd") else { return };
    let server = Server::start(&etcd);
    let at = server.client.as_str();
    for args in
        [&["endpoint", "featuregate"][..], &["endpoint", "featuregate", "X"], &["endpoint", "featuregate", "history"]]
    {
        let ended = run(at, args);
        assert!(ended.stderr.contains("this server has no cluster features: it is etcd 3.7.3"), "{}", ended.stderr);
        assert_eq!((ended.stdout.as_str(), ended.code), ("", Some(2)));
    }
    let ended = run(at, &["increment", "n"]);
    assert!(ended.stderr.contains("this server has no increments: it is etcd 3.7.3"), "{}", ended.stderr);
    assert_eq!(ended.code, Some(1));
    let voter = run(at, &["member", "add", "v", "--peer-urls=http://127.0.0.1:2"]);
    assert_eq!((voter.stderr.as_str(), voter.code), ("", Some(0)));
}
