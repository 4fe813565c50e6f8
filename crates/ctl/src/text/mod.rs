//! Values as text, written as Go programs write them, because scripts parse etcdctl's output.

pub(crate) mod argify;

use std::time::Duration;

/// `1m2.5s`, `4.034562ms`, `33µs`.
pub(crate) fn duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let fraction = |unit: u128, name: &str| {
        let digits = unit.ilog10() as usize;
        let text = format!("{}.{:0digits$}", nanos / unit, nanos % unit);
        format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => fraction(1_000, "µs"),
        1_000_000..1_000_000_000 => fraction(1_000_000, "ms"),
        _ => {
            let minutes = duration.as_secs() / 60;
            let seconds = Duration::new(duration.as_secs() % 60, duration.subsec_nanos());
            let digits = format!("{}.{:09}", seconds.as_secs(), seconds.subsec_nanos());
            let seconds = digits.trim_end_matches('0').trim_end_matches('.');
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// A JSON string; `<`, `>` and `&` are escaped, as Go does by default.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `\x61\x62`, for terminals that must not see raw bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(0 => "0s")]
    #[test_case(17 => "17ns")]
    #[test_case(33_000 => "33µs".to_owned(); "micro")]
    #[test_case(4_034_562 => "4.034562ms")]
    #[test_case(1_500_000_000 => "1.5s")]
    #[test_case(62_500_000_000 => "1m2.5s")]
    #[test_case(3_600_000_000_000 => "1h0m0s")]
    fn durations(nanos: u64) -> String {
        duration(Duration::from_nanos(nanos))
    }

    #[test]
    fn json_escapes() {
        assert_eq!(json("a\"<\n\u{1}é\u{2028}"), r#""a\"\u003c\n\u0001é\u2028""#);
    }
}
