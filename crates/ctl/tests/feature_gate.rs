//! Cluster features through lockgatectl, on real members: output and exit codes.
//!
//! The server is the `lockgate` in the directory of the tool, or `LOCKGATE_BIN`.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{ETCD, Member, Output, Place, Port, Process, peer, skip, tempdir, until, until_some};

const TOOL: &str = env!("CARGO_BIN_EXE_lockgatectl");
const ON: &[&str] = &["--cluster-feature-gates", "AtomicIncrement=true"];
const OLD: [&str; 2] = ["--initial-cluster-version", "3.7"];

/// The time limit of a command that is expected to succeed, which a loaded machine does not reach.
const PATIENT: &str = "--command-timeout=60s";

/// The server's program, or `None` if the test is skipped.
fn lockgate() -> Option<PathBuf> {
    let sibling = Path::new(TOOL).with_file_name("lockgate");
    let path = env::var_os("LOCKGATE_BIN").map_or(sibling, PathBuf::from);
    if path.is_file() {
        return Some(path);
    }
    skip(&format!("{} is missing; run `cargo build -p lockgate` or set LOCKGATE_BIN", path.display()));
    None
}

/// A member that is alone in its cluster. It is declared before its place, so that it is dropped first.
struct Server {
    member: Member,
    place: Place,
}

impl Server {
    fn start(program: &Path, flags: &[&str]) -> Server {
        let place = Place::new(program);
        let member = place.start(&[flags, &["--unsafe-no-fsync"]].concat());
        Server { member, place }
    }

    fn lockgate(flags: &[&str]) -> Option<Server> {
        Some(Server::start(&lockgate()?, flags))
    }

    fn address(&self) -> &str {
        self.member.address()
    }

    fn restart(self, flags: &[&str]) -> Server {
        let Server { member, place } = self;
        member.kill();
        let member = place.start(&[flags, &["--unsafe-no-fsync"]].concat());
        Server { member, place }
    }
}

fn run(endpoint: &str, args: &[&str]) -> Output {
    let mut command = Command::new(TOOL);
    command.arg(format!("--endpoints={endpoint}")).env_clear();
    if !args.iter().any(|arg| arg.starts_with("--command-timeout")) {
        command.arg(PATIENT);
    }
    Output::of(command.args(args))
}

fn gate(endpoint: &str, args: &[&str]) -> Output {
    run(endpoint, &[&["endpoint", "featuregate"], args].concat())
}

/// Members agree on features some time after their start.
fn wait_on(endpoint: &str) {
    until("AtomicIncrement is on", || gate(endpoint, &["AtomicIncrement"]).code == Some(0));
}

#[test]
fn the_exit_code_says_whether_a_feature_is_on() {
    let Some(server) = Server::lockgate(ON) else { return };
    let at = server.address();
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

#[test]
fn no_error_ends_with_the_code_for_off() {
    let Some(server) = Server::lockgate(&[]) else { return };
    let nobody = Port::reserve();
    let (at, dead) = (server.address(), nobody.address());
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
fn all_features_are_listed_with_the_reasons_why_they_are_off() {
    let Some(server) = Server::lockgate(ON) else { return };
    let at = server.address();
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
    let Some(server) = Server::lockgate(&[ON, &OLD].concat()) else { return };
    // The version is decided some time after the start.
    let all = until_some("the cluster version is decided", || {
        let all = gate(server.address(), &[]);
        (!all.stdout.contains("is not decided yet")).then_some(all)
    });
    assert!(all.stdout.contains("cluster version 3.7 < 3.8"), "{}", all.stdout);
    assert_eq!(gate(server.address(), &["AtomicIncrement"]).code, Some(1));
}

#[test]
fn changes_are_listed_and_followed_over_a_restart() {
    let Some(server) = Server::lockgate(ON) else { return };
    let at = server.address().to_owned();
    wait_on(&at);
    let listed = gate(&at, &["history"]);
    assert!(listed.stdout.ends_with(": AtomicIncrement on: every voting member proposes on\n"), "{}", listed.stdout);
    let index: u64 = listed.stdout.split(':').next().unwrap().parse().unwrap();
    assert_eq!(gate(&at, &["history", "--from", &(index + 1).to_string()]).stdout, "");
    let json = gate(&at, &["history", "-w", "json"]).stdout;
    assert!(json.contains(&format!(r#"{{"index":{index},"cause":"AGREED""#)), "{json}");

    let dir = tempdir();
    let mut command = Command::new(TOOL);
    command.arg(format!("--endpoints={at}")).args(["endpoint", "featuregate", "history", "--follow"]);
    let mut follower = Process::start(command, &dir.path().join("follower.log"));
    follower.wait_log(&listed.stdout);
    let _server = server.restart(ON);
    let added = run(&at, &["member", "add", "m2", "--peer-urls=http://127.0.0.1:1"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    follower.wait_log(" was added and had not proposed\n");
    let log = follower.log();
    let changes: Vec<&str> = log.lines().filter(|line| line.contains(": AtomicIncrement ")).collect();
    assert_eq!(changes.len(), 2, "a restart repeats no change: {log}");
    assert_eq!(changes[0], listed.stdout.trim_end());
    assert!(changes[1].contains(": AtomicIncrement off: member "), "{log}");
}

#[test]
fn increments_print_the_sum() {
    let Some(server) = Server::lockgate(ON) else { return };
    let at = server.address();
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
fn an_increment_while_off_names_the_feature() {
    let Some(server) = Server::lockgate(&[]) else { return };
    let ended = run(server.address(), &["increment", "n"]);
    assert!(ended.stderr.contains("cluster feature AtomicIncrement is off"), "{}", ended.stderr);
    assert_eq!((ended.stdout.as_str(), ended.code), ("", Some(1)));
}

#[test]
fn adding_a_voter_warns_of_features_that_turn_off() {
    let Some(server) = Server::lockgate(ON) else { return };
    let at = server.address();
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
fn adding_a_voter_prints_no_warning_while_all_features_are_off() {
    let Some(server) = Server::lockgate(&[]) else { return };
    let voter = run(server.address(), &["member", "add", "v", "--peer-urls=http://127.0.0.1:2"]);
    assert_eq!((voter.stderr.as_str(), voter.code), ("", Some(0)));
}

#[test]
fn a_real_etcd_is_named_with_its_version() {
    let Some(etcd) = peer(&format!("etcd-{ETCD}"), "etcd") else { return };
    let server = Server::start(&etcd, &[]);
    let at = server.address();
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
