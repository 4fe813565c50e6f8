//! Values of flags and arguments as Go reads them, with its error texts.

use std::time::Duration;

/// A signed number as a flag takes it: decimal, or with `0x`, `0o`, `0b`, and `_` between digits.
pub fn int(text: &str) -> Result<i64, String> {
    let (negative, digits) = sign(text);
    signed("ParseInt", text, negative, prefixed("ParseInt", text, digits)?)
}

/// A number without sign, written in the same ways.
pub fn uint(text: &str) -> Result<u64, String> {
    prefixed("ParseUint", text, text)
}

/// A signed number in one base, as an argument.
pub fn int_radix(text: &str, radix: u32) -> Result<i64, String> {
    let (negative, digits) = sign(text);
    signed("ParseInt", text, negative, magnitude("ParseInt", text, digits, radix)?)
}

pub fn uint_radix(text: &str, radix: u32) -> Result<u64, String> {
    magnitude("ParseUint", text, text, radix)
}

fn sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// Digits whose base their beginning tells.
fn prefixed(function: &str, text: &str, digits: &str) -> Result<u64, String> {
    let lower = digits.to_ascii_lowercase();
    let (radix, body) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, &lower[..]),
    };
    magnitude(function, text, &body.replace('_', ""), radix)
}

fn magnitude(function: &str, text: &str, digits: &str, radix: u32) -> Result<u64, String> {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(syntax(function, text));
    }
    u64::from_str_radix(digits, radix).map_err(|_| range(function, text))
}

fn signed(function: &str, text: &str, negative: bool, magnitude: u64) -> Result<i64, String> {
    let value = i128::from(magnitude) * if negative { -1 } else { 1 };
    i64::try_from(value).map_err(|_| range(function, text))
}

fn syntax(function: &str, text: &str) -> String {
    format!("strconv.{function}: parsing {}: invalid syntax", crate::quote(text.as_bytes()))
}

fn range(function: &str, text: &str) -> String {
    format!("strconv.{function}: parsing {}: value out of range", crate::quote(text.as_bytes()))
}

pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(syntax("ParseBool", text)),
    }
}

/// `300ms`, `1m30s`, `1.5h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("time: invalid duration {}", crate::quote(text.as_bytes()));
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanos = 0f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
        let value: f64 = rest[..end].parse().map_err(|_| invalid())?;
        let unit_end = rest[end..].find(|c: char| c == '.' || c.is_ascii_digit()).map_or(rest.len(), |n| n + end);
        let unit = &rest[end..unit_end];
        nanos += value
            * match unit {
                "ns" => 1.0,
                "us" | "µs" | "μs" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                "m" => 60e9,
                "h" => 3600e9,
                "" => return Err(format!("time: missing unit in duration {}", crate::quote(text.as_bytes()))),
                _ => {
                    let quote = |text: &str| crate::quote(text.as_bytes());
                    return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text)));
                }
            };
        rest = &rest[unit_end..];
    }
    if nanos > i64::MAX as f64 { Err(invalid()) } else { Ok(Duration::from_nanos(nanos as u64)) }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("12" => Ok(12))]
    #[test_case("-0x10" => Ok(-16))]
    #[test_case("0_7" => Ok(7))]
    #[test_case("-9223372036854775808" => Ok(i64::MIN))]
    #[test_case("9223372036854775808" => Err(r#"strconv.ParseInt: parsing "9223372036854775808": value out of range"#.into()))]
    #[test_case("x" => Err(r#"strconv.ParseInt: parsing "x": invalid syntax"#.into()))]
    #[test_case("" => Err(r#"strconv.ParseInt: parsing "": invalid syntax"#.into()))]
    #[test_case("é" => Err(r#"strconv.ParseInt: parsing "é": invalid syntax"#.into()))]
    fn ints(text: &str) -> Result<i64, String> {
        int(text)
    }

    #[test_case("7" => Ok(7))]
    #[test_case("-1" => Err(r#"strconv.ParseUint: parsing "-1": invalid syntax"#.into()))]
    fn uints(text: &str) -> Result<u64, String> {
        uint(text)
    }

    #[test_case("5s" => Ok(Duration::from_secs(5)))]
    #[test_case("1m30.5s" => Ok(Duration::from_millis(90_500)))]
    #[test_case("0" => Ok(Duration::ZERO))]
    #[test_case("5" => Err(r#"time: missing unit in duration "5""#.into()))]
    #[test_case("abc" => Err(r#"time: invalid duration "abc""#.into()))]
    #[test_case("5x" => Err(r#"time: unknown unit "x" in duration "5x""#.into()))]
    fn durations(text: &str) -> Result<Duration, String> {
        duration(text)
    }
}
