//! The examples of docs/required-features.md, run as they stand there: with the feature on, off, and against a real etcd.

use crate::common;

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use common::{Place, etcd::Etcd, plain_http::ask};

/// The first block of a language in the page.
fn block(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/required-features.md");
    let page = fs::read_to_string(page).expect("docs/required-features.md");
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("no block in {language}"));
    rest.split_once("```\n").expect("an end of the block").0.to_owned()
}

/// Exit code and all it said.
fn run(program: &str, script: &str, endpoint: &str) -> (Option<i32>, String) {
    let output = Command::new(program).args(["-c", script]).env("ENDPOINT", endpoint).output().expect(program);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// The examples whose programs are there. One that is not is named loudly, and an error where all peers must be there.
fn examples() -> Vec<(&'static str, String)> {
    let is_there = |program: &str| {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success());
        let reason = format!("the example that needs {program} is not run: there is no such program");
        assert!(found || env::var_os("LOCKGATE_REQUIRE_PEERS").is_none_or(|value| value != "1"), "{reason}");
        if !found {
            eprintln!("SKIPPED: {reason}");
        }
        found
    };
    let all = [("curl", "sh", "sh"), ("python3", "python3", "python")];
    let there = all.into_iter().filter(|(needs, _, _)| is_there(needs));
    there.map(|(_, program, language)| (program, block(language))).collect()
}

fn wait_until_on(member: &common::Member) {
    let begin = Instant::now();
    loop {
        let (_, page) = ask(member, "GET", "/feature-gates", &[], "");
        if page.contains("\"state\": \"on\"") {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "never on: {page}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn greeting_is_there(member: &common::Member) -> bool {
    ask(member, "POST", "/v3/kv/range", &[], r#"{"key":"Z3JlZXRpbmc="}"#).1.contains("aGVsbG8=")
}

#[test]
fn with_the_feature_on() {
    for (program, script) in examples() {
        let place = Place::new();
        let member = place.start(&["--cluster-feature-gates=AtomicIncrement=true"]);
        wait_until_on(&member);
        let (code, text) = run(program, &script, &format!("127.0.0.1:{}", member.port));
        assert_eq!(code, Some(0), "{program}: {text}");
        assert!(text.contains("put, with AtomicIncrement on"), "{program}: {text}");
        assert!(greeting_is_there(&member), "{program}");
    }
}

#[test]
fn with_the_feature_off() {
    for (program, script) in examples() {
        let place = Place::new();
        let member = place.start(&[]);
        let (code, text) = run(program, &script, &format!("127.0.0.1:{}", member.port));
        assert_eq!(code, Some(1), "{program}: {text}");
        assert!(text.contains("AtomicIncrement is off"), "{program}: {text}");
        assert!(!greeting_is_there(&member), "{program}");
    }
}

#[test]
fn against_a_real_etcd() {
    let Some(etcd) = Etcd::start_at(common::free_port()) else { return };
    for (program, script) in examples() {
        let (code, text) = run(program, &script, &format!("127.0.0.1:{}", etcd.port));
        assert_eq!(code, Some(2), "{program}: {text}");
        assert!(text.contains("would ignore what is required"), "{program}: {text}");
    }
}

/// `cargo xtask interop` builds and runs that file.
#[test]
fn the_page_shows_the_go_program_that_is_run() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/go/required/main.go");
    assert_eq!(block("go"), fs::read_to_string(file).expect("interop/go/required/main.go"));
}
