//! Durations as Go writes and reads them: `1h30m`, `300ms`, `1.5s`, in nanoseconds.

const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Nanoseconds, or `None` if this is no duration or beyond 64 bits.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    let mut rest = rest;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (nanos, after) = parse_part(rest)?;
        total = total.checked_add(nanos)?;
        if total > i128::from(i64::MAX) + i128::from(negative) {
            return None;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// One number with its unit, such as `1.5s`, and what follows it.
fn parse_part(text: &str) -> Option<(i128, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|end| *end > 0)?;
    let (number, rest) = text.split_at(end);
    let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let scale = i128::from(UNITS.iter().find(|(name, _)| *name == unit)?.1);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let mut nanos = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()?.into() };
    nanos *= scale;
    // Digits beyond a nanosecond's share are cut off, as Go does.
    let digits = &fraction[..fraction.len().min(18)];
    if !digits.is_empty() {
        nanos += digits.parse::<i128>().ok()? * scale / 10_i128.pow(digits.len() as u32);
    }
    Some((nanos, rest))
}

/// The form of Go's `Duration.String`: `2h0m0s`, `300ms`, `0s`.
pub fn format(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let n = nanos.unsigned_abs();
    let text = match n {
        0 => return "0s".to_owned(),
        1..1_000 => format!("{n}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(n, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(n, 1_000_000)),
        _ => clock(n),
    };
    format!("{sign}{text}")
}

fn clock(n: u64) -> String {
    const MINUTE: u64 = 60_000_000_000;
    let seconds = decimal(n % MINUTE, 1_000_000_000);
    let minutes = n / MINUTE;
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, m) => format!("{m}m{seconds}s"),
        (h, m) => format!("{h}h{m}m{seconds}s"),
    }
}

/// `n / unit` without trailing zeros.
fn decimal(n: u64, unit: u64) -> String {
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", n / unit, n % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{format, parse};

    #[test]
    fn go_durations() {
        for (text, nanos, back) in [
            ("0", 0, "0s"),
            ("5s", 5_000_000_000, "5s"),
            ("1h30m", 5_400_000_000_000, "1h30m0s"),
            ("300ms", 300_000_000, "300ms"),
            ("1.5s", 1_500_000_000, "1.5s"),
            (".5m", 30_000_000_000, "30s"),
            ("1us", 1_000, "1µs"),
            ("2µs", 2_000, "2µs"),
            ("-10ns", -10, "-10ns"),
            ("2h", 7_200_000_000_000, "2h0m0s"),
            ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(parse(text), Some(nanos), "{text}");
            assert_eq!(format(nanos), back, "{text}");
        }
    }

    #[test]
    fn not_durations() {
        for text in ["", "5", "s", "5x", "5.s.", "1..2s", "-", "+", ".s", "9223372036854775808ns", "3000000h", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
