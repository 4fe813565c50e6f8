//! Dates, times and spans of time.

use std::sync::LazyLock;

use regex::Regex;

use crate::cel::parse_duration;

/// Units, and words that begin like them.
const UNITS: &[(&[&str], &str)] = &[
    (&["ns"], "nano"),
    (&["us", "µs"], "micro"),
    (&["ms"], "milli"),
    (&["s"], "sec"),
    (&["m"], "min"),
    (&["h", "hr"], "hour"),
    (&["d"], "day"),
    (&["w", "wk"], "week"),
];

pub(super) fn is_date(text: &str) -> bool {
    text.len() == 10 && text.as_bytes()[0].is_ascii_digit() && text.parse::<jiff::civil::Date>().is_ok()
}

/// A date, a `T`, and a time of day with its offset, which may be any.
pub(super) fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        let time = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$";
        Regex::new(time).expect("a sound pattern")
    });
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.captures(time) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

/// Go's durations (`1h30m`), or a number and a unit anywhere in the text (`3 days`).
pub(super) fn is_duration(text: &str) -> bool {
    static SPAN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"([0-9]+)[ \t\n\r\x0c]*([A-Za-zµ]+)").expect("a sound pattern"));
    if parse_duration(text).is_some() {
        return true;
    }
    let mut spans = SPAN.captures_iter(text).map(|found| (found[1].parse::<i64>().ok(), found[2].to_lowercase()));
    let mut known = false;
    spans.all(|(number, unit)| {
        known |= is_unit(&unit);
        number.is_some()
    }) && known
}

fn is_unit(word: &str) -> bool {
    UNITS.iter().any(|(units, beginning)| units.contains(&word) || word.starts_with(beginning))
}
