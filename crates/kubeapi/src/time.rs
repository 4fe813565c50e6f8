//! Times as the API has them.

use jiff::Timestamp;

/// Seconds since 1970, and the same as text.
pub fn now() -> (i64, String) {
    let now = Timestamp::now();
    (now.as_second(), to_text(now.as_second()))
}

/// As in conditions: whole seconds.
pub fn to_text(seconds: i64) -> String {
    Timestamp::from_second(seconds).map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default()
}

/// As in leases: always six digits after the point, since Go reads no others there.
pub fn micro_time() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// `None` if the text is no time.
pub fn seconds_of(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(|time| time.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_go_reads() {
        assert_eq!(to_text(1_767_225_600), "2026-01-01T00:00:00Z");
        assert_eq!(seconds_of("2026-01-01T00:00:00.250000Z"), Some(1_767_225_600));
        assert_eq!(seconds_of("yesterday"), None);
        let micro = micro_time();
        assert_eq!((micro.len(), micro.as_bytes()[19]), ("2026-01-01T00:00:00.000000Z".len(), b'.'), "{micro}");
    }
}
