//! Names in place of texts that differ between the sides.

use super::{case::Case, tool::Printed};

/// Names for the ids, addresses and leases of one side.
#[derive(Default)]
pub(crate) struct Normal {
    /// Longest first: an id in decimal may contain another's digits.
    texts: Vec<(String, String)>,
    /// Ids as they stand in protobuf.
    varints: Vec<(String, Vec<u8>)>,
    /// Replaced only where they matter: `3.7` is also part of other numbers.
    versions: Vec<(String, String)>,
}

impl Normal {
    pub(crate) fn id(&mut self, name: &str, id: u64) {
        self.word(name, &id.to_string());
        self.word(&format!("{name}-HEX"), &format!("{id:x}"));
        self.varints.push((name.to_owned(), varint(id)));
    }

    /// The server's version, and the one before it.
    pub(crate) fn version(&mut self, version: &str) {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap());
        let (major, minor) = (parts.next().unwrap(), parts.next().unwrap());
        self.versions.push(("MINOR".to_owned(), format!("{major}.{minor}")));
        self.versions.push(("LOWER".to_owned(), format!("{major}.{}", minor - 1)));
    }

    pub(crate) fn word(&mut self, name: &str, text: &str) {
        self.texts.retain(|known| known.0 != name);
        self.texts.push((name.to_owned(), text.to_owned()));
        self.texts.sort_by_key(|known| std::cmp::Reverse(known.1.len()));
    }

    pub(crate) fn remember(&mut self, name: &str, stdout: &[u8]) {
        let text = String::from_utf8_lossy(stdout);
        let is_id = |word: &&str| (13..=16).contains(&word.len()) && word.chars().all(|c| c.is_ascii_hexdigit());
        let word = text.split_whitespace().find(is_id).unwrap_or_else(|| panic!("no id for {name} in {text:?}"));
        let id = u64::from_str_radix(word, 16).unwrap();
        self.word(name, word);
        self.word(&format!("{name}-DECIMAL"), &id.to_string());
        self.varints.push((name.to_owned(), varint(id)));
    }

    /// Replaces `{NAME}` in an argument by its text on this side.
    pub(crate) fn fill(&self, arg: &str) -> String {
        self.texts
            .iter()
            .chain(&self.versions)
            .fold(arg.to_owned(), |arg, (name, text)| arg.replace(&format!("{{{name}}}"), text))
    }

    /// The output and the exit code in a form that is equal on both sides.
    pub(crate) fn describe(&self, case: &Case, printed: &Printed) -> String {
        let stdout = if case.ignore_stdout { String::new() } else { self.stdout(case, &printed.stdout) };
        let stderr = self.stderr(case, &printed.stderr);
        let code = printed.code.map_or("killed".to_owned(), |code| code.to_string());
        format!("stdout:\n{stdout}stderr:\n{stderr}exit: {code}\n")
    }

    fn stdout(&self, case: &Case, bytes: &[u8]) -> String {
        match std::str::from_utf8(bytes) {
            Ok(text) if !case.line.contains("protobuf") => self.text(case, text),
            _ => self.binary(bytes),
        }
    }

    /// Standard error without log lines and usage texts, which differ between the tools.
    fn stderr(&self, case: &Case, text: &str) -> String {
        let (mut kept, mut usage) = (String::new(), false);
        for line in text.lines().filter(|line| !is_own(line)) {
            usage |= ["Usage:", "Did you mean", "Run '"].iter().any(|start| line.starts_with(start));
            if !usage || line.starts_with("Error:") {
                kept.extend([line, "\n"]);
            }
        }
        self.text(case, &kept)
    }

    fn text(&self, case: &Case, text: &str) -> String {
        // Go prints one space or two between the fields of a message, differently from build to build.
        let mut text = text.replace("lockgatectl", "etcdctl").replace("  alarm:", " alarm:");
        if case.line.contains("downgrade") {
            text = self.versions.iter().fold(text, |text, (name, version)| text.replace(version, name));
        }
        for (name, known) in &self.texts {
            text = one_space_before(&text.replace(known, name), name);
        }
        text = mask_after(&text, "remaining(");
        text = mask_after(&text, "\"ttl\":");
        if case.digits {
            text = mask_digits(&text);
        }
        if case.sorted {
            let mut lines: Vec<_> = text.lines().collect();
            lines.sort_unstable();
            text = lines.iter().map(|line| format!("{line}\n")).collect();
        }
        if case.loose {
            text = squeeze(&squeeze(&text, ' '), '─');
        }
        text
    }

    fn binary(&self, bytes: &[u8]) -> String {
        let mut text: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
        for (name, varint) in &self.varints {
            let known: String = varint.iter().map(|byte| format!("{byte:02x} ")).collect();
            text = text.replace(&known, &format!("{name} "));
        }
        // Ids and addresses differ in length, and so do the lengths in front of them.
        for (name, known) in &self.texts {
            let known: String = known.bytes().map(|byte| format!("{byte:02x} ")).collect();
            text = text.replace(&known, &format!("{name} "));
        }
        format!("{text}\n")
    }
}

/// True for lines of standard error that only one of the tools prints.
///
/// etcdctl lets another program silence the terminal, which complains if there is none.
pub(crate) fn is_own(line: &str) -> bool {
    line.is_empty() || line.starts_with("{\"level\":") || line.starts_with("stty: ")
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// An id of fewer than sixteen digits may be padded with spaces; any number of them counts as one.
fn one_space_before(text: &str, name: &str) -> String {
    let mut parts = text.split(name);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let kept = out.trim_end_matches(' ').len();
        out.truncate(out.len().min(kept + 1));
        out.extend([name, part]);
    }
    out
}

#[test]
fn padding_counts_as_one_space() {
    for text in ["ID :abc", "ID : abc", "ID :  abc", "abc abc", "abcabc"] {
        let mut normal = Normal::default();
        normal.word("M", "abc");
        let expected = text.replace("  ", " ").replace("abc", "M");
        assert_eq!(normal.text(&Case::default(), text), expected);
    }
}

/// Hides the positive number that follows `mark`.
fn mask_after(text: &str, mark: &str) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        out.push_str(mark);
        out.push_str(if rest.len() < part.len() { "#" } else { "" });
        out.push_str(rest);
    }
    out
}

/// Hides numbers with their units.
fn mask_digits(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        rest = rest[at..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        for unit in [" kB", " MB", " GB", " B", "ms", "µs", "ns", "s"] {
            if let Some(after) = rest.strip_prefix(unit) {
                rest = after;
                break;
            }
        }
        out.push('#');
    }
    out + rest
}

fn squeeze(text: &str, run: char) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c != run || !out.ends_with(run) {
            out.push(c);
        }
    }
    out
}
