//! Command lines with the very answers of another server: see the head of `interop/kubectl/everyday.txt` for the form.

use std::fmt::Write;

/// The output of a command and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub code: i32,
    pub out: Vec<String>,
    pub err: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A comment, a heading, an empty line.
    Text(String),
    Step {
        line: usize,
        command: String,
        said: Said,
    },
}

pub(super) fn parse(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            parts.push(Part::Step { line: number + 1, command: command.to_owned(), said: Said::default() });
            continue;
        }
        let taken = match parts.last_mut() {
            Some(Part::Step { said, .. }) => said.take(line),
            _ => false,
        };
        if !taken {
            parts.push(Part::Text(line.to_owned()));
        }
    }
    parts
}

pub(super) fn print(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        // Writing to a string does not fail.
        let _ = match part {
            Part::Text(line) => writeln!(text, "{line}"),
            Part::Step { command, said, .. } => write!(text, "$ {command}\n{said}"),
        };
    }
    text
}

impl Said {
    pub(super) fn new(code: i32, out: &str, err: &str, server: &str) -> Said {
        Said { code, out: plain(out, server), err: plain(err, server) }
    }

    /// Whether a line of the file belongs to it.
    fn take(&mut self, line: &str) -> bool {
        let rest = |mark: &str| line.strip_prefix(mark).map(|rest| rest.strip_prefix(' ').unwrap_or(rest).to_owned());
        if let Some(code) = line.strip_prefix("exit ").and_then(|code| code.parse().ok()) {
            self.code = code;
        } else if let Some(line) = rest("2>") {
            self.err.push(line);
        } else if let Some(line) = rest(">") {
            self.out.push(line);
        } else {
            return false;
        }
        true
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.code != 0 {
            writeln!(f, "exit {}", self.code)?;
        }
        for (mark, lines) in [(">", &self.out), ("2>", &self.err)] {
            for line in lines {
                writeln!(f, "{}", format!("{mark} {line}").trim_end())?;
            }
        }
        Ok(())
    }
}

/// The output without the parts that differ between any two servers and runs.
fn plain(text: &str, server: &str) -> Vec<String> {
    let text = text.replace(server, "<server>");
    let mut lines: Vec<String> = text.lines().map(|line| plain_line(line).trim_end().to_owned()).collect();
    // Kubernetes tells several faults of an object in any order.
    for faults in lines.chunk_by_mut(|a, b| a.starts_with("* ") && b.starts_with("* ")) {
        faults.sort();
    }
    lines
}

fn plain_line(line: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.');
    let (mut out, mut aged, mut rest) = (String::new(), false, line);
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let alone = out.ends_with(' ') && (after.is_empty() || after.starts_with(' '));
        let mark = mark(&out, word, alone);
        aged |= mark == Some("<age>");
        out.push_str(mark.unwrap_or(word));
        let mut chars = after.chars();
        out.extend(chars.next());
        rest = chars.as_str();
    }
    // Widths of columns follow from the lengths of what is in them.
    while aged && out.contains("   ") {
        out = out.replace("   ", "  ");
    }
    out
}

/// The placeholder of a word, which depends on the text before it.
fn mark(before: &str, word: &str, alone: bool) -> Option<&'static str> {
    let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let shape: String = word.chars().map(shape).collect();
    let digits = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    let hex = |part: &str| part.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    let age = |word: &str| word.ends_with(['s', 'm', 'h', 'd']) && !shape.contains("00000");
    let before = before.trim_end_matches([' ', '"', '\\']);
    match () {
        () if shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z') => Some("<time>"),
        () if word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && word.split('-').all(hex) => {
            Some("<uid>")
        }
        () if digits && (before.ends_with("resourceVersion\":") || before.ends_with("resourceVersion:")) => {
            Some("<version>")
        }
        () if digits && before.ends_with("Resource Version:") => Some("<version>"),
        () if alone && age(word) && shape.trim_matches(['s', 'm', 'h', 'd', '0']).is_empty() && shape.contains('0') => {
            Some("<age>")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_is_printed() {
        let text = "# head\n\n$ a | b\nexit 2\n> one\n>\n>   two\n2> three\n$ c\n\n## end\n";
        let parts = parse(text);
        assert_eq!(print(&parts), text);
        let said = Said { code: 2, out: vec!["one".into(), String::new(), "  two".into()], err: vec!["three".into()] };
        assert_eq!(parts[2], Part::Step { line: 3, command: "a | b".into(), said });
    }

    #[test]
    fn what_differs_by_nature_is_taken_out() {
        let line = |text: &str| plain(text, "127.0.0.1:5").join("\n");
        assert_eq!(line("at https://127.0.0.1:5/x"), "at https://<server>/x");
        assert_eq!(line("one   * 5     2m3s   x"), "one  * 5  <age>  x");
        assert_eq!(
            line(r#"{"resourceVersion":"12","uid":"6e0b3d5a-0000-4000-8000-00000000000a"}"#),
            r#"{"resourceVersion":"<version>","uid":"<uid>"}"#
        );
        assert_eq!(line("  Resource Version:    17"), "  Resource Version:    <version>");
        assert_eq!(line("since 2026-01-02T03:04:05Z, 12 of 5s-x"), "since <time>, 12 of 5s-x");
        assert_eq!(line("bad:\n* b\n* a\nend"), "bad:\n* a\n* b\nend");
    }
}
