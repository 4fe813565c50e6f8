//! What two servers answered, step by step: equal, different, or different for a reason that is written down.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail};

/// One step, with the answers of the reference and of Lockgate. `None`: it has no such step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub name: String,
    pub left: Option<String>,
    pub right: Option<String>,
}

impl Step {
    pub(crate) fn new(name: impl Into<String>, left: impl Into<String>, right: impl Into<String>) -> Step {
        Step { name: name.into(), left: Some(left.into()), right: Some(right.into()) }
    }

    fn same(&self) -> bool {
        self.left == self.right
    }
}

/// Pairs two lists of (step, answer) by step, the n-th of a name with the n-th, so that a missing step shifts nothing.
pub(crate) fn pair(left: Vec<(String, String)>, right: Vec<(String, String)>) -> Vec<Step> {
    let mut rest: BTreeMap<(String, usize), String> = number(right.clone()).into_iter().collect();
    let mut steps = Vec::new();
    for ((name, nth), answer) in number(left) {
        let right = rest.remove(&(name.clone(), nth));
        steps.push(Step { name, left: Some(answer), right });
    }
    let extra = number(right).into_iter().filter_map(|(key, _)| rest.remove_entry(&key));
    steps.extend(extra.map(|((name, _), answer)| Step { name, left: None, right: Some(answer) }));
    steps
}

fn number(lines: Vec<(String, String)>) -> Vec<((String, usize), String)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let numbered = lines.into_iter().map(|(name, answer)| {
        let nth = seen.entry(name.clone()).or_default();
        *nth += 1;
        ((name, *nth), answer)
    });
    numbered.collect()
}

/// Differences that are meant, from `interop/known-differences.txt`.
#[derive(Default)]
pub(crate) struct Known {
    rows: Vec<Row>,
}

struct Row {
    scenario: String,
    step: String,
    reason: String,
    used: bool,
}

impl Known {
    pub(crate) fn read(path: &Path) -> Result<Known> {
        let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
        Known::parse(&text).with_context(|| format!("in {}", path.display()))
    }

    fn parse(text: &str) -> Result<Known> {
        let mut known = Known::default();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let [scenario, step, reason] = cells[..] else {
                bail!("cannot read {line:?}; write: scenario | step, * at its end for any | reason");
            };
            if reason.is_empty() {
                bail!("{line:?} gives no reason");
            }
            let row = Row { scenario: scenario.into(), step: step.into(), reason: reason.into(), used: false };
            known.rows.push(row);
        }
        Ok(known)
    }

    fn reason(&mut self, scenario: &str, step: &str) -> Option<&str> {
        let fits = |row: &Row| match row.step.strip_suffix('*') {
            Some(start) => step.starts_with(start),
            None => row.step == step,
        };
        let row = self.rows.iter_mut().find(|row| row.scenario == scenario && fits(row))?;
        row.used = true;
        Some(&row.reason)
    }

    /// Rows of scenarios that ran and found no such difference.
    pub(crate) fn unused<'a>(&'a self, ran: &'a [Summary]) -> impl Iterator<Item = String> + 'a {
        let stale = |row: &&Row| !row.used && ran.iter().any(|summary| summary.scenario == row.scenario);
        self.rows.iter().filter(stale).map(|row| format!("{} | {}", row.scenario, row.step))
    }
}

/// A row of the table at the end.
pub(crate) struct Summary {
    pub scenario: String,
    pub steps: usize,
    pub same: usize,
    pub known: usize,
    pub different: usize,
    /// Why it could not be run to its end.
    pub failed: Option<String>,
}

/// Prints what differs and sums up.
pub(crate) fn judge(scenario: &str, steps: Vec<Step>, known: &mut Known) -> Summary {
    let mut summary =
        Summary { scenario: scenario.to_owned(), steps: steps.len(), same: 0, known: 0, different: 0, failed: None };
    for step in &steps {
        if step.same() {
            summary.same += 1;
        } else if let Some(reason) = known.reason(scenario, &step.name) {
            summary.known += 1;
            println!("known difference in {scenario}, {}: {reason}", step.name);
        } else {
            summary.different += 1;
            let show = |side: &Option<String>| shorten(side.as_deref().unwrap_or("(no such step)"));
            println!(
                "DIFFERENT in {scenario}, {}:\n  left:  {}\n  right: {}",
                step.name,
                show(&step.left),
                show(&step.right)
            );
        }
    }
    // An empty run proves nothing.
    if steps.is_empty() {
        summary.failed = Some("no step was run".to_owned());
    }
    summary
}

fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 1500;
    let text = text.replace('\n', "\n         ");
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text,
    }
}

/// The table, and whether all is well.
pub(crate) fn print_table(summaries: &[Summary]) -> bool {
    println!("\n{:<24} | {:>5} | {:>5} | {:>9} | {:>5}", "scenario", "steps", "same", "different", "known");
    println!("{:-<24}-|-{:->5}-|-{:->5}-|-{:->9}-|-{:->5}", "", "", "", "", "");
    for s in summaries {
        println!("{:<24} | {:>5} | {:>5} | {:>9} | {:>5}", s.scenario, s.steps, s.same, s.different, s.known);
        if let Some(failed) = &s.failed {
            println!("    failed: {}", failed.lines().next().unwrap_or_default());
        }
    }
    !summaries.is_empty() && summaries.iter().all(|s| s.different == 0 && s.failed.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        lines.iter().map(|(step, answer)| ((*step).to_owned(), (*answer).to_owned())).collect()
    }

    #[test]
    fn a_missing_step_shifts_nothing() {
        let steps = pair(lines(&[("a", "1"), ("b", "1"), ("b", "2")]), lines(&[("b", "1"), ("b", "3"), ("c", "1")]));
        let shape: Vec<_> = steps.iter().map(|s| (s.name.as_str(), s.left.as_deref(), s.right.as_deref())).collect();
        assert_eq!(
            shape,
            [("a", Some("1"), None), ("b", Some("1"), Some("1")), ("b", Some("2"), Some("3")), ("c", None, Some("1"))]
        );
    }

    #[test]
    fn known_differences_count_apart_and_need_a_reason() {
        let mut known = Known::parse("# why\ngo | auth/* | later\ngo | stale | gone\n").expect("it reads");
        let steps = vec![Step::new("auth/x", "1", "2"), Step::new("b", "1", "2"), Step::new("c", "1", "1")];
        let summary = judge("go", steps, &mut known);
        assert_eq!((summary.steps, summary.same, summary.known, summary.different), (3, 1, 1, 1));
        assert_eq!(known.unused(&[summary]).collect::<Vec<_>>(), ["go | stale"]);
        assert!(Known::parse("go | a |\n").is_err());
        assert!(Known::parse("go | a\n").is_err());
    }

    #[test]
    fn nothing_run_is_not_well() {
        let summary = judge("go", Vec::new(), &mut Known::default());
        assert!(!print_table(&[summary]));
        assert!(!print_table(&[]));
    }
}
