//! Times in JSON, by the layouts of Kubernetes' types, in the words of Go's parser.

/// One step of a layout: how Go writes it.
const SECONDS: [&str; 11] = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
const MICROSECONDS: &str = ".000000";
const ZONE: &str = "Z07:00";

/// A `Time`, kept in UTC; a fraction of a second is passed over.
pub(super) fn second(text: &str) -> Result<String, String> {
    read(text, false, "%Y-%m-%dT%H:%M:%SZ")
}

/// A `MicroTime`, which has six digits after the second.
pub(super) fn micro(text: &str) -> Result<String, String> {
    read(text, true, "%Y-%m-%dT%H:%M:%S%.6fZ")
}

fn read(text: &str, micro: bool, form: &str) -> Result<String, String> {
    let layout = format!("{}{}{ZONE}", SECONDS.concat(), if micro { MICROSECONDS } else { "" });
    let unlike =
        |(rest, step): (&str, &str)| format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {step:?}");
    let rest = steps(text, micro).map_err(unlike)?;
    if !rest.is_empty() {
        return Err(format!("parsing time {text:?}: extra text: {rest:?}"));
    }
    let time =
        text.parse::<jiff::Timestamp>().map_err(|_| format!("parsing time {text:?}: {} out of range", part(text)))?;
    Ok(time.strftime(form).to_string())
}

/// What is left after all steps, or the rest and the step that it does not begin with.
fn steps(text: &str, micro: bool) -> Result<&str, (&str, &'static str)> {
    let mut rest = text;
    for step in SECONDS {
        rest = after(rest, step).ok_or((rest, step))?;
    }
    rest = if micro { after(rest, MICROSECONDS).ok_or((rest, MICROSECONDS))? } else { after_fraction(rest) };
    if let Some(rest) = rest.strip_prefix('Z') {
        return Ok(rest);
    }
    let zone = rest.get(..6).filter(|zone| zone.starts_with(['+', '-']));
    let zone = zone
        .and_then(|zone| after(&zone[1..], "07").and_then(|rest| after(rest, ":")).and_then(|rest| after(rest, "00")));
    if zone.is_some() { Ok(&rest[6..]) } else { Err((rest, ZONE)) }
}

/// What follows a step: digits stand for digits, the rest for itself.
fn after<'a>(text: &'a str, step: &str) -> Option<&'a str> {
    let found = text.get(..step.len())?;
    let fits =
        |(found, wanted): (char, char)| if wanted.is_ascii_digit() { found.is_ascii_digit() } else { found == wanted };
    found.chars().zip(step.chars()).all(fits).then(|| &text[step.len()..])
}

fn after_fraction(text: &str) -> &str {
    let Some(digits) = text.strip_prefix(['.', ',']) else { return text };
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() < digits.len() { rest } else { text }
}

/// Which part of a well-formed time does not exist.
fn part(text: &str) -> &'static str {
    let number = |at: usize| text.get(at..at + 2).and_then(|part| part.parse::<u8>().ok()).unwrap_or_default();
    match () {
        () if !(1..=12).contains(&number(5)) => "month",
        () if number(11) > 23 => "hour",
        () if number(14) > 59 => "minute",
        () if number(17) > 59 => "second",
        () => "day",
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    /// Texts of kube-apiserver 1.36.3.
    #[test_case("x" => r#"parsing time "x" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "x" as "2006""#)]
    #[test_case("2026-01-02T03:04:05Z" => r#"parsing time "2026-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#)]
    #[test_case("2026-01-02T03:04:05.1Z" => r#"parsing time "2026-01-02T03:04:05.1Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse ".1Z" as ".000000""#)]
    #[test_case("2026-01-02T03:04:05.123456789Z" => r#"parsing time "2026-01-02T03:04:05.123456789Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "789Z" as "Z07:00""#)]
    #[test_case("2026-01-02T03:04:05.123456Z" => "2026-01-02T03:04:05.123456Z")]
    #[test_case("2026-13-02T03:04:05.123456Z" => r#"parsing time "2026-13-02T03:04:05.123456Z": month out of range"#)]
    #[test_case("2026-01-02T03:04:05.123456Zx" => r#"parsing time "2026-01-02T03:04:05.123456Zx": extra text: "x""#)]
    fn micros(text: &str) -> String {
        micro(text).unwrap_or_else(|why| why)
    }

    #[test_case("2026-01-02T03:04:05.9+01:00" => "2026-01-02T02:04:05Z")]
    #[test_case("2026-02-30T03:04:05Z" => r#"parsing time "2026-02-30T03:04:05Z": day out of range"#)]
    #[test_case("2026-01-02" => r#"parsing time "2026-01-02" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#)]
    fn seconds(text: &str) -> String {
        second(text).unwrap_or_else(|why| why)
    }
}
