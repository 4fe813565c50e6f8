//! Refusals, help and names of lockgatectl that etcdctl does not share. Needs no server.

use std::{os::unix::fs::symlink, process::Command};

use harness::{Output, tempdir};

fn run(args: &[&str], vars: &[(&str, &str)]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockgatectl"));
    ended(command.args(args).env_clear().envs(vars.iter().copied()))
}

fn ended(command: &mut Command) -> (String, String, Option<i32>) {
    let output = Output::of(command);
    (output.stdout, output.stderr, output.code)
}

#[test]
fn unsupported_flags_are_refused_by_name() {
    for (flags, word) in [
        (&["--cert=x"][..], "--cert: TLS"),
        (&["--key=x"], "--key: TLS"),
        (&["--cacert=x"], "--cacert: TLS"),
        (&["--insecure-transport=false"], "--insecure-transport=false: TLS"),
        (&["--insecure-skip-tls-verify"], "--insecure-skip-tls-verify: TLS"),
        (&["--endpoints=https://127.0.0.1:1"], "\"https://127.0.0.1:1\" cannot be used: TLS"),
        (&["--endpoints=unix:///run/etcd"], "unix sockets"),
        (&["--discovery-srv=example.com"], "--discovery-srv: discovery"),
    ] {
        let args: Vec<&str> = flags.iter().copied().chain(["put", "a", "b"]).collect();
        let (stdout, stderr, code) = run(&args, &[]);
        assert!(stderr.contains(word), "{flags:?}: {stderr}");
        assert_eq!((stdout.as_str(), code), ("", Some(128)), "{flags:?}");
    }
}

#[test]
fn rejects_a_flag_next_to_its_variable() {
    let (_, stderr, code) = run(&["-w", "json", "get", "a"], &[("ETCDCTL_WRITE_OUT", "table")]);
    assert!(stderr.contains("ETCDCTL_WRITE_OUT") && stderr.contains("conflicting environment variable"), "{stderr}");
    assert_eq!(code, Some(1));
    let (_, stderr, code) = run(&["get", "a"], &[("ETCDCTL_COMMAND_TIMEOUT", "soon")]);
    assert!(stderr.contains("time: invalid duration \"soon\""), "{stderr}");
    assert_eq!(code, Some(1));
}

#[test]
fn secrets_are_not_printed_with_the_settings() {
    let (_, stderr, _) = run(&["--debug", "get", "a"], &[("ETCDCTL_PASSWORD", "secret")]);
    assert!(stderr.contains("ETCDCTL_PASSWORD=…") && !stderr.contains("secret"), "{stderr}");
}

#[test]
fn help_is_grouped_and_names_more_help() {
    for args in [&[][..], &["--help"], &["help"]] {
        let (stdout, _, code) = run(args, &[]);
        assert_eq!(code, Some(0), "{args:?}");
        let places = ["Keys:", "  put ", "Cluster:", "  member ", "Other:", "  version ", "Example: ", "ctl options`"];
        let found: Vec<Option<usize>> = places.iter().map(|place| stdout.find(place)).collect();
        assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?} in {stdout}");
    }
    let (stdout, _, _) = run(&["options"], &[]);
    assert!(stdout.contains("--endpoints") && stdout.contains("--write-out"), "{stdout}");
}

#[test]
fn an_unknown_command_gets_a_suggestion() {
    let (_, stderr, code) = run(&["wach"], &[]);
    assert!(stderr.starts_with("Error: unknown command \"wach\" for \"lockgatectl\"\n"), "{stderr}");
    assert!(stderr.contains("Did you mean this?\n\twatch\n"), "{stderr}");
    assert_eq!(code, Some(1));
    let (_, stderr, _) = run(&["lease", "bogus"], &[]);
    assert!(stderr.starts_with("Error: unknown command \"bogus\" for \"lockgatectl lease\"\n"), "{stderr}");
}

#[test]
fn a_link_named_etcdctl_prints_etcdctl_as_its_name() {
    let dir = tempdir();
    let link = dir.path().join("etcdctl");
    symlink(env!("CARGO_BIN_EXE_lockgatectl"), &link).unwrap();
    let (stdout, _, code) = ended(Command::new(&link).arg("version"));
    let minor = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!((stdout, code), (format!("etcdctl version: {version}\nAPI version: {minor}\n"), Some(0)));
    let (stdout, _, _) = ended(Command::new(&link).args(["completion", "bash"]));
    assert!(stdout.contains("_etcdctl"), "{stdout}");
}
