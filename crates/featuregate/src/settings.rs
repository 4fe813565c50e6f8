//! `Settings`: what an operator asked for, read from `A=true,B=false` or a map, not yet held against a registry.
//!
//! The rules and texts are those of Kubernetes' and etcd's flag of the same form, which scripts already match on.

use std::{collections::BTreeMap, fmt, str::FromStr};

/// Requested values by feature name, not yet checked against a registry. Names may be unknown, of
/// the other level, or [`crate::ALL_ALPHA`] and [`crate::ALL_BETA`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, bool>,
}

/// A flag text that is not a list of `NAME=BOOL`. The messages are those of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// An item has no `=`.
    #[error("missing bool value for {name}")]
    MissingValue {
        /// The item, without spaces around it.
        name: String,
    },
    /// The value is not one of the spellings that Go's `strconv.ParseBool` accepts.
    #[error("invalid value of {name}={value}, err: strconv.ParseBool: parsing {}: invalid syntax", go_quote(value))]
    InvalidValue {
        /// The name before the `=`.
        name: String,
        /// The text after the first `=`.
        value: String,
    },
}

impl Settings {
    /// Builds settings from pairs such as the entries of a configuration file. The last value of a
    /// name wins.
    pub fn from_pairs<N: Into<String>>(pairs: impl IntoIterator<Item = (N, bool)>) -> Settings {
        Settings { values: pairs.into_iter().map(|(name, value)| (name.into(), value)).collect() }
    }

    /// Adds `later`, whose values win, so that a repeated flag acts like one long flag.
    pub fn merge(&mut self, later: Settings) {
        self.values.extend(later.values);
    }

    /// Returns the requested value, or `None` if the settings do not mention the name.
    pub fn get(&self, name: &str) -> Option<bool> {
        self.values.get(name).copied()
    }

    /// All names and requested values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, bool)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Whether nothing is set, so that every feature has its default.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// Splits at `,`, skips empty items, trims around names and values; of a name given twice the last one counts.
impl FromStr for Settings {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Settings, ParseError> {
        let mut values = BTreeMap::new();
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name.trim(), value.trim()),
                None => return Err(ParseError::MissingValue { name: item.trim().to_owned() }),
            };
            let Some(on) = parse_bool(value) else {
                return Err(ParseError::InvalidValue { name: name.to_owned(), value: value.to_owned() });
            };
            values.insert(name.to_owned(), on);
        }
        Ok(Settings { values })
    }
}

/// `A=true,B=false`, by name; reads back as the same settings.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.values.iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Exactly the spellings of Go's `strconv.ParseBool`: `tRUE` or `yes` are not among them.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// As Go's `strconv.Quote`, which is how the value appears inside the message.
fn go_quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            ' '..='~' => quoted.push(c),
            '\0'..='\x7f' => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ if is_print(c) => quoted.push(c),
            '\u{80}'..='\u{ffff}' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// Rust's debug form escapes the unprintable. A letter goes first, since a combining mark on its own is escaped too.
fn is_print(c: char) -> bool {
    format!("a{c}").escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_go_and_no_other() {
        for text in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(parse_bool(text), Some(true), "{text}");
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(parse_bool(text), Some(false), "{text}");
        }
        for text in ["", "yes", "on", "tRUE", "TrUe", "01", "true ", "2"] {
            assert_eq!(parse_bool(text), None, "{text}");
        }
    }

    // The right-hand sides were printed by Go's strconv.Quote.
    #[test]
    fn quotes_as_go_does() {
        let cases = [
            ("", r#""""#),
            ("maybe", r#""maybe""#),
            ("\"x", r#""\"x""#),
            ("it's", r#""it's""#),
            ("a\\b", r#""a\\b""#),
            ("a\n\t\x01\x7f", r#""a\n\t\x01\x7f""#),
            ("ä€😀", r#""ä€😀""#),
            ("\u{feff}", r#""\ufeff""#),
            ("\u{301}\u{a0}\u{3000}", "\"\u{301}\\u00a0\\u3000\""),
            ("\u{200b}", r#""\u200b""#),
            ("\u{e0001}", r#""\U000e0001""#),
        ];
        for (text, want) in cases {
            assert_eq!(go_quote(text), want);
        }
    }

    #[test]
    fn later_settings_win() {
        let mut settings: Settings = "A=true,B=true".parse().expect("legal");
        settings.merge("B=false,C=1".parse().expect("legal"));
        assert_eq!(settings, Settings::from_pairs([("A", true), ("B", false), ("C", true)]));
        assert_eq!(settings.to_string(), "A=true,B=false,C=true");
    }
}
