//! Command lines and what they must say: see the head of `interop/kubectl/stories.txt` for the form.

use anyhow::{Result, bail};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Where it stands in the file, from 1.
    pub line: usize,
    pub command: String,
    exit: i32,
    whole: Option<String>,
    present: Vec<String>,
    absent: Vec<String>,
}

pub(super) fn parse(text: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { line: number, command: command.to_owned(), ..Step::default() });
            continue;
        }
        let Some(step) = steps.last_mut() else { bail!("line {number}: {line:?} expects before anything was run") };
        step.expect(line);
    }
    match steps.iter().find(|step| step.expects_nothing()) {
        Some(step) => bail!("line {}: nothing is expected of {:?}", step.line, step.command),
        None => Ok(steps),
    }
}

impl Step {
    fn expect(&mut self, line: &str) {
        if let Some(code) = line.strip_prefix("exit ").and_then(|code| code.parse().ok()) {
            self.exit = code;
        } else if let Some(text) = line.strip_prefix('=') {
            self.whole = Some(text.trim().to_owned());
        } else if let Some(text) = line.strip_prefix("! ") {
            self.absent.push(text.to_owned());
        } else {
            self.present.push(line.to_owned());
        }
    }

    fn expects_nothing(&self) -> bool {
        self.exit == 0 && self.whole.is_none() && self.present.is_empty() && self.absent.is_empty()
    }

    /// Returns the first difference from the expectations.
    pub(super) fn check(&self, code: i32, said: &str) -> Result<(), String> {
        if code != self.exit {
            return Err(format!("expected it to end with {}", self.exit));
        }
        if let Some(whole) = self.whole.as_ref().filter(|whole| said.trim() != **whole) {
            return Err(format!("expected {whole:?} and nothing else"));
        }
        if let Some(text) = self.present.iter().find(|text| !said.lines().any(|line| line.contains(*text))) {
            return Err(format!("expected a line with {text:?}"));
        }
        match self.absent.iter().find(|text| said.contains(*text)) {
            Some(text) => Err(format!("did not expect {text:?}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_can_fail() {
        let steps = parse("# head\n$ a b\nexit 1\none\n! two\n\n$ c\n= 5 2\n").expect("it reads");
        assert_eq!(steps.iter().map(|step| step.line).collect::<Vec<_>>(), [2, 7]);
        let first = |code, said| steps[0].check(code, said).is_ok();
        assert!(first(1, "zero\nsome one here\n"));
        assert!(!first(0, "one"), "the exit code");
        assert!(!first(1, "on\ne"), "a line that is missing");
        assert!(!first(1, "one\ntwo"), "a line too many");
        assert!(steps[1].check(0, "5 2\n").is_ok() && steps[1].check(0, "5 2 1").is_err());
    }

    #[test]
    fn a_step_expects_something() {
        assert!(parse("$ a\n$ b\nx\n").expect_err("nothing is expected of a").to_string().contains("line 1"));
        assert!(parse("x\n").expect_err("nothing was run").to_string().contains("line 1"));
    }
}
