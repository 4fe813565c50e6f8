//! Durations as Go writes them, such as `1.5s` or `1m30s`.

use std::time::Duration;

/// `None` if the text is no duration. A negative one is zero: it means no waiting.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut seconds) = (unsigned, 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        seconds += number * scale(&rest[..unit])?;
        rest = &rest[unit..];
    }
    if text.starts_with('-') { Some(Duration::ZERO) } else { Duration::try_from_secs_f64(seconds).ok() }
}

fn scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    #[test_case("1.5s" => Some(1500); "fraction")]
    #[test_case("1m30s" => Some(90_000); "two units")]
    #[test_case("100ms" => Some(100); "milliseconds")]
    #[test_case("2000us" => Some(2); "microseconds")]
    #[test_case("0" => Some(0); "zero")]
    #[test_case("-1s" => Some(0); "negative")]
    #[test_case("1" => None; "no unit")]
    #[test_case("" => None; "nothing")]
    #[test_case("s" => None; "no number")]
    #[test_case("1d" => None; "unknown unit")]
    fn millis(text: &str) -> Option<u128> {
        super::parse(text).map(|d| d.as_millis())
    }
}
