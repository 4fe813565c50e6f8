//! Times as probes carry them: RFC 3339, as Go prints and reads it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// In UTC, to the nanosecond.
pub(crate) fn format(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute, second) = (seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:09}Z", since.subsec_nanos())
}

/// `None` for what is no time since 1970.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let mark = |at: usize, mark: char| text.get(at..)?.starts_with(mark).then_some(());
    mark(4, '-').and(mark(7, '-')).and(mark(10, 'T').or(mark(10, 't'))).and(mark(13, ':')).and(mark(16, ':'))?;
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60
    {
        return None;
    }
    let rest = text.get(19..)?;
    let digits = rest.strip_prefix('.').map_or(0, |r| r.bytes().take_while(u8::is_ascii_digit).count());
    let zone = if digits == 0 { rest } else { rest.get(1 + digits..)? };
    let nanos = if digits == 0 { 0 } else { format!("{:0<9}", rest.get(1..1 + digits.min(9))?).parse().ok()? };
    let seconds =
        (days(year, month, day) * DAY + hour * 3600 + minute * 60 + second).checked_add_signed(-offset(zone)?)?;
    Some(UNIX_EPOCH + Duration::new(seconds, nanos))
}

/// Seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" || zone == "z" {
        return Some(0);
    }
    let sign = if zone.starts_with('+') { 1 } else { -1 };
    let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    Some(sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
}

/// The date of a day since 1970. Years are counted from March, so that the leap day ends one.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// The reverse; `year` is 1970 or later.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let of_era = year % 400;
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    year / 400 * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("1970-01-01T00:00:00Z" => Some(0))]
    #[test_case("2000-02-29T12:00:01Z" => Some(951_825_601))]
    #[test_case("2026-11-16T07:00:04.25+01:00" => Some(1_794_808_804))]
    #[test_case("2026-11-15T22:30:04.123456789-07:30" => Some(1_794_808_804))]
    #[test_case("2026-11-16 06:00:04Z" => None)]
    #[test_case("2026-13-16T06:00:04Z" => None)]
    #[test_case("2026-11-16T06:00:04" => None ; "no zone")]
    #[test_case("1970-01-01T00:00:00+01:00" => None ; "before all time")]
    #[test_case("0000-01-01T00:00:00Z" => None)]
    #[test_case("ä" => None)]
    fn parses(text: &str) -> Option<u64> {
        parse(text).map(|time| time.duration_since(UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn formats_what_it_parses() {
        for seconds in (0..4_102_444_800_u64).step_by(12_345_678) {
            let time = UNIX_EPOCH + Duration::new(seconds, 120_000_000);
            assert_eq!(parse(&format(time)), Some(time));
        }
        assert_eq!(format(UNIX_EPOCH + Duration::new(951_825_601, 5)), "2000-02-29T12:00:01.000000005Z");
    }
}
