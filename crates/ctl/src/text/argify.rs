//! A line typed by a user, cut into arguments.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use cli::unquote_prefix;

/// Cuts a line at spaces. `'…'` is taken as it is, `"…"` with escapes; a quote inside a word is part of it.
/// `None` if an escape is invalid.
pub(crate) fn argify(line: &str) -> Option<Vec<OsString>> {
    let (mut args, mut rest) = (Vec::new(), line);
    while let Some(first) = rest.chars().next() {
        let (arg, after) = match first {
            '"' => match closing_quote(rest) {
                Some(end) => (Some(OsString::from_vec(unquote_prefix(&rest[..=end])?.0)), &rest[end + 1..]),
                None => (None, &rest[1..]),
            },
            '\'' => match rest[1..].split_once('\'') {
                Some((raw, after)) => (Some(raw.into()), after),
                None => (None, &rest[1..]),
            },
            c if is_space(c) => (None, &rest[1..]),
            _ => {
                let end = rest.find(is_space).unwrap_or(rest.len());
                (Some(rest[..end].into()), &rest[end..])
            }
        };
        args.extend(arg);
        rest = after;
    }
    Some(args)
}

/// Where a string that starts with `"` ends, minding backslashes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = |(_, c): &(usize, char)| {
        let found = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        found
    };
    text.char_indices().skip(1).find(end).map(|(at, _)| at)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r')
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("put a b" => Some(vec!["put".into(), "a".into(), "b".into()]))]
    #[test_case("  put\t'a b'  \"c \\\"d\\\"\" " => Some(vec!["put".into(), "a b".into(), "c \"d\"".into()]))]
    #[test_case("put k\"x y" => Some(vec!["put".into(), "k\"x".into(), "y".into()]))]
    #[test_case("put \"open" => Some(vec!["put".into(), "open".into()]))]
    #[test_case("get \"\"" => Some(vec!["get".into(), "".into()]))]
    #[test_case("get \"\\q\"" => None)]
    #[test_case("" => Some(vec![]))]
    fn cuts(line: &str) -> Option<Vec<OsString>> {
        argify(line)
    }
}
