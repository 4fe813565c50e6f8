//! The table at the end of a run.

use std::time::Duration;

use anyhow::Result;

use super::Ending;

pub(super) struct Row {
    pub name: &'static str,
    pub took: Duration,
    pub ending: Result<Ending>,
}

impl Row {
    /// Outcome, time, and what there is to say.
    pub(super) fn line(&self) -> String {
        let (outcome, text) = match &self.ending {
            Ok(Ending::Well(text)) => ("ok", text.clone()),
            Ok(Ending::Skipped(why)) => ("SKIPPED", why.clone()),
            Err(error) => ("FAILED", format!("{error:#}")),
        };
        format!("{outcome}, {:.1} s: {text}", self.took.as_secs_f32())
    }
}

/// Prints all rows; whether all is well. With `strict` a scenario that could not be run fails the run.
pub(super) fn print_table(rows: &[Row], strict: bool) -> bool {
    println!();
    for row in rows {
        println!("{:<44} | {}", row.name, row.line().lines().next().unwrap_or_default());
    }
    let count = |fits: fn(&Result<Ending>) -> bool| rows.iter().filter(|row| fits(&row.ending)).count();
    let (failed, skipped) = (count(Result::is_err), count(|ending| matches!(ending, Ok(Ending::Skipped(_)))));
    println!("{} well, {failed} failed, {skipped} SKIPPED", rows.len() - failed - skipped);
    if skipped > 0 {
        println!("what was skipped is NOT shown to work; with LOCKGATE_REQUIRE_ROOT=1 it fails the run");
    }
    !rows.is_empty() && failed == 0 && !(strict && skipped > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_counts_only_if_nothing_may_be_skipped() {
        let row = |ending| Row { name: "a", took: Duration::ZERO, ending };
        let skipped = [row(Ok(Ending::Well(String::new()))), row(Ok(Ending::Skipped("no netns".to_owned())))];
        assert!(print_table(&skipped, false));
        assert!(!print_table(&skipped, true));
        assert!(!print_table(&[row(Err(anyhow::anyhow!("lost")))], false));
        assert!(!print_table(&[], false));
    }
}
