//! Values as Go writes them in messages: clients know the texts of Kubernetes.

use serde_json::Value;

/// A value in the message of an error.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) if number.is_f64() => number.as_f64().map_or_else(|| number.to_string(), float),
        Value::Array(_) | Value::Object(_) => json(value),
        other => other.to_string(),
    }
}

/// Text in quotes, with what does not print as an escape (`%q`).
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() || is_blank(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Spaces other than the common one, and marks that nobody sees.
fn is_blank(c: char) -> bool {
    !c.is_ascii() && (c.is_whitespace() || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'))
}

/// A number with a fraction (`%v`): as short as can be, with an exponent from a million on.
pub(crate) fn float(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or_default() {
        exponent @ (..-4 | 6..) => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
        _ => number.to_string(),
    }
}

/// JSON that can be put into a web page.
pub(crate) fn json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    // They can only be within strings.
    let escaped = |c: char| match c {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!("a\"b\u{1}\u{a0}ü") => "\"a\\\"b\\x01\\u00a0ü\""; "text")]
    #[test_case(json!(12) => "12"; "integer")]
    #[test_case(json!(2.5) => "2.5"; "fraction")]
    #[test_case(json!(1234567.5) => "1.2345675e+06"; "large")]
    #[test_case(json!(-2.5e-7) => "-2.5e-07"; "small")]
    #[test_case(json!(null) => "null"; "nothing")]
    #[test_case(json!({"a": "<b>"}) => r#"{"a":"\u003cb\u003e"}"#; "object")]
    fn is_shown(value: Value) -> String {
        shown(&value)
    }
}
