//! Runs the scripts in `testdata/`: input, `---`, what must come out. `UPDATE_GOLDENFILES=1` rewrites the second half.

use std::{fmt::Write as _, fs, path::Path};

use featuregate::{
    Feature, Level, Registry, Release, Resolved, SetErrors, Settings, Version, alpha, beta, check_lifecycle,
    deprecated, describe_change, ga, v,
};

const fn row(name: &'static str, level: Level, specs: &'static [featuregate::Spec]) -> Feature {
    Feature { name, level, owner: "tests", writes: "", reason: "Shows a rule.", specs }
}

/// The table that the scripts in `testdata/flags` speak of.
static TABLE: &[Feature] = &[
    row("Alpha", Level::Server, &[alpha(v(3, 6))]),
    row("Beta", Level::Server, &[alpha(v(3, 6)), beta(v(3, 8))]),
    row("BetaOff", Level::Server, &[beta(v(3, 7)).off()]),
    row("Done", Level::Server, &[beta(v(3, 6)), ga(v(3, 8))]),
    row("Frozen", Level::Server, &[beta(v(3, 6)), ga(v(3, 8)).locked()]),
    row("Gone", Level::Server, &[beta(v(3, 6)).off(), deprecated(v(3, 8)).locked()]),
    row("Later", Level::Server, &[alpha(v(3, 9))]),
    row("Agreed", Level::Cluster, &[alpha(v(3, 8)), beta(v(3, 9)), ga(v(3, 10)).locked()]),
    row("Newer", Level::Cluster, &[alpha(v(3, 9))]),
];

#[test]
fn flags() {
    let registry = Registry::new(TABLE).expect("the table has no fault");
    run_dir("testdata/flags", |script| {
        script.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).fold(String::new(), |mut out, line| {
            writeln!(out, "> {line}\n{}", run_flag_line(&registry, line)).expect("a string takes all");
            out
        })
    });
}

#[test]
fn lifecycle() {
    run_dir("testdata/lifecycle", |script| {
        let second = script.rfind("\nrelease ").expect("a script has two `release` records");
        let (old, new) = script.split_at(second);
        let read = |text: &str| text.parse::<Release>().expect("a legal record");
        let (old, new) = (read(old), read(new));
        let mut out = String::new();
        let violations = check_lifecycle(&old, &new);
        if violations.is_empty() {
            out.push_str("allowed\n");
        }
        for violation in violations {
            writeln!(out, "{:?}: {violation}", violation.rule).expect("a string takes all");
        }
        for line in describe_change(&old, &new) {
            writeln!(out, "change: {line}").expect("a string takes all");
        }
        out
    });
}

/// `COMMAND ARG... [FLAG TEXT]`; the brackets keep spaces.
fn run_flag_line(registry: &Registry, line: &str) -> String {
    let (head, flag) = line.split_once('[').unwrap_or((line, "]"));
    let flag = flag.strip_suffix(']').expect("a closing bracket");
    let words: Vec<&str> = head.split_whitespace().collect();
    match words.as_slice() {
        ["resolve", level, version] => show(registry.parse(parse_level(level), parse(version), flag)),
        ["start", binary, cluster] => {
            let settings: Settings = flag.parse().expect("legal");
            let cluster = (*cluster != "-").then(|| parse(cluster));
            match registry.check_start(&settings, parse(binary), cluster) {
                Ok(notices) => notices.iter().fold("accepted\n".to_owned(), |out, n| out + &format!("notice: {n}\n")),
                Err(errors) => show_errors(&errors),
            }
        }
        ["proposal", version] => show(Ok(registry.proposal(parse(version), &flag.parse().expect("legal")))),
        ["decided", version] => {
            let on: Vec<&str> = flag.split(',').collect();
            format!("{}\n", registry.decided(parse(version), |name| on.contains(&name)))
        }
        ["metrics", level, version] => {
            let resolved = registry.parse(parse_level(level), parse(version), flag).expect("legal");
            resolved.gates.metric_rows().fold(String::new(), |out, row| {
                out + &format!("{{name={:?},stage={:?},scope={:?}}} {}\n", row.name, row.stage, row.scope, row.value)
            })
        }
        ["help", level, version] => registry.help(parse_level(level), parse(version)).join("\n") + "\n",
        ["markdown", version] => registry.markdown(parse(version)),
        _ => panic!("no such command: {line}"),
    }
}

fn show(result: Result<Resolved, SetErrors>) -> String {
    match result {
        Err(errors) => show_errors(&errors),
        Ok(resolved) => {
            let notices = resolved.notices.iter().map(|notice| format!("notice: {notice}\n"));
            format!("{}\n{}", resolved.gates, notices.collect::<String>())
        }
    }
}

fn show_errors(errors: &SetErrors) -> String {
    let hints = errors.0.iter().filter_map(|error| error.hint());
    format!("error: {errors}\n{}", hints.map(|hint| format!("hint: {hint}\n")).collect::<String>())
}

fn parse(version: &str) -> Version {
    version.parse().expect("a version")
}

fn parse_level(word: &str) -> Level {
    [Level::Server, Level::Cluster].into_iter().find(|level| level.word() == word).expect("a level")
}

fn run_dir(dir: &str, run: impl Fn(&str) -> String) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let mut paths: Vec<_> = fs::read_dir(&dir).expect("the directory").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no scripts in {}", dir.display());
    for path in paths {
        let text = fs::read_to_string(&path).expect("a script");
        let (input, want) = text.split_once("\n---\n").unwrap_or((text.trim_end(), ""));
        let got = run(input);
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            fs::write(&path, format!("{input}\n---\n{got}")).expect("rewriting a script");
        } else {
            assert_eq!(got, want, "{} (UPDATE_GOLDENFILES=1 rewrites it)", path.display());
        }
    }
}
