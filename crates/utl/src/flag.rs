//! Values of flags as Go's flag package reads them, with its error texts.

use std::time::Duration;

/// A signed number: decimal, or with `0x`, `0o`, `0b`.
pub fn int(text: &str) -> Result<i64, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = magnitude("ParseInt", text, digits)?;
    i64::try_from(sign * i128::from(magnitude)).map_err(|_| parse_error("ParseInt", text, "value out of range"))
}

pub fn uint(text: &str) -> Result<u64, String> {
    magnitude("ParseUint", text, text)
}

fn magnitude(function: &str, text: &str, digits: &str) -> Result<u64, String> {
    let lower = digits.to_ascii_lowercase();
    let (radix, body) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, &lower[..]),
    };
    let body = body.replace('_', "");
    if body.is_empty() || !body.chars().all(|digit| digit.is_digit(radix)) {
        return Err(parse_error(function, text, "invalid syntax"));
    }
    u64::from_str_radix(&body, radix).map_err(|_| parse_error(function, text, "value out of range"))
}

pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(parse_error("ParseBool", text, "invalid syntax")),
    }
}

fn parse_error(function: &str, text: &str, what: &str) -> String {
    format!("strconv.{function}: parsing {text:?}: {what}")
}

/// `300ms`, `1m30s`, `1.5h`; negative ones do not exist here.
pub fn duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("time: invalid duration {text:?}");
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
        rest = &rest[end..];
        let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        nanos += value
            * match &rest[..end] {
                "ns" => 1.0,
                "us" | "µs" | "μs" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                "m" => 60e9,
                "h" => 3600e9,
                "" => return Err(format!("time: missing unit in duration {text:?}")),
                unit => return Err(format!("time: unknown unit {unit:?} in duration {text:?}")),
            };
        rest = &rest[end..];
    }
    if nanos > i64::MAX as f64 { Err(invalid()) } else { Ok(Duration::from_nanos(nanos as u64)) }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("12" => Ok(12))]
    #[test_case("-0x10" => Ok(-16))]
    #[test_case("x" => Err(r#"strconv.ParseInt: parsing "x": invalid syntax"#.into()))]
    #[test_case("9223372036854775808" => Err(r#"strconv.ParseInt: parsing "9223372036854775808": value out of range"#.into()))]
    fn ints(text: &str) -> Result<i64, String> {
        int(text)
    }

    #[test_case("7" => Ok(7))]
    #[test_case("-1" => Err(r#"strconv.ParseUint: parsing "-1": invalid syntax"#.into()))]
    fn uints(text: &str) -> Result<u64, String> {
        uint(text)
    }

    #[test_case("1m30.5s" => Ok(Duration::from_millis(90_500)))]
    #[test_case("0" => Ok(Duration::ZERO))]
    #[test_case("5" => Err(r#"time: missing unit in duration "5""#.into()))]
    #[test_case("x" => Err(r#"time: invalid duration "x""#.into()))]
    fn durations(text: &str) -> Result<Duration, String> {
        duration(text)
    }
}
