//! `timeout` in an address. Answers come sooner than any that makes sense, so that all there is to do is to refuse what is none.

use super::query::Query;
use crate::status::{Result, Status};

const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 6e10), ("h", 3.6e12)];

/// Watches have no such end.
pub(crate) fn check(query: &Query, verb: &str) -> Result<()> {
    let fault = query.get("timeout").filter(|_| verb != "watch").and_then(fault);
    match fault {
        Some(why) => Err(Status::bad_request(format!("invalid timeout specified in the request URL - {why}"))),
        None => Ok(()),
    }
}

/// Why a text is no duration, in the words of Go's parser.
fn fault(text: &str) -> Option<String> {
    let invalid = || Some(format!("time: invalid duration {text:?}"));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    match rest {
        "" => return invalid(),
        "0" => return None,
        _ => {}
    }
    let mut nanos = 0.0;
    while !rest.is_empty() {
        let (number, after) = number(rest);
        let Ok(number) = number.parse::<f64>() else { return invalid() };
        let (unit, after) = split(after, |c| !c.is_ascii_digit() && c != '.');
        let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Some(match unit {
                "" => format!("time: missing unit in duration {text:?}"),
                _ => format!("time: unknown unit {unit:?} in duration {text:?}"),
            });
        };
        nanos += number * length;
        rest = after;
    }
    if nanos < i64::MAX as f64 { None } else { invalid() }
}

/// Digits, and those after a dot.
fn number(text: &str) -> (&str, &str) {
    let after = split(text, |c| c.is_ascii_digit()).1;
    let after = after.strip_prefix('.').map_or(after, |fraction| split(fraction, |c| c.is_ascii_digit()).1);
    text.split_at(text.len() - after.len())
}

fn split(text: &str, of: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !of(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    /// Texts of Go's `time.ParseDuration`.
    #[test_case("3m" => ""; "minutes")]
    #[test_case("0" => ""; "none")]
    #[test_case("-1.5h30m" => ""; "less than none")]
    #[test_case(".5s" => ""; "a half")]
    #[test_case("invalid" => r#"time: invalid duration "invalid""#; "a word")]
    #[test_case("-" => r#"time: invalid duration "-""#; "a sign")]
    #[test_case("." => r#"time: invalid duration ".""#; "a dot")]
    #[test_case("5" => r#"time: missing unit in duration "5""#; "a number")]
    #[test_case("5s0" => r#"time: missing unit in duration "5s0""#; "a number at the end")]
    #[test_case("5d" => r#"time: unknown unit "d" in duration "5d""#; "days")]
    #[test_case("1.2.3s" => r#"time: missing unit in duration "1.2.3s""#; "two dots")]
    #[test_case("3000000h" => r#"time: invalid duration "3000000h""#; "too long")]
    fn faults(text: &str) -> String {
        fault(text).unwrap_or_default()
    }
}
