//! Real etcdutl and lockgateutl compared: every command line of `parity.txt` runs through both, each on its own copy of
//! the files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{ETCD, Output, TempDir, tempdir};

use crate::support::{Member, etcd, lockgateutl, made, restore};

/// The parts of the two outputs that must be equal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Same,
    AnyOrder,
    Longer,
    Help,
    Better,
}

struct Side {
    tool: PathBuf,
    dir: TempDir,
}

#[test]
fn command_lines_print_the_same_and_end_the_same() {
    let Some(etcdutl) = etcd(ETCD, "etcdutl") else { return };
    let first = tempdir();
    make_files(first.path(), &etcdutl);
    let sides = [etcdutl, lockgateutl()].map(|tool| Side::new(tool, first.path()));
    let lines = include_str!("parity.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut all, mut differences) = (0, Vec::new());
    for line in lines {
        let (mode, args) = parse(line);
        let [expected, found] = [0, 1].map(|side| sides[side].run(&args));
        if !agree(mode, &expected, &found) {
            differences.push(format!("{line}\n--- etcdutl\n{expected:?}\n--- lockgateutl\n{found:?}\n"));
        }
        all += 1;
    }
    let bad = differences.len();
    assert!(differences.is_empty(), "{bad} of {all} command lines differ:\n\n{}", differences.join("\n"));
    println!("{all} command lines agree");
}

fn make_files(dir: &Path, etcdutl: &Path) {
    let member = Member::lockgate(&dir.join("first"), &["--initial-cluster-version", "3.7"]);
    member.fill();
    member.wait_versioned();
    let snapshot = dir.join("s.db");
    member.snapshot(&snapshot);
    member.stop();
    fs::remove_dir_all(dir.join("first")).unwrap();
    restore(etcdutl, &snapshot, &dir.join("d"), &[]).ok();
    let bytes = fs::read(&snapshot).unwrap();
    let without_hash = &bytes[..bytes.len() - 32];
    // The end of a page belongs to no element, so the hash is wrong and the pages are sound.
    let mut bad = bytes.clone();
    bad[without_hash.len() - 1] ^= 1;
    for (name, contents) in [
        ("text", &b"no database, whatever it may look like\n".repeat(1000)[..]),
        ("cut.db", &bytes[..3 * 4096]),
        ("bad.db", &bad),
        ("nohash.db", without_hash),
        ("empty", b""),
    ] {
        fs::write(dir.join(name), contents).unwrap();
    }
}

fn parse(line: &str) -> (Mode, Vec<String>) {
    let (mark, rest) = line.split_at(1);
    let mode = match mark {
        "$" => Mode::Same,
        "*" => Mode::AnyOrder,
        "~" => Mode::Longer,
        "%" => Mode::Help,
        "!" => Mode::Better,
        _ => panic!("{line:?} is not understood"),
    };
    (mode, rest.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect())
}

impl Side {
    fn new(tool: PathBuf, files: &Path) -> Side {
        let dir = tempdir();
        made::copy(files, dir.path());
        Side { tool, dir }
    }

    fn run(&self, args: &[String]) -> Output {
        // etcdutl writes to a file that it hashes, which then no longer has its hash.
        let kept = self.dir.path().join("s.db");
        let before = fs::read(&kept).unwrap();
        let output = Output::of(Command::new(&self.tool).args(args).current_dir(self.dir.path()));
        fs::write(kept, before).unwrap();
        let renamed = |text: &str| text.replace("lockgateutl", "etcdutl");
        let stderr = renamed(&output.stderr);
        let mut errors: Vec<&str> = stderr.lines().filter(|line| line.starts_with("Error: ")).collect();
        // Cobra prints the error of a command line before and after the usage.
        errors.dedup();
        Output { code: output.code, stdout: renamed(&output.stdout), stderr: errors.join("\n") }
    }
}

fn agree(mode: Mode, expected: &Output, found: &Output) -> bool {
    let same_code = expected.code == found.code;
    match mode {
        Mode::Same => {
            same_code
                && without_version(&expected.stdout) == without_version(&found.stdout)
                && expected.stderr == found.stderr
        }
        Mode::AnyOrder => {
            same_code
                && expected.stdout == found.stdout
                && sorted_words(&expected.stderr) == sorted_words(&found.stderr)
        }
        Mode::Longer => same_code && expected.stdout == found.stdout && found.stderr.starts_with(&expected.stderr),
        Mode::Help => same_code && !expected.stdout.is_empty() && !found.stdout.is_empty() && found.stderr.is_empty(),
        Mode::Better => found.code == Some(1) && found.stdout.is_empty() && found.stderr.starts_with("Error: "),
    }
}

fn sorted_words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split([' ', ',']).collect();
    words.sort_unstable();
    words
}

/// `version` prints the version of each tool.
fn without_version(stdout: &str) -> String {
    let lines = stdout.lines().map(|line| line.split_once("version: ").map_or(line, |parts| parts.0));
    lines.collect::<Vec<_>>().join("\n")
}
