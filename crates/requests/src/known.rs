//! Differences that are meant, each with its reason.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// Beside the scripts, without its ending.
pub(crate) const FILE: &str = "known-differences";

/// Rows of `script | step (a * at its end stands for any end) | reason`.
#[derive(Default)]
pub struct Known {
    rows: Vec<Row>,
}

struct Row {
    script: String,
    step: String,
    reason: String,
    used: bool,
}

impl Known {
    /// The file in the directory of the scripts.
    pub fn read(dir: &Path) -> Result<Known> {
        let path = dir.join(FILE).with_extension("txt");
        let text = std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        Known::parse(&text).with_context(|| format!("in {}", path.display()))
    }

    fn parse(text: &str) -> Result<Known> {
        let mut known = Known::default();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let cells: Vec<_> = line.splitn(3, '|').map(|cell| cell.trim().to_owned()).collect();
            let Ok([script, step, reason]) = <[String; 3]>::try_from(cells) else {
                bail!("cannot read {line:?}; write: script | step, * at its end for any | reason");
            };
            if reason.is_empty() {
                bail!("{line:?} gives no reason");
            }
            known.rows.push(Row { script, step, reason, used: false });
        }
        Ok(known)
    }

    /// Why this step may differ, if it may.
    pub fn reason(&mut self, script: &str, step: &str) -> Option<&str> {
        let fits = |row: &Row| match row.step.strip_suffix('*') {
            Some(start) => step.starts_with(start),
            None => row.step == step,
        };
        let row = self.rows.iter_mut().find(|row| row.script == script && fits(row))?;
        row.used = true;
        Some(&row.reason)
    }

    /// Rows of these scripts that nothing needed.
    pub fn unused(&self, scripts: &[&str]) -> Vec<String> {
        let stale = |row: &&Row| !row.used && scripts.contains(&row.script.as_str());
        self.rows.iter().filter(stale).map(|row| format!("{} | {}", row.script, row.step)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_need_a_reason_and_a_use() {
        let mut known =
            Known::parse("# why\na | x* | because | of\na | y | gone\nb | y | not run\n").expect("it reads");
        assert_eq!(known.reason("a", "xyz"), Some("because | of"));
        assert_eq!(known.reason("b", "xyz"), None);
        assert_eq!(known.unused(&["a"]), ["a | y"]);
        assert!(Known::parse("a | b |").is_err());
        assert!(Known::parse("a | b").is_err());
    }
}
