//! An answer without what differs from run to run: identities, times, revisions, tokens, addresses.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use anyhow::Result;
use regex::Regex;
use serde_json::Value;

use crate::{layout, send::Answer};

/// Headers that clients read. Those every answer has are told where they are not as usual.
const HEADERS: [&str; 10] = [
    "Warning",
    "Allow",
    "Location",
    "Retry-After",
    "Content-Encoding",
    "WWW-Authenticate",
    "Vary",
    "ETag",
    "Last-Modified",
    "X-Content-Type-Options",
];
const CACHE: &str = "no-cache, private";

/// What one run of a script has seen.
pub(crate) struct Normal {
    address: String,
    versions: BTreeSet<String>,
    /// Objects, and the step in whose answer they were first.
    objects: BTreeMap<String, String>,
    /// Names that are made up in the answer at hand.
    prefix: Option<(Regex, String)>,
}

impl Normal {
    pub(crate) fn new(address: String) -> Normal {
        Normal { address, versions: BTreeSet::new(), objects: BTreeMap::new(), prefix: None }
    }

    /// What was answered to a step that sent `sent`.
    pub(crate) fn answer(&mut self, step: &str, sent: &Value, answer: &Answer) -> String {
        let kind = answer.header("content-type").unwrap_or("no content type");
        self.prefix = sent["metadata"]["generateName"].as_str().map(generated);
        let mut text = format!("{} {kind}", answer.code);
        if answer.body.starts_with(b"{\n ") {
            text.push_str(", indented");
        }
        for line in headers(answer) {
            text.push_str(&format!("\n{}", self.text(&line)));
        }
        let body = self.body(step, answer);
        if !body.is_empty() {
            text.push_str(&format!("\n{body}"));
        }
        text
    }

    /// One JSON value, one to a line as in a watch, or text.
    fn body(&mut self, step: &str, answer: &Answer) -> String {
        let bytes = answer.body.as_slice();
        if bytes.contains(&0) {
            return "<bytes>".to_owned();
        }
        let text = String::from_utf8_lossy(bytes);
        let values: Result<Vec<Value>> = match answer.header("content-type") {
            Some("application/yaml") => serde_saphyr::from_str(&text).map(|value| vec![value]).map_err(Into::into),
            _ => {
                serde_json::Deserializer::from_slice(bytes).into_iter().map(|value| value.map_err(Into::into)).collect()
            }
        };
        let Ok(mut values) = values else {
            // No line of an answer may look like the start of a step.
            return self.text(text.trim_end()).replace("\n---", "\n ---").replace("\n==", "\n ==");
        };
        if answer.code == 201 {
            values.iter_mut().for_each(unsettled);
        }
        values.iter_mut().for_each(unordered);
        let lines: Vec<String> = values.into_iter().map(|value| layout::print(&self.value(step, value))).collect();
        lines.join("\n")
    }

    /// An object within a list or an event that was there before is told by where.
    fn inner(&mut self, step: &str, value: Value) -> Value {
        if value.pointer("/metadata/uid").is_none() {
            return self.value(step, value);
        }
        if let Some(first) = self.objects.get(&value.to_string()) {
            return format!("<as in {first}>").into();
        }
        self.objects.insert(value.to_string(), step.to_owned());
        self.value(step, value)
    }

    fn value(&mut self, step: &str, value: Value) -> Value {
        match value {
            Value::String(text) => self.text(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.inner(step, item)).collect(),
            Value::Object(mut map) => {
                let is_list = map.contains_key("items") || map.contains_key("rows");
                if let Some(metadata) = map.get_mut("metadata") {
                    self.metadata(metadata, is_list);
                }
                if map.contains_key("incomplete") {
                    for key in ["resourceRules", "nonResourceRules"] {
                        if let Some(Value::Array(rules)) = map.get_mut(key) {
                            rules.sort_by_key(Value::to_string);
                        }
                    }
                }
                if let Some(Value::Array(cells)) = map.get_mut("cells") {
                    cells.iter_mut().for_each(ageless);
                }
                map.into_iter().map(|(key, value)| (key, self.inner(step, value))).collect()
            }
            other => other,
        }
    }

    /// The version of an object is told to be new or one that was seen before; that of a list may move by itself.
    fn metadata(&mut self, metadata: &mut Value, is_list: bool) {
        if let Some(Value::String(version)) = metadata.get_mut("resourceVersion") {
            let number = version.parse::<u64>().is_ok_and(|n| n > 0);
            *version = match number {
                false => version.clone(),
                true if is_list => "<a version>".to_owned(),
                true if self.versions.insert(version.clone()) => "<new>".to_owned(),
                true => "<seen>".to_owned(),
            };
        }
        if let Some(Value::String(token)) = metadata.get_mut("continue").filter(|token| token.as_str() != Some("")) {
            *token = "<token>".to_owned();
        }
    }

    fn text(&self, text: &str) -> String {
        static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
            let pattern = |(text, put): (&str, &'static str)| (Regex::new(text).expect("a pattern"), put);
            [
                (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
                (r"\b20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
                (r"(too old resource version: \d+) \(\d+\)", "$1 (<a version>)"),
                (r"(Too large resource version: \d+), current: \d+", "$1, current: <a version>"),
                (r"\b([0-9A-F]{64}){1,2}\b", "<hash>"),
                // Several roles may allow the same.
                (r#"RBAC: allowed by ClusterRoleBinding "[^"]*" of ClusterRole "[^"]*""#, "RBAC: allowed by <a role>"),
                (r#"(\\?"resourceVersion\\?":\\?")\d+"#, "$1<a version>"),
                (r"\b(\d{1,3}\.){3}\d{1,3}:\d+\b", "<server>"),
            ]
            .map(pattern)
            .into()
        });
        let mut text = text.replace(&self.address, "<server>");
        if let Some((pattern, put)) = &self.prefix {
            text = pattern.replace_all(&text, put.as_str()).into_owned();
        }
        // Faults of a configuration that is applied come in any order, too.
        if let Some((start, faults)) = text.split_once(": errors:\n") {
            let mut faults: Vec<&str> = faults.lines().collect();
            faults.sort_unstable();
            text = format!("{start}: errors:\n{}", faults.join("\n"));
        }
        PATTERNS.iter().fold(text, |text, (pattern, put)| pattern.replace_all(&text, *put).into_owned())
    }
}

/// A cell of a table that tells how old something is.
fn ageless(cell: &mut Value) {
    let is_age = |text: &str| {
        text.len() < 8 && text.ends_with(['s', 'm', 'h', 'd']) && text.starts_with(|c: char| c.is_ascii_digit())
    };
    if cell.as_str().is_some_and(is_age) {
        *cell = "<age>".into();
    }
}

/// Kubernetes tells several faults in the order in which it comes upon them, which is no order at all.
fn unordered(value: &mut Value) {
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let Some(causes) = value["details"]["causes"].as_array() else { return };
    let told: Vec<String> =
        causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect();
    let list = format!("[{}]", told.join(", "));
    let message = text(value, "message");
    if told.len() > 1
        && let Some(start) = message.strip_suffix(&list)
    {
        let mut causes = causes.clone();
        causes.sort_by_key(Value::to_string);
        value["message"] = format!("{start}[<the causes>]").into();
        value["details"]["causes"] = causes.into();
    }
}

/// A name that the server makes up from this prefix.
fn generated(prefix: &str) -> (Regex, String) {
    let cut: String = prefix.chars().take(58).collect();
    let pattern = format!("{}[bcdfghjklmnpqrstvwxz2456789]{{5}}\\b", regex::escape(&cut));
    (Regex::new(&pattern).expect("a pattern"), format!("{cut}<5 more>"))
}

/// Takes out of a new definition what a controller of Kubernetes puts there a moment later, and ours at once.
fn unsettled(value: &mut Value) {
    if value["kind"] == "CustomResourceDefinition" && value["status"].is_object() {
        value["status"] = Value::from("<soon>");
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("finalizers");
        }
    }
}

fn headers(answer: &Answer) -> Vec<String> {
    let mut lines = Vec::new();
    for name in HEADERS {
        let same = answer.headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        lines.extend(same.map(|(_, value)| format!("{name}: {value}")));
    }
    let cache = answer.header("cache-control").unwrap_or("none");
    if cache != CACHE {
        lines.push(format!("Cache-Control: {cache}"));
    }
    if answer.header("audit-id").is_none() {
        lines.push("Audit-Id: none".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> Answer {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![
            header("content-type", "application/json"),
            header("cache-control", CACHE),
            header("audit-id", "7"),
            header("warning", "299 - \"x\""),
        ];
        Answer { code: 200, headers, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn versions_are_new_or_seen() {
        let mut normal = Normal::new("127.0.0.1:6443".to_owned());
        let body = r#"{"metadata":{"resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z"}}"#;
        let first = normal.answer("a", &Value::Null, &answer(body));
        assert_eq!(
            first,
            "200 application/json\nWarning: 299 - \"x\"\n{\"metadata\":{\"creationTimestamp\":\"<time>\",\"resourceVersion\":\"<new>\"}}"
        );
        assert!(normal.answer("a", &Value::Null, &answer(body)).contains("<seen>"));
        let list = r#"{"items":[{"metadata":{"uid":"1"}}]}"#;
        assert!(normal.answer("b", &Value::Null, &answer(list)).ends_with(r#"{"items":[{"metadata":{"uid":"1"}}]}"#));
        assert!(normal.answer("c", &Value::Null, &answer(list)).ends_with(r#"{"items":["<as in b>"]}"#));
        let sent = serde_json::json!({"metadata": {"generateName": "x-"}});
        assert!(normal.answer("d", &sent, &answer(r#"{"name":"x-bcdfg"}"#)).ends_with(r#"{"name":"x-<5 more>"}"#));
        let list = r#"{"items":[],"metadata":{"resourceVersion":"7","continue":"abc"}}"#;
        assert!(
            normal
                .answer("a", &Value::Null, &answer(list))
                .ends_with(r#"{"continue":"<token>","resourceVersion":"<a version>"}}"#)
        );
    }
}
