//! Random load from a seed, and everything a client can see of a store, both through the JSON gateway.

use anyhow::{Context, Result};
use random::Random;
use serde_json::{Value, json};

use super::{base64, http::Http, scenario::Lines};

/// Puts, deletes, txns, leases and compactions. Requests that the store refuses, such as a grant of a lease that is
/// there, are part of the load.
pub(crate) fn run(http: &mut Http, rng: &mut Random, operations: u32) -> Result<()> {
    for _ in 0..operations {
        let (path, body) = operation(http, rng)?;
        http.post(path, &body.to_string())?;
    }
    Ok(())
}

fn operation(http: &mut Http, rng: &mut Random) -> Result<(&'static str, Value)> {
    let key = key(rng);
    Ok(match rng.below(100) {
        0..50 => ("/v3/kv/put", put(&key, rng)),
        50..58 => {
            let mut leased = put(&key, rng);
            leased["lease"] = json!(lease(rng));
            ("/v3/kv/put", leased)
        }
        58..66 => ("/v3/kv/deleterange", json!({"key": b(&key)})),
        66..68 => ("/v3/kv/deleterange", json!({"key": b(&key), "range_end": b(&format!("{key}~"))})),
        68..84 => ("/v3/kv/txn", txn(&key, rng)),
        84..92 => ("/v3/lease/grant", json!({"ID": lease(rng), "TTL": 3600 + rng.below(100)})),
        92..94 => ("/v3/lease/revoke", json!({"ID": lease(rng)})),
        94..98 => ("/v3/lease/keepalive", json!({"ID": lease(rng)})),
        _ => {
            let back = 20 + rng.below(100);
            // Compacting to 0 makes etcd answer every later hashkv with that of revision 0.
            let to = revision(http)?.saturating_sub(back).max(2);
            ("/v3/kv/compaction", json!({"revision": to, "physical": true}))
        }
    })
}

fn put(key: &str, rng: &mut Random) -> Value {
    let length = rng.below(300);
    let value: Vec<u8> = (0..length).map(|_| rng.next().to_le_bytes()[0]).collect();
    json!({"key": b(key), "value": base64(&value)})
}

fn txn(key: &str, rng: &mut Random) -> Value {
    let other = format!("{key}/txn");
    json!({
        "compare": [{"key": b(key), "target": "VERSION", "result": "GREATER", "version": rng.below(3)}],
        "success": [
            {"request_put": put(&other, rng)},
            {"request_delete_range": {"key": b(key)}},
            {"request_range": {"key": b(key)}},
        ],
        "failure": [{"request_put": put(key, rng)}, {"request_txn": {"success": [{"request_put": put(&other, rng)}]}}],
    })
}

fn key(rng: &mut Random) -> String {
    format!("k/{:02}", rng.below(60))
}

fn lease(rng: &mut Random) -> u64 {
    100 + rng.below(12)
}

fn b(text: &str) -> String {
    base64(text.as_bytes())
}

pub(crate) fn revision(http: &mut Http) -> Result<u64> {
    let answer = http.call("/v3/kv/range", &json!({"key": b("none")}))?;
    number(&answer["header"]["revision"])
}

/// Numbers are written as text in the gateway's JSON; 0 is left out.
pub(crate) fn number(value: &Value) -> Result<u64> {
    match value {
        Value::Null => Ok(0),
        Value::String(text) => text.parse().with_context(|| format!("{text:?} is no number")),
        other => other.as_u64().with_context(|| format!("{other} is no number")),
    }
}

/// Everything at several revisions, hashes and leases. What changes with every start (terms, rest of a lease's time) is
/// left out; ids of cluster and member stay, as they belong to the dir, unless it is a restored one.
pub(crate) fn contents(http: &mut Http, with_ids: bool) -> Result<Lines> {
    let mut lines = Vec::new();
    let hash = http.call("/v3/maintenance/hashkv", &json!({}))?;
    // -1 before the first compaction.
    let compacted = number(&hash["compact_revision"]).unwrap_or(0);
    let now = number(&hash["header"]["revision"])?;
    lines.push(("hashkv of all".to_owned(), show(hash, with_ids)));
    let first = compacted.max(1);
    for revision in
        [first, first + (now - first) / 3, first + (now - first) * 2 / 3, now.saturating_sub(1).max(first), now]
    {
        let all = json!({"key": "AA==", "range_end": "AA==", "revision": revision});
        lines.push((format!("contents at {revision}"), show(http.call("/v3/kv/range", &all)?, with_ids)));
        // At the compaction itself etcd remembers the hash from before it, until it is restarted.
        if revision > compacted {
            let hash = http.call("/v3/maintenance/hashkv", &json!({"revision": revision}))?;
            lines.push((format!("hashkv at {revision}"), show(hash, with_ids)));
        }
    }
    let leases = http.call("/v3/lease/leases", &json!({}))?;
    let empty = Vec::new();
    let mut ids = Vec::new();
    for lease in leases["leases"].as_array().unwrap_or(&empty) {
        ids.push(number(&lease["ID"])?);
    }
    ids.sort_unstable();
    for id in ids {
        let mut lease = http.call("/v3/lease/timetolive", &json!({"ID": id, "keys": true}))?;
        if let Some(keys) = lease["keys"].as_array_mut() {
            keys.sort_by_key(Value::to_string);
        }
        lines.push((format!("lease {id}"), format!("{} {}", lease["grantedTTL"], lease["keys"])));
    }
    Ok(lines)
}

fn show(mut answer: Value, with_ids: bool) -> String {
    let dropped: &[&str] = if with_ids { &["raft_term"] } else { &["raft_term", "cluster_id", "member_id"] };
    if let Some(header) = answer["header"].as_object_mut() {
        header.retain(|key, _| !dropped.contains(&key.as_str()));
    }
    answer.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let numbers = |seed| -> Vec<u64> {
            let mut rng = Random::new(seed);
            (0..5).map(|_| rng.next()).collect()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn numbers_are_text_or_left_out() {
        assert_eq!(number(&json!("12")).expect("a number"), 12);
        assert_eq!(number(&Value::Null).expect("left out"), 0);
        assert!(number(&json!("x")).is_err());
    }
}
