//! A setting's value: read from text with Go's rules for flags, shown as it would be written.

use super::duration;
use super::table::Kind;
use super::url::{self, Url};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// Nanoseconds.
    Duration(i64),
    Text(String),
    List(Vec<String>),
    Urls(Vec<Url>),
}

impl Value {
    /// Reads `text` as a value of this kind; the error is the reason alone, in Go's words where Go has some.
    pub(super) fn parse(kind: Kind, text: &str) -> Result<Value, String> {
        match kind {
            Kind::Bool => parse_bool(text).map(Value::Bool).ok_or_else(parse_error),
            Kind::Int => parse_int(text).map(Value::Int),
            Kind::Uint => parse_uint(text).map(Value::Uint),
            Kind::Uint32 => match parse_uint(text)? {
                n if n > u64::from(u32::MAX) => Err(out_of_range()),
                n => Ok(Value::Uint(n)),
            },
            Kind::Duration => duration::parse(text).map(Value::Duration).ok_or_else(parse_error),
            Kind::Text => Ok(Value::Text(text.to_owned())),
            Kind::List => Ok(Value::List(split_list(text))),
            Kind::Urls if text.is_empty() => Ok(Value::Urls(Vec::new())),
            Kind::Urls => Url::parse_list(text).map(Value::Urls).map_err(|err| err.to_string()),
            Kind::Origins if text.is_empty() || text == "*" => Ok(Value::List(vec!["*".to_owned()])),
            Kind::Origins => {
                let urls = Url::parse_list(text).map_err(|err| err.to_string())?;
                Ok(Value::List(urls.iter().map(|url| url.as_str().to_owned()).collect()))
            }
            Kind::OneOf(names) if names.contains(&text) => Ok(Value::Text(text.to_owned())),
            Kind::OneOf(names) => Err(format!("invalid value, expected one of {}", quoted(names))),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Bool(b) => b.fmt(f),
            Value::Int(n) => n.fmt(f),
            Value::Uint(n) => n.fmt(f),
            Value::Duration(nanos) => f.write_str(&duration::format(*nanos)),
            Value::Text(text) => f.write_str(text),
            Value::List(items) => f.write_str(&items.join(",")),
            Value::Urls(urls) => f.write_str(&url::join(urls)),
        }
    }
}

fn split_list(text: &str) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { text.split(',').map(str::to_owned).collect() }
}

fn quoted(names: &[&str]) -> String {
    names.iter().filter(|name| !name.is_empty()).map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

fn parse_int(text: &str) -> Result<i64, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = i128::from(parse_uint(digits)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).map_err(|_| out_of_range())
}

/// Decimal, or with a prefix `0x`, `0o`, `0b` or `0`; underscores between digits are allowed, as Go's base 0 does.
fn parse_uint(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let plain = digits.replace('_', "");
    let underscores_ok = !digits.ends_with('_') && !digits.contains("__") && (radix != 10 || !digits.starts_with('_'));
    if plain.is_empty() || !underscores_ok || !plain.chars().all(|c| c.is_digit(radix)) {
        return Err(parse_error());
    }
    u64::from_str_radix(&plain, radix).map_err(|_| out_of_range())
}

fn parse_error() -> String {
    "parse error".to_owned()
}

fn out_of_range() -> String {
    "value out of range".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_go_reads_them() {
        for (text, want) in [
            ("10", Ok(10)),
            ("0", Ok(0)),
            ("0x10", Ok(16)),
            ("010", Ok(8)),
            ("0b11", Ok(3)),
            ("1_000", Ok(1000)),
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err("value out of range")),
            ("-1", Err("parse error")),
            ("", Err("parse error")),
            ("0x", Err("parse error")),
            ("1__0", Err("parse error")),
            ("_1", Err("parse error")),
            ("9a", Err("parse error")),
        ] {
            assert_eq!(parse_uint(text), want.map_err(str::to_owned), "{text}");
        }
        assert_eq!(parse_int("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(parse_int("9223372036854775808"), Err("value out of range".to_owned()));
        assert_eq!(parse_int("--1"), Err("parse error".to_owned()));
    }
}
