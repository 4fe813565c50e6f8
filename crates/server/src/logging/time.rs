//! Time stamps as zap writes them: `2006-01-02T15:04:05.000000Z`, with `+0200` instead of `Z` away from UTC.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Date and time of day in some zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub year: i64,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub micros: u32,
}

pub(super) fn write_now(text: &mut String) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    write(text, since, local_offset(since.as_secs() as i64));
}

fn write(text: &mut String, since: Duration, offset_seconds: i64) {
    let t = Civil::of(since, offset_seconds);
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}",
        t.year, t.month, t.day, t.hour, t.minute, t.second, t.micros
    );
    if offset_seconds == 0 {
        text.push('Z');
    } else {
        let (sign, minutes) = (if offset_seconds < 0 { '-' } else { '+' }, offset_seconds.abs() / 60);
        let _ = write!(text, "{sign}{:02}{:02}", minutes / 60, minutes % 60);
    }
}

impl Civil {
    pub(super) fn of(since: Duration, offset_seconds: i64) -> Civil {
        let seconds = since.as_secs() as i64 + offset_seconds;
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400) as u32);
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        Civil { year, month, day, hour, minute, second, micros: since.subsec_micros() }
    }
}

/// Gregorian date of a number of days since 1970-01-01, counted in years that begin in March so that leap days fall
/// at their end.
fn date_of(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = (if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 }) as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Seconds east of UTC; asked of the system once a minute, because asking reads the zone under a lock.
fn local_offset(now: i64) -> i64 {
    /// Minute of the answer and the answer, so that both change together.
    static CACHE: AtomicI64 = AtomicI64::new(i64::MIN);
    const SPAN: i64 = 1 << 20;
    let minute = now / 60;
    let cached = CACHE.load(Ordering::Relaxed);
    if cached.div_euclid(SPAN) == minute {
        return cached.rem_euclid(SPAN) - SPAN / 2;
    }
    // SAFETY: `tm` is plain data for which zeros are valid, and both pointers live over the call.
    let offset = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        let time = now as libc::time_t;
        if libc::localtime_r(&time, &mut tm).is_null() { 0 } else { tm.tm_gmtoff }
    };
    CACHE.store(minute * SPAN + offset + SPAN / 2, Ordering::Relaxed);
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps() {
        for (nanos, offset, want) in [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_000_000, 0, "2000-02-29T00:00:00.000000Z"),
            (1_763_262_393_723_294_999, 0, "2025-11-16T03:06:33.723294Z"),
            (1_763_262_393_723_294_999, 7_200, "2025-11-16T05:06:33.723294+0200"),
            (1_763_262_393_723_294_999, -12_600, "2025-11-15T23:36:33.723294-0330"),
            (4_107_542_399_000_000_000, 0, "2100-02-28T23:59:59.000000Z"),
            (4_107_542_400_000_000_000, 0, "2100-03-01T00:00:00.000000Z"),
        ] {
            let mut text = String::new();
            write(&mut text, Duration::from_nanos(nanos), offset);
            assert_eq!(text, want);
        }
    }

    #[test]
    fn offset_is_cached_and_plausible() {
        let first = local_offset(1_763_262_393);
        assert_eq!(local_offset(1_763_262_394), first);
        assert!(first.abs() <= 15 * 3600, "{first}");
    }
}
