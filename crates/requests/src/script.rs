//! A file of steps.
//!
//! ```text
//! # What the file is about.
//!
//! == name of the step
//! # Why, if it needs saying.
//! POST /api/v1/namespaces/maps/configmaps?dryRun=All
//! Accept: application/yaml
//! until 201
//!
//! {"apiVersion": "v1", …}
//! ---
//! what Kubernetes answers
//! --- lockgate
//! what ours answers, where it is meant to differ
//! ```
//!
//! Headers and `until`, which repeats the step until it gets that code, may be left out, and so may the body. A body is sent
//! as JSON unless a header says otherwise; `PATCH:json`, `PATCH:merge`, `PATCH:strategic` and `PATCH:apply` are short for a PATCH
//! with its media type. What stands for values of earlier steps is in `fill`.

use std::fmt::{self, Display, Formatter};

use anyhow::{Context, Result, bail, ensure};

#[derive(Debug, Default)]
pub struct Script {
    opening: String,
    pub steps: Vec<Step>,
}

#[derive(Debug, Default)]
pub struct Step {
    pub name: String,
    comment: String,
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    /// The code to wait for.
    pub until: Option<u16>,
    pub body: String,
    /// What Kubernetes answers.
    pub answer: String,
    /// What ours answers, where that is meant to differ.
    pub ours: Option<String>,
}

const PATCHES: [(&str, &str); 4] = [
    ("PATCH:json", "application/json-patch+json"),
    ("PATCH:merge", "application/merge-patch+json"),
    ("PATCH:strategic", "application/strategic-merge-patch+json"),
    ("PATCH:apply", "application/apply-patch+yaml"),
];

impl Script {
    pub fn parse(text: &str) -> Result<Script> {
        let text = format!("\n{text}");
        let mut parts = text.split("\n== ");
        let opening = parts.next().unwrap_or_default().trim().to_owned();
        let mut script = Script { opening, steps: Vec::new() };
        for part in parts {
            let step = Step::parse(part).with_context(|| format!("in step {:?}", part.lines().next()))?;
            ensure!(script.step(&step.name).is_none(), "two steps are called {:?}", step.name);
            script.steps.push(step);
        }
        Ok(script)
    }

    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }
}

impl Step {
    fn parse(text: &str) -> Result<Step> {
        let (asked, answers) = text.split_once("\n---\n").unwrap_or((text, ""));
        let (answer, ours) = match answers.split_once("--- lockgate\n") {
            Some((answer, ours)) => (answer, Some(ours.trim_end().to_owned())),
            None => (answers, None),
        };
        let (head, body) = asked.split_once("\n\n").unwrap_or((asked, ""));
        let mut lines = head.lines();
        let name = lines.next().context("a step needs a name")?.trim().to_owned();
        let mut step = Step { name, answer: answer.trim_end().to_owned(), ours, ..Step::default() };
        step.body = body.trim_end_matches('\n').to_owned();
        for line in lines {
            step.take(line)?;
        }
        ensure!(!step.method.is_empty(), "there is no request");
        Ok(step)
    }

    fn take(&mut self, line: &str) -> Result<()> {
        if line.starts_with('#') {
            self.comment.push_str(line);
            self.comment.push('\n');
        } else if self.method.is_empty() {
            let (method, target) = line.split_once(' ').context("write: METHOD /path")?;
            (self.method, self.target) = (method.to_owned(), target.to_owned());
        } else if let Some(code) = line.strip_prefix("until ") {
            self.until = Some(code.parse().with_context(|| format!("no code: {code:?}"))?);
        } else if let Some((name, value)) = line.split_once(':') {
            self.headers.push((name.to_owned(), value.trim().to_owned()));
        } else {
            bail!("neither a header nor `until`: {line:?}");
        }
        Ok(())
    }

    /// What goes over the wire as the method.
    pub fn verb(&self) -> &str {
        self.method.split(':').next().unwrap_or_default()
    }

    /// The media type of the body, if there is one to name.
    pub fn media(&self) -> Option<&'static str> {
        let named = PATCHES.iter().find(|(method, _)| *method == self.method).map(|(_, media)| *media);
        named.or((!self.body.is_empty()).then_some("application/json"))
    }
}

impl Display for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.opening)?;
        self.steps.iter().try_for_each(|step| write!(f, "\n\n{step}"))?;
        f.write_str("\n")
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "== {}\n{}{} {}", self.name, self.comment, self.method, self.target)?;
        for (name, value) in &self.headers {
            write!(f, "\n{}", format!("{name}: {value}").trim_end())?;
        }
        if let Some(code) = self.until {
            write!(f, "\nuntil {code}")?;
        }
        if !self.body.is_empty() {
            write!(f, "\n\n{}", self.body)?;
        }
        write!(f, "\n---\n{}", self.answer)?;
        if let Some(ours) = &self.ours {
            write!(f, "\n--- lockgate\n{ours}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
        let text = "# About.\n\n== one\n# Why.\nPATCH:merge /a?b=c\nAccept: x\nuntil 404\n\n{\"a\":\n1}\n---\n200 x\n{}\n--- lockgate\n404\n\n\
                    == two\nGET /\nAuthorization:\n---\n200\n";
        let script = Script::parse(text).expect("it reads");
        assert_eq!(script.to_string(), text);
        let step = &script.steps[0];
        assert_eq!((step.verb(), step.media()), ("PATCH", Some("application/merge-patch+json")));
        assert_eq!((step.until, &*step.body, step.ours.as_deref()), (Some(404), "{\"a\":\n1}", Some("404")));
        assert_eq!(script.steps[1].media(), None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert!(Script::parse("== one\n").is_err());
        assert!(Script::parse("== one\nGET /\nwhat\n").is_err());
        assert!(Script::parse("== one\nGET /\n\n== one\nGET /\n").is_err());
    }
}
