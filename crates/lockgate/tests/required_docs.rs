//! The examples of docs/required-features.md, run unchanged: with the feature on, off, and against a real etcd.

use crate::common::place;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use harness::{ETCD, Member, Output, Place, skip, until};

/// The first block of a language in the page.
fn block(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/required-features.md");
    let page = fs::read_to_string(page).expect("docs/required-features.md");
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("no block in {language}"));
    rest.split_once("```\n").expect("an end of the block").0.to_owned()
}

/// Runs an example. Returns its exit code and its output.
fn run(program: &str, script: &str, member: &Member) -> (Option<i32>, String) {
    let output = Output::of(Command::new(program).args(["-c", script]).env("ENDPOINT", member.address()));
    (output.code, output.stdout + &output.stderr)
}

/// The examples whose programs are installed. The others are skipped.
fn examples() -> Vec<(&'static str, String)> {
    let is_there = |program: &str| {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success());
        if !found {
            skip(&format!("the example that needs {program} is not run: there is no such program"));
        }
        found
    };
    let all = [("curl", "sh", "sh"), ("python3", "python3", "python")];
    let there = all.into_iter().filter(|(needs, _, _)| is_there(needs));
    there.map(|(_, program, language)| (program, block(language))).collect()
}

fn wait_for_page(member: &Member, part: &str) {
    until(&format!("/feature-gates contains {part}"), || {
        member.request("GET", "/feature-gates", &[], "").body.contains(part)
    });
}

fn has_greeting(member: &Member) -> bool {
    member.request("POST", "/v3/kv/range", &[], r#"{"key":"Z3JlZXRpbmc="}"#).body.contains("aGVsbG8=")
}

#[test]
fn with_the_feature_on() {
    for (program, script) in examples() {
        let place = place();
        let member = place.start(&["--cluster-feature-gates=AtomicIncrement=true"]);
        wait_for_page(&member, r#""state": "on""#);
        let (code, text) = run(program, &script, &member);
        assert_eq!(code, Some(0), "{program}: {text}");
        assert!(text.contains("put, with AtomicIncrement on"), "{program}: {text}");
        assert!(has_greeting(&member), "{program}");
    }
}

#[test]
fn with_the_feature_off() {
    for (program, script) in examples() {
        let place = place();
        let member = place.start(&[]);
        // Before, the reason for the refusal is another one.
        wait_for_page(&member, r#""cluster_version": "3.8""#);
        let (code, text) = run(program, &script, &member);
        assert_eq!(code, Some(1), "{program}: {text}");
        assert!(text.contains("AtomicIncrement is off"), "{program}: {text}");
        assert!(!has_greeting(&member), "{program}");
    }
}

#[test]
fn against_a_real_etcd() {
    let Some(programs) = harness::etcd_dir(ETCD) else { return };
    let place = Place::new(programs.join("etcd"));
    let etcd = place.start(&[]);
    for (program, script) in examples() {
        let (code, text) = run(program, &script, &etcd);
        assert_eq!(code, Some(2), "{program}: {text}");
        assert!(text.contains("would ignore what is required"), "{program}: {text}");
    }
}

/// `cargo xtask interop` builds and runs the file.
#[test]
fn the_page_shows_the_go_program_of_the_interop_suite() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/go/required/main.go");
    assert_eq!(block("go"), fs::read_to_string(file).expect("interop/go/required/main.go"));
}
