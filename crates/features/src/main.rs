//! `cargo xtask features`: the table of features as it would be released now, and what its changes mean.

mod record;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use featuregate::{Release, check_lifecycle, describe_change};

/// Print the table of features as it would be released now, or what it changes against a release
#[derive(clap::Parser)]
#[command(name = "cargo xtask features")]
struct Args {
    /// Hold the table against a record: a file, or the version of a release in crates/membership/testdata/features
    #[arg(long, value_name = "FILE|VERSION")]
    against: Option<String>,
}

/// A broken rule answers with exit code 1; an error is a comparison that could not be made at all.
fn main() -> ExitCode {
    run(&Args::parse()).unwrap_or_else(|error| {
        eprintln!("Error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Without flags it prints the record of the table, in the very form that is kept for each release.
fn run(args: &Args) -> Result<ExitCode> {
    let now = membership::features::release()?;
    let Some(name) = &args.against else {
        print!("{now}");
        return Ok(ExitCode::SUCCESS);
    };
    let comparison = Comparison::new(&record::find(name)?, &now);
    print!("{}", comparison.text);
    Ok(if comparison.is_legal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Comparison {
    text: String,
    is_legal: bool,
}

impl Comparison {
    fn new(old: &Release, new: &Release) -> Comparison {
        let violations = check_lifecycle(old, new);
        let mut text = format!("From {}.{} to {}.{}\n", old.version, old.patch, new.version, new.patch);
        section(&mut text, "What it means for users", &describe_change(old, new), "nothing changes for them");
        let found: Vec<String> = violations.iter().map(ToString::to_string).collect();
        section(&mut text, "Against the rules", &found, "nothing");
        Comparison { text, is_legal: violations.is_empty() }
    }
}

fn section(text: &mut String, title: &str, lines: &[String], none: &str) {
    text.push_str(&format!("\n{title}:\n"));
    match lines {
        [] => text.push_str(&format!("  {none}\n")),
        lines => lines.iter().for_each(|line| text.push_str(&format!("- {line}\n"))),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// A fault in a command line's definition shows only when it is used.
    #[test]
    fn clap_agrees() {
        Args::command().debug_assert();
    }

    fn compare(old: &str, new: &str) -> Comparison {
        Comparison::new(&old.parse().expect("a record"), &new.parse().expect("a record"))
    }

    #[test]
    fn a_legal_change_is_told_in_words() {
        let old = "release 3.8.0\nfeature A cluster\n  3.8 alpha off\n";
        let comparison = compare(old, "release 3.9.0\nfeature A cluster\n  3.8 alpha off\n  3.9 beta on\n");
        assert!(comparison.is_legal, "{}", comparison.text);
        assert!(comparison.text.starts_with("From 3.8.0 to 3.9.0\n"), "{}", comparison.text);
        assert!(comparison.text.contains("- A: the default goes from off to on"), "{}", comparison.text);
        assert!(comparison.text.ends_with("Against the rules:\n  nothing\n"), "{}", comparison.text);
    }

    #[test]
    fn a_broken_promise_comes_with_its_remedy() {
        let old = "release 3.8.0\nfeature A cluster\n  3.8 alpha off\n";
        let comparison = compare(old, "release 3.8.1\nfeature A server\n  3.8 alpha off\n");
        assert!(!comparison.is_legal);
        assert!(comparison.text.contains("Leave it cluster-level"), "{}", comparison.text);
    }

    /// What is printed is what is kept: reading it back gives the table.
    #[test]
    fn the_printed_table_is_a_record() {
        let now = membership::features::release().expect("the table has no fault");
        assert_eq!(now.to_string().parse(), Ok(now));
    }
}
