//! The table at the end of a lane: one row a step, with its time and outcome.

use std::{fmt, process::ExitCode};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub name: String,
    pub seconds: f64,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    Failed(String),
    /// The step could not run on this machine.
    Skipped(String),
    /// Ctrl-C ended the step, or came before it.
    Stopped,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, why) = match &self.outcome {
            Outcome::Ok => ("ok", ""),
            Outcome::Failed(why) => ("FAILED", why.as_str()),
            Outcome::Skipped(why) => ("SKIPPED", why.as_str()),
            Outcome::Stopped => ("stopped", ""),
        };
        write!(f, "{:7.1} s  {word:<7}  {}", self.seconds, self.name)?;
        if why.is_empty() { Ok(()) } else { write!(f, ": {why}") }
    }
}

/// Returns the table as text, with a line of totals.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let count = |wanted: fn(&Outcome) -> bool| rows.iter().filter(|row| wanted(&row.outcome)).count();
    let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
    text.push_str(&format!("{seconds:7.1} s  in all: {} ok", count(|outcome| matches!(outcome, Outcome::Ok))));
    let counts = [
        ("FAILED", count(|outcome| matches!(outcome, Outcome::Failed(_)))),
        ("SKIPPED", count(|outcome| matches!(outcome, Outcome::Skipped(_)))),
        ("stopped", count(|outcome| matches!(outcome, Outcome::Stopped))),
    ];
    for (word, count) in counts.iter().filter(|(_, count)| *count > 0) {
        text.push_str(&format!(", {count} {word}"));
    }
    text.push('\n');
    text
}

/// A skipped step does not fail the lane; a stopped one answers with 130, as a shell does after Ctrl-C.
pub(crate) fn exit_code(rows: &[Row]) -> ExitCode {
    if rows.iter().any(|row| matches!(row.outcome, Outcome::Failed(_))) {
        return ExitCode::FAILURE;
    }
    let stopped = rows.iter().any(|row| row.outcome == Outcome::Stopped);
    if stopped { ExitCode::from(130) } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, outcome: Outcome) -> Row {
        Row { name: name.to_owned(), seconds: 1.25, outcome }
    }

    #[test]
    fn the_table_names_every_failure_and_skip() {
        let rows = [
            row("format", Outcome::Ok),
            row("tidy", Outcome::Failed("exit code 1".to_owned())),
            row("deny", Outcome::Skipped("cargo-deny is not installed".to_owned())),
        ];
        let want = "    1.2 s  ok       format\n    1.2 s  FAILED   tidy: exit code 1\n    1.2 s  SKIPPED  deny: cargo-deny is not \
                    installed\n    3.8 s  in all: 1 ok, 1 FAILED, 1 SKIPPED\n";
        assert_eq!(table(&rows), want);
        assert_eq!(exit_code(&rows), ExitCode::FAILURE);
    }

    #[test]
    fn the_exit_code_tells_failed_from_stopped() {
        let skipped = row("deny", Outcome::Skipped(String::new()));
        assert_eq!(exit_code(&[row("a", Outcome::Ok), skipped]), ExitCode::SUCCESS);
        assert_eq!(exit_code(&[row("a", Outcome::Stopped)]), ExitCode::from(130));
        assert_eq!(
            exit_code(&[row("a", Outcome::Stopped), row("b", Outcome::Failed(String::new()))]),
            ExitCode::FAILURE
        );
    }
}
