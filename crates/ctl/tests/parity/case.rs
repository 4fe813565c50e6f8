//! The list of command lines.
//!
//! ```text
//! $ put key "a value"      a command line; words may be quoted with "…" or '…'
//! < a line                 for its standard input
//! input 90000              so many bytes for its standard input
//! env NAME=VALUE
//! open                     keep standard input open until the tool ends
//! lines 3                  keep standard input open, and kill the tool when it has printed so many lines
//! text some words          keep standard input open, and kill the tool when it has printed this
//! during put key 2         another command line of the same tool, once this one watches
//! remember LEASE           the first long hex number it prints, as {LEASE} in later lines
//! digits                   numbers, sizes and times may differ
//! loose                    runs of spaces and rules may differ in length
//! ignore stdout            only errors and the exit code count
//! sorted                   lines may come in any order
//! stop 2                   before the command, kill this member of the cluster (the first is 0)
//! run 2                    before the command, start it again
//! leaderless 0             before the command, wait until this member knows no leader
//! next second              before the command, wait until the clock shows another second
//! repeat                   run the command again until it succeeds
//! # comment
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

use harness::until;

#[derive(Default)]
pub(crate) struct Case {
    pub line: String,
    pub args: Vec<String>,
    pub stdin: String,
    pub env: Vec<(String, String)>,
    pub end: End,
    pub during: Vec<Vec<String>>,
    pub remember: Option<String>,
    pub digits: bool,
    pub loose: bool,
    pub ignore_stdout: bool,
    pub sorted: bool,
    pub before: Vec<Before>,
    pub repeat: bool,
}

/// The end of a command.
#[derive(Default)]
pub(crate) enum End {
    /// The tool ends by itself after the end of its input.
    #[default]
    Input,
    /// The tool ends by itself while its input is open.
    Open,
    /// The tool is killed when it has printed so many lines.
    Lines(usize),
    /// The tool is killed when it has printed this text.
    Text(String),
}

/// A step before a command.
pub(crate) enum Before {
    Stop(usize),
    Run(usize),
    Leaderless(usize),
    NextSecond,
}

/// Waits until the clock shows another second.
pub(crate) fn next_second() {
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let begin = second();
    until("the clock shows another second", || second() != begin);
}

pub(crate) fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(args) = line.strip_prefix('$') {
            cases.push(Case { line: line.to_owned(), args: words(args), ..Case::default() });
            continue;
        }
        let case = cases.last_mut().unwrap_or_else(|| panic!("{line:?} stands before the first command line"));
        match line.split_once(' ').unwrap_or((line, "")) {
            ("<", input) => case.stdin.extend([input, "\n"]),
            ("input", bytes) => case.stdin.push_str(&"x".repeat(bytes.parse().unwrap())),
            ("env", var) => {
                let (name, value) = var.split_once('=').unwrap_or_else(|| panic!("{line:?} has no value"));
                case.env.push((name.to_owned(), value.to_owned()));
            }
            ("open", _) => case.end = End::Open,
            ("lines", count) => case.end = End::Lines(count.parse().unwrap()),
            ("text", text) => case.end = End::Text(text.to_owned()),
            ("during", args) => case.during.push(words(args)),
            ("remember", name) => case.remember = Some(name.to_owned()),
            ("digits", _) => case.digits = true,
            ("loose", _) => case.loose = true,
            ("sorted", _) => case.sorted = true,
            ("stop", member) => case.before.push(Before::Stop(member.parse().unwrap())),
            ("run", member) => case.before.push(Before::Run(member.parse().unwrap())),
            ("leaderless", member) => case.before.push(Before::Leaderless(member.parse().unwrap())),
            ("next", "second") => case.before.push(Before::NextSecond),
            ("repeat", _) => case.repeat = true,
            ("ignore", "stdout") => case.ignore_stdout = true,
            _ => panic!("{line:?} is not understood"),
        }
    }
    cases
}

fn words(text: &str) -> Vec<String> {
    let (mut words, mut chars) = (Vec::new(), text.chars().peekable());
    while let Some(first) = chars.next() {
        match first {
            ' ' => {}
            '"' | '\'' => words.push(chars.by_ref().take_while(|c| *c != first).collect()),
            _ => {
                let mut word = String::from(first);
                while let Some(c) = chars.next_if(|c| *c != ' ') {
                    word.push(c);
                }
                words.push(word);
            }
        }
    }
    words
}
