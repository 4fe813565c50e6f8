//! Log lines on standard error, in the shape etcdutl gives them: time, level, message, fields as JSON.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// What was done, for people and for scripts that wait for it.
pub(crate) fn info(message: &str, fields: &[(&str, Value)]) {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name:?}: {value}")).collect();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    eprintln!("{}\tinfo\tlockgateutl\t{message}\t{{{}}}", rfc3339(seconds), fields.join(", "));
}

/// Seconds since 1970 as `2026-11-16T04:00:26Z`.
fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // Counted from 1 March 0000, so that a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    #[test_case(0 => "1970-01-01T00:00:00Z")]
    #[test_case(951_782_400 => "2000-02-29T00:00:00Z")]
    #[test_case(1_794_801_626 => "2026-11-16T04:00:26Z")]
    #[test_case(4_107_542_399 => "2100-02-28T23:59:59Z")]
    fn times(seconds: u64) -> String {
        super::rfc3339(seconds)
    }
}
