//! JSON with the bytes that Go's `encoding/json` writes, since members compare and hash what they store.

use serde::Serialize;

/// Go escapes what could end a script element or a line in old browsers; everything else is as in `serde_json`.
/// The escaped characters occur in JSON inside strings alone, so they can be replaced in the finished text.
pub(super) fn to_vec(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let plain = serde_json::to_string(value)?;
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return Ok(plain.into_bytes());
    }
    let mut out = String::with_capacity(plain.len() + 16);
    for c in plain.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    Ok(out.into_bytes())
}

#[cfg(test)]
mod tests {
    #[test]
    fn escapes_as_go_does() {
        let text = super::to_vec(&"a<b>&c\u{2028}\u{8}\n\u{7f}é").unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "\"a\\u003cb\\u003e\\u0026c\\u2028\\b\\n\u{7f}é\"");
    }
}
