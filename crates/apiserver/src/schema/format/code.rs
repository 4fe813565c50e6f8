//! Numbers and codes that are written as text.

use std::sync::LazyLock;

use regex::Regex;

fn all(text: &str, fits: fn(&u8) -> bool) -> bool {
    text.bytes().all(|byte| fits(&byte))
}

/// Whole groups of four, the last one padded; nothing is none.
pub(super) fn is_base64(text: &str) -> bool {
    let plain = text.trim_end_matches('=');
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && text.len() - plain.len() <= 2 && all(plain, letter)
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && all(digits, u8::is_ascii_hexdigit)
}

/// Three numbers to 255, of which those below have no zero before them.
pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let number = |part: &str| {
        let part = part.trim_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let plain = !part.is_empty() && all(part, u8::is_ascii_digit) && (part == "0" || !part.starts_with('0'));
        plain && part.parse::<u16>().is_ok_and(|number| number <= 255)
    };
    let parts: Vec<&str> = inner.split(',').collect();
    parts.len() == 3 && parts.into_iter().all(number)
}

pub(super) fn is_ssn(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
    let gap = |at: usize| matches!(bytes[at], b'-' | b' ');
    bytes.len() == 11 && digits(0..3) && gap(3) && digits(4..6) && gap(6) && digits(7..11)
}

/// Groups of 8, 4, 4, 4 and 12 digits, each with a hyphen before it or none. Versions 4 and 5 also say of which kind they are.
pub(super) fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    let mut groups = Vec::with_capacity(5);
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        groups.push(group);
        rest = after;
    }
    let kind = || groups[3].starts_with(['8', '9', 'a', 'b', 'A', 'B']);
    rest.is_empty()
        && groups.iter().all(|group| all(group, u8::is_ascii_hexdigit))
        && version.is_none_or(|version| groups[2].starts_with(version) && (version == '3' || kind()))
}

/// Without the hyphens and spaces that such numbers are grouped by.
fn ungrouped(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ' | '\t' | '\n' | '\r' | '\u{c}')).collect()
}

fn digits(text: &str) -> Option<Vec<u32>> {
    text.chars().map(|c| c.to_digit(10)).collect()
}

/// The last may be ten, written as X.
pub(super) fn is_isbn10(text: &str) -> bool {
    let plain = ungrouped(text);
    if plain.len() != 10 || !plain.is_ascii() {
        return false;
    }
    let (first, last) = plain.split_at(9);
    let last = if last == "X" { Some(10) } else { last.parse().ok() };
    let (Some(first), Some(last)) = (digits(first), last) else { return false };
    let sum: u32 = (1..).zip(first.into_iter().chain([last])).map(|(place, digit)| place * digit).sum();
    sum.is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let Some(digits) = digits(&ungrouped(text)).filter(|digits| digits.len() == 13) else { return false };
    let sum: u32 = digits.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    sum.is_multiple_of(10)
}

/// A number of one of the large issuers whose check digit is right, with anything between its digits.
pub(super) fn is_credit_card(text: &str) -> bool {
    static ISSUED: LazyLock<Regex> = LazyLock::new(|| {
        let issuers = [
            "4[0-9]{12}([0-9]{3})?",
            "5[1-5][0-9]{14}",
            "6(011|5[0-9]{2})[0-9]{12}",
            "3[47][0-9]{13}",
            "3(0[0-5]|[68][0-9])[0-9]{11}",
            "(2131|1800|35[0-9]{3})[0-9]{11}",
        ];
        Regex::new(&format!("^({})$", issuers.join("|"))).expect("a sound pattern")
    });
    let plain: String = text.chars().filter(char::is_ascii_digit).collect();
    let weighed = |(index, digit): (usize, u32)| match index % 2 {
        1 => digit * 2 / 10 + digit * 2 % 10,
        _ => digit,
    };
    let sum: u32 = plain.chars().rev().filter_map(|c| c.to_digit(10)).enumerate().map(weighed).sum();
    ISSUED.is_match(&plain) && sum.is_multiple_of(10)
}
