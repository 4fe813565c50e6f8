//! Scripts of command lines, variables and files with their outcome, and goldens made from the table.

use std::fmt::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::*;

/// One `args:`/`env:`/`file:` block and the outcome below its `---`.
#[derive(Default)]
struct Case {
    comments: Vec<String>,
    args: Option<String>,
    env: Vec<String>,
    file: Option<String>,
    show_all: bool,
}

#[test]
fn scripts() {
    for name in ["flags", "env", "file", "validation", "unsupported", "bootstrap"] {
        let path = testdata().join(format!("config/{name}.txt"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        let mut actual = String::new();
        for block in text.split("\n\n\n") {
            let input = block.split("\n---").next().unwrap_or_default().trim_end();
            let outcome = run(&read_case(input));
            let _ = write!(actual, "{}{input}\n---\n{outcome}", if actual.is_empty() { "" } else { "\n\n" });
        }
        compare(&path, &actual);
    }
}

#[test]
fn help_and_version() {
    compare(&testdata().join("config/help.golden"), &help_text());
    let version = version_text(Some("abc"));
    let lines: Vec<&str> = version.lines().collect();
    assert_eq!(lines[0], "etcd Version: 3.8.0");
    assert_eq!(lines[1], "Git SHA: abc");
    assert_eq!(lines[2], "Lockgate Version: 3.8.0");
}

#[test]
fn page_of_flags() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/flags.md");
    compare(&page, &flags_page());
}

/// Every name that `etcd --help` of 3.7 prints is in the table or refused on purpose.
#[test]
fn names_of_etcd() {
    let names = std::fs::read_to_string(testdata().join("etcd-3.7-flags.txt")).expect("list of etcd's flags");
    let missing: Vec<&str> = names.lines().filter(|name| table::find(name).is_none()).collect();
    assert_eq!(missing, ["discovery", "discovery-proxy"], "etcd prints these in its help but does not take them");
}

/// Loops wait for these durations between two rounds.
#[test]
fn durations_have_a_least_value() {
    let config = |value: &str| {
        let args = table::flags().filter(|flag| flag.least.is_some()).map(|flag| format!("--{}={value}", flag.name));
        match Config::from_args_on(&args.collect::<Vec<_>>(), &[], machine) {
            Ok(Parsed::Run(config)) => {
                let raised = config.notices.iter().filter(|notice| matches!(notice, Notice::TooShort { .. })).count();
                (config.watch_progress_notify_interval, config.corrupt_check_time, config.downgrade_check_time, raised)
            }
            other => panic!("{other:?}"),
        }
    };
    let (least, more) = (Duration::from_millis(100), Duration::from_millis(101));
    assert_eq!(config("1ns"), (least, Some(least), Some(least), 4));
    assert_eq!(config("100ms"), (least, Some(least), Some(least), 0));
    assert_eq!(config("101ms"), (more, Some(more), Some(more), 0));
}

/// As in etcd, 0 turns these checks off.
#[test]
fn zero_is_never() {
    let args = ["--downgrade-check-time=0s", "--corrupt-check-time=0s"].map(str::to_owned);
    let Ok(Parsed::Run(config)) = Config::from_args_on(&args, &[], machine) else { panic!("refused") };
    assert_eq!((config.downgrade_check_time, config.corrupt_check_time), (None, None));
}

proptest::proptest! {
    /// Whatever is typed, the answer is a configuration or a refusal.
    #[test]
    fn no_input_panics(flag in "-{0,3}[a-z-]{0,20}", value in ".{0,40}", text in "(?s).{0,200}") {
        let _ = Config::from_args_on(&[format!("{flag}={value}"), value.clone()], &[], machine);
        for flag in table::flags().filter(|flag| flag.name != "config-file") {
            let _ = value::Value::parse(flag.kind, &value);
        }
        let env = [("ETCD_INITIAL_CLUSTER".to_owned(), value.clone())];
        if let Ok(Parsed::Run(config)) = Config::from_args_on(&[], &env, machine) {
            let _ = config.verify_bootstrap();
        }
        let _ = file::parse(Path::new("x"), &text, &mut Vec::new());
        let _ = file::parse(Path::new("x"), &format!("name: {value}\n{flag}: {value}\n"), &mut Vec::new());
    }
}

fn read_case(input: &str) -> Case {
    let mut case = Case::default();
    for line in input.trim_start_matches('\n').lines() {
        if let Some(args) = line.strip_prefix("args:") {
            case.args = Some(args.trim().to_owned());
        } else if let Some(env) = line.strip_prefix("env:") {
            case.env.push(env.trim().to_owned());
        } else if line == "file:" {
            case.file = Some(String::new());
        } else if line == "show: all" {
            case.show_all = true;
        } else if let Some(file) = case.file.as_mut() {
            let _ = writeln!(file, "{}", line.strip_prefix("  ").unwrap_or(line));
        } else if line.starts_with('#') {
            case.comments.push(line.to_owned());
        } else {
            panic!("not a line of a script: {line:?}");
        }
    }
    case
}

fn run(case: &Case) -> String {
    let dir = harness::tempdir();
    let mut args = split_words(case.args.as_deref().unwrap_or_default());
    if let Some(file) = &case.file {
        let path = dir.path().join("etcd.yml");
        std::fs::write(&path, file).expect("a config file");
        args.push(format!("--config-file={}", path.display()));
    }
    let env: Vec<(String, String)> =
        case.env.iter().filter_map(|e| e.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let outcome = match Config::from_args_on(&args, &env, machine) {
        Ok(Parsed::Help(_)) => "help\n".to_owned(),
        Ok(Parsed::Version) => "version\n".to_owned(),
        Ok(Parsed::Run(config)) if case.show_all => format!("{config:#?}\n"),
        Ok(Parsed::Run(config)) => show(&config),
        Err(err) => format!("exit {}: {err}\n", err.exit_code()),
    };
    outcome.replace(&dir.path().display().to_string(), "DIR")
}

fn machine() -> Option<IpAddr> {
    Some(IpAddr::from([10, 9, 8, 7]))
}

fn show(config: &Config) -> String {
    let mut text = String::new();
    for (flag, value) in &config.changed {
        let _ = writeln!(text, "--{flag}={value}");
    }
    for notice in config.notices.iter().filter(|notice| !is_common(notice)) {
        let _ = writeln!(text, "{notice:?}");
    }
    match config.verify_bootstrap() {
        Ok(cluster) => {
            let members = cluster.members.iter().map(|(name, urls)| format!("{name}={}", url::join(urls)));
            let members = members.collect::<Vec<_>>().join(" ");
            let _ = writeln!(text, "{:?} cluster {members} token {}", cluster.state, cluster.token);
        }
        Err(err) => {
            let _ = writeln!(text, "no new cluster: {err}");
        }
    }
    text
}

fn is_common(notice: &Notice) -> bool {
    matches!(notice, Notice::SinglePort | Notice::DefaultName { .. } | Notice::DataDir { .. })
}

/// Words as a shell splits them, with single quotes.
fn split_words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut open, mut quoted) = (false, false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                open = false;
                continue;
            }
            _ => {}
        }
        if !open {
            words.push(String::new());
            open = true;
        }
        if let (Some(word), true) = (words.last_mut(), c != '\'') {
            word.push(c);
        }
    }
    words
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

fn compare(path: &Path, actual: &str) {
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("the directory of a golden file");
        std::fs::write(path, actual).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected != actual {
        let at = expected.lines().zip(actual.lines()).position(|(e, a)| e != a).unwrap_or(0);
        let line = |text: &str| text.lines().nth(at).unwrap_or("<end>").to_owned();
        panic!(
            "{} differs from line {}:\nexpected: {}\nactual:   {}\n(UPDATE_GOLDENFILES=1 rewrites it)",
            path.display(),
            at + 1,
            line(&expected),
            line(actual)
        );
    }
}
