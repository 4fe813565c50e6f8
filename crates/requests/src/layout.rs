//! JSON for people: what fits is on one line, what does not has a line for each member.

use serde_json::Value;

const WIDTH: usize = 140;

pub(crate) fn print(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, 0, &mut out);
    out
}

/// `before` is what stands on the line already.
fn write(value: &Value, depth: usize, before: usize, out: &mut String) {
    let line = value.to_string();
    if depth + before + line.chars().count() <= WIDTH {
        return out.push_str(&line);
    }
    match value {
        Value::Object(map) if !map.is_empty() => {
            let members = map.iter().map(|(key, value)| (format!("{}: ", Value::from(key.as_str())), value));
            block('{', members, '}', depth, out);
        }
        Value::Array(items) if !items.is_empty() => {
            block('[', items.iter().map(|item| (String::new(), item)), ']', depth, out);
        }
        _ => out.push_str(&line),
    }
}

fn block<'a>(
    open: char,
    members: impl Iterator<Item = (String, &'a Value)>,
    close: char,
    depth: usize,
    out: &mut String,
) {
    out.push(open);
    for (n, (key, value)) in members.enumerate() {
        out.push_str(if n == 0 { "\n" } else { ",\n" });
        out.push_str(&" ".repeat(depth + 1));
        out.push_str(&key);
        write(value, depth + 1, key.chars().count(), out);
    }
    out.push('\n');
    out.push_str(&" ".repeat(depth));
    out.push(close);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_too_long_is_broken() {
        let long = "x".repeat(WIDTH);
        assert_eq!(print(&json!({"a": {"b": 1}})), r#"{"a":{"b":1}}"#);
        assert_eq!(
            print(&json!({"a": [1, long], "b": {}})),
            format!("{{\n \"a\": [\n  1,\n  \"{long}\"\n ],\n \"b\": {{}}\n}}")
        );
    }
}
