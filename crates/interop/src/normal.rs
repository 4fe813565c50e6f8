//! Takes out of answers what differs between two servers by nature: ids, sizes, times, versions, ports.

use serde_json::Value;

/// Fields of JSON answers that say nothing about behaviour.
const DROPPED: [&str; 21] = [
    "cluster_id",
    "member_id",
    "memberID",
    "ID",
    "id",
    "leader",
    "dbSize",
    "dbSizeInUse",
    "raftIndex",
    "raftAppliedIndex",
    "version",
    "storageVersion",
    "Endpoint",
    "endpoint",
    "peerURLs",
    "clientURLs",
    "took",
    "ttl",
    "etcdserver",
    "etcdcluster",
    "storage",
];

/// Fields whose text is a version of the key, not of a server.
fn is_kv(object: &serde_json::Map<String, Value>) -> bool {
    object.contains_key("mod_revision") || object.contains_key("create_revision")
}

pub(crate) fn json(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kv = is_kv(&object);
            let kept = object.into_iter().map(|(key, value)| {
                let drop = DROPPED.contains(&key.as_str()) && !(kv && key == "version");
                let value = if drop { Value::String("…".to_owned()) } else { json(value) };
                (key, value)
            });
            Value::Object(kept.collect())
        }
        Value::Array(array) => Value::Array(array.into_iter().map(json).collect()),
        Value::String(text) => Value::String(plain_spaces(&text)),
        other => other,
    }
}

/// Go's protobuf puts now one, now two, now unbreakable spaces into its messages, so that nobody depends on them.
fn plain_spaces(text: &str) -> String {
    text.replace('\u{a0}', " ").replace("  ", " ")
}

/// A line of text: long hexadecimal and decimal numbers are ids, what looks like a duration is one.
pub(crate) fn text(line: &str, endpoint: &str) -> String {
    let line = line.replace(endpoint, "<endpoint>").replace('\u{a0}', " ");
    let mut out = String::new();
    let mut word = String::new();
    for c in line.chars().chain([' ']) {
        if c.is_alphanumeric() || matches!(c, '.' | 'µ') {
            word.push(c);
            continue;
        }
        out.push_str(replacement(&word).unwrap_or(&word));
        word.clear();
        // Widths of columns follow from the lengths of what is in them.
        if !(matches!(c, ' ' | '-') && out.ends_with(c)) {
            out.push(c);
        }
    }
    // The rest of a lease's time is a matter of when it was asked.
    match out.split_once("remaining(") {
        Some((before, _)) => format!("{before}remaining(<time>)"),
        None => out.trim_end().to_owned(),
    }
}

fn replacement(word: &str) -> Option<&'static str> {
    let hex = word.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    if hex && word.len() >= 13 || word.len() >= 15 && word.chars().all(|c| c.is_ascii_digit()) {
        return Some("<id>");
    }
    let units = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let duration = units.len() < word.len() && matches!(units, "s" | "ms" | "µs" | "ns") && word.contains('.');
    duration.then_some("<time>")
}

#[cfg(test)]
mod tests {
    use serde_json::json as j;

    use super::*;

    #[test]
    fn ids_go_and_versions_of_keys_stay() {
        let value =
            j!({"header": {"cluster_id": "1", "revision": "2"}, "kvs": [{"mod_revision": "3", "version": "4"}]});
        let kept = j!({"header": {"cluster_id": "…", "revision": "2"}, "kvs": [{"mod_revision": "3", "version": "4"}]});
        assert_eq!(json(value), kept);
        assert_eq!(json(j!({"version": "3.7.3"})), j!({"version": "…"}));
    }

    #[test]
    fn text_loses_ids_and_times() {
        let line = "127.0.0.1:5 is healthy: successfully committed proposal: took = 1.25ms";
        let short = "<endpoint> is healthy: successfully committed proposal: took = <time>";
        assert_eq!(text(line, "127.0.0.1:5"), short);
        assert_eq!(text("lease 694d71ddacfda227 granted with TTL(10s)", "x"), "lease <id> granted with TTL(10s)");
        assert_eq!(text("| 14841639068965178418 |   a |----|", "x"), "| <id> | a |-|");
        assert_eq!(text("3.7.3 and 12", "x"), "3.7.3 and 12");
    }
}
