//! YAML bodies, with the lines of keys that come twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::{DEPTH_MAX, Decoded, Twice, depth, json, number};

/// JSON or YAML; of keys that come twice the last one counts here too, and of several documents the first, as in Kubernetes.
pub(crate) fn yaml(bytes: &[u8]) -> Result<Decoded, String> {
    // JSON is YAML, and most of what is sent; keys that come twice are told as in YAML then.
    if let Some(decoded) = json(bytes).ok().filter(|decoded| decoded.twice == Twice::default()) {
        return Ok(decoded);
    }
    let text = first_document(std::str::from_utf8(bytes).map_err(|error| error.to_string())?);
    let strict = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::Error };
    let (mut value, lines) = match serde_saphyr::from_str_with_options(text, strict) {
        Ok(value) => (value, Vec::new()),
        Err(_) => (lenient::<Value>(text)?, lines(text)?),
    };
    if depth(&value) > DEPTH_MAX {
        return Err("exceeded max depth".to_owned());
    }
    make_whole(&mut value);
    Ok(Decoded { value, twice: Twice { paths: Vec::new(), lines } })
}

/// The text up to the end of its first document. What ends one stands at the beginning of a line, where no value can have it.
fn first_document(text: &str) -> &str {
    let (mut begun, mut end) = (false, 0);
    for line in text.split_inclusive('\n') {
        let marks = |mark: &str| {
            line.strip_prefix(mark).is_some_and(|rest| rest.trim_start().len() < rest.len() || rest.is_empty())
        };
        if begun && (marks("---") || marks("...")) {
            return &text[..end];
        }
        // Comments, empty lines and directives come before a document.
        begun |= !line.trim_start().is_empty() && !line.trim_start().starts_with('#') && !line.starts_with('%');
        end += line.len();
    }
    text
}

/// Numbers as they are read from JSON.
fn make_whole(value: &mut Value) {
    match value {
        Value::Number(found) if found.is_f64() => *value = found.as_f64().map_or(Value::Null, number),
        Value::Object(map) => map.values_mut().for_each(make_whole),
        Value::Array(list) => list.iter_mut().for_each(make_whole),
        _ => {}
    }
}

fn lenient<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    let lenient = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    serde_saphyr::from_str_with_options(text, lenient).map_err(|error| first_line(&error.to_string()))
}

/// What is wrong and where, without the excerpt of the text that follows.
fn first_line(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn lines(text: &str) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    lenient::<Node>(text)?.name_twice(&mut lines);
    Ok(lines)
}

/// A value of which nothing but the keys of its maps and their places count.
enum Node {
    Map(Vec<(String, Spanned<Node>)>),
    List(Vec<Node>),
    Leaf,
}

impl Node {
    /// In the order, and with the lines, in which Kubernetes' parser names them: what is within a value comes before its own key,
    /// and the line is that of the value.
    fn name_twice(&self, lines: &mut Vec<String>) {
        match self {
            Node::Map(members) => {
                let mut seen = std::collections::BTreeSet::new();
                for (key, node) in members {
                    node.value.name_twice(lines);
                    if !seen.insert(key) {
                        lines.push(format!("line {}: key {key:?} already set in map", node.referenced.line()));
                    }
                }
            }
            Node::List(items) => items.iter().for_each(|item| item.name_twice(lines)),
            Node::Leaf => {}
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        Ok(Node::Map(members))
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("a: 1\nb: 2\n" => (r#"{"a":1,"b":2}"#.to_owned(), vec![]); "none")]
    #[test_case("a: 1\nb: 2\na: 3\n" => (r#"{"a":3,"b":2}"#.to_owned(), vec!["line 3: key \"a\" already set in map".to_owned()]); "one")]
    #[test_case("a:\n  b: 1\n  b: 2\na:\n  c: 1\n" => (r#"{"a":{"c":1}}"#.to_owned(),
        vec!["line 3: key \"b\" already set in map".to_owned(), "line 5: key \"a\" already set in map".to_owned()]); "in each other")]
    #[test_case("l:\n- x: 1\n  x: 2\n- x: 1\n" => (r#"{"l":[{"x":2},{"x":1}]}"#.to_owned(), vec!["line 3: key \"x\" already set in map".to_owned()]); "in a list")]
    #[test_case("{\"a\": 1, \"a\": 2}" => (r#"{"a":2}"#.to_owned(), vec!["line 1: key \"a\" already set in map".to_owned()]); "in JSON")]
    #[test_case("a: &x {k: 1}\nb: *x\n" => (r#"{"a":{"k":1},"b":{"k":1}}"#.to_owned(), vec![]); "an alias is no repetition")]
    fn keys_that_come_twice(text: &str) -> (String, Vec<String>) {
        let decoded = yaml(text.as_bytes()).unwrap();
        (decoded.value.to_string(), decoded.twice.lines)
    }

    #[test_case("a: 1\n---\na: 2\n" => r#"{"a":1}"#; "two")]
    #[test_case("---\na: 1\n" => r#"{"a":1}"#; "one that begins")]
    #[test_case("# why\n\n--- # what\na: 1\n...\n{{{" => r#"{"a":1}"#; "one that begins and ends")]
    #[test_case("a: 1\n--- \n" => r#"{"a":1}"#; "none after it")]
    #[test_case("a: 1\r\n---\r\nb: 1\r\n" => r#"{"a":1}"#; "lines of Windows")]
    #[test_case("---\n---\na: 1\n" => "null"; "nothing first")]
    #[test_case("a: |\n  x\n  ---\n  y\nb: ---x\n" => r#"{"a":"x\n---\ny\n","b":"---x"}"#; "no mark at all")]
    fn of_several_documents_the_first_counts(text: &str) -> String {
        yaml(text.as_bytes()).unwrap().value.to_string()
    }

    #[test_case("a: [b"; "a list without end")]
    #[test_case("a: 1\na: [b"; "twice and without end")]
    #[test_case("\u{0}"; "no text")]
    fn what_is_no_yaml_is_refused(text: &str) {
        assert!(yaml(text.as_bytes()).is_err());
    }

    #[test]
    fn yaml_is_as_deep_as_json_may_be() {
        let nested = |depth: usize| (0..depth).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<String>();
        assert!(yaml(nested(30).as_bytes()).is_ok());
        for depth in [102, 120, 1000] {
            assert!(yaml(nested(depth).as_bytes()).is_err(), "{depth}");
            assert!(yaml(format!("b: 1\nb: 2\n{}", nested(depth)).as_bytes()).is_err(), "{depth}");
        }
    }
}
