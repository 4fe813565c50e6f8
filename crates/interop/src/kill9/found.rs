//! What the server has after a start, read through the JSON gateway.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    super::{base64, http::Http, load::number, server::Server, unbase64},
    scope::Scope,
    writer::WORKERS,
};

pub(super) struct Row {
    pub value: String,
    pub version: u64,
    pub created: u64,
    pub modified: u64,
}

pub(super) struct Found {
    pub revision: u64,
    /// Those of the scope that was asked for.
    pub keys: BTreeMap<String, Row>,
    /// Number of keys in the whole store, without counters.
    pub total: u64,
    pub counters: Vec<(u64, u64)>,
}

impl Found {
    pub(super) fn read(server: &Server, scope: &Scope) -> Result<Found> {
        let mut http = server.http()?;
        let (from, to) = Scope::All.ranges().swap_remove(0);
        let all = json!({"key": base64(from.as_bytes()), "range_end": base64(to.as_bytes()), "count_only": true});
        let all = http.call("/v3/kv/range", &all)?;
        let revision = number(&all["header"]["revision"])?;
        let mut keys = BTreeMap::new();
        for (from, to) in scope.ranges() {
            read_range(&mut http, from, &to, revision, &mut keys)?;
        }
        Ok(Found { revision, keys, total: number(&all["count"])?, counters: read_counters(&mut http)? })
    }
}

fn read_range(
    http: &mut Http,
    mut from: String,
    to: &str,
    revision: u64,
    keys: &mut BTreeMap<String, Row>,
) -> Result<()> {
    loop {
        let page = json!({"key": base64(from.as_bytes()), "range_end": base64(to.as_bytes()), "limit": 2000, "revision": revision});
        let answer = http.call("/v3/kv/range", &page)?;
        for kv in answer["kvs"].as_array().unwrap_or(&Vec::new()) {
            let (key, row) = read_row(kv)?;
            from = format!("{key}\0");
            keys.insert(key, row);
        }
        if answer["more"] != true {
            return Ok(());
        }
    }
}

fn read_counters(http: &mut Http) -> Result<Vec<(u64, u64)>> {
    let mut counters = vec![(0, 0); WORKERS as usize];
    let answer = http.call("/v3/kv/range", &json!({"key": base64(b"c/"), "range_end": base64(b"c0")}))?;
    for kv in answer["kvs"].as_array().unwrap_or(&Vec::new()) {
        let (key, row) = read_row(kv)?;
        let worker: usize = key.trim_start_matches("c/").parse()?;
        counters[worker] = (row.value.parse()?, row.modified);
    }
    Ok(counters)
}

fn read_row(kv: &Value) -> Result<(String, Row)> {
    let text = |name: &str| unbase64(kv[name].as_str().unwrap_or_default());
    let row = Row {
        value: text("value")?,
        version: number(&kv["version"])?,
        created: number(&kv["create_revision"])?,
        modified: number(&kv["mod_revision"])?,
    };
    Ok((text("key")?, row))
}
