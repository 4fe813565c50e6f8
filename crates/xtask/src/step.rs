//! A step of a lane: one command as plain data, so that `--dry-run` prints the value that is executed.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub name: String,
    pub program: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// A step that takes longer is ended, and has failed.
    pub seconds_max: Option<u64>,
}

impl Step {
    pub(crate) fn new<A: Into<String>>(
        name: impl Into<String>,
        program: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Step {
        let args = args.into_iter().map(Into::into).collect();
        Step { name: name.into(), program: program.into(), args, env: Vec::new(), seconds_max: None }
    }

    pub(crate) fn cargo<A: Into<String>>(name: impl Into<String>, args: impl IntoIterator<Item = A>) -> Step {
        Step::new(name, "cargo", args)
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Step {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn within_seconds(mut self, seconds_max: u64) -> Step {
        self.seconds_max = Some(seconds_max);
        self
    }
}

/// The command as a shell takes it.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quote(value))?;
        }
        f.write_str(&quote(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quote(arg)))
    }
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_printed_as_a_shell_command() {
        let step = Step::cargo("fuzz", ["test", "-p", "fuzz", "it's"]).env("A", "b c").env("N", "7");
        assert_eq!(step.to_string(), r"A='b c' N=7 cargo test -p fuzz 'it'\''s'");
        assert_eq!(Step::new("x", "run", [""]).to_string(), "run ''");
    }
}
