//! What the write step, its warnings and what comes with them cost: by what lies under gated paths, not by the rest of the object.
//!
//! `cargo bench -p fieldgate`; [docs/field-gates.md](../../../docs/field-gates.md) has figures.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use fieldgate::{Gates, Gating, Part, Write};
use serde_json::{Value, json};

const GATES: usize = 20;

/// Ten gates on plain fields, five on the entries of a map, five on the items of a list; all off.
fn gating() -> Gating {
    let path = |i: usize| match i {
        0..10 => format!(".spec.field{i}"),
        10..15 => format!(".spec.map[*].field{i}"),
        _ => format!(".spec.list[*].field{i}"),
    };
    let gate = |i: usize| json!({ "name": format!("G{i}"), "preRelease": "alpha", "fieldPaths": [path(i)] });
    let stanza = json!({ "featureGates": (0..GATES).map(gate).collect::<Vec<_>>() });
    let schema = json!({ "properties": { "spec": { "properties": {
        "map": { "additionalProperties": { "type": "object" } },
        "list": {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": { "properties": { "name": { "type": "string" } } },
        },
    } } } });
    Gating::new(&Gates::parse(&stanza, "spec").expect("sound gates"), &schema)
}

/// An object with `entries` items and map entries of gated fields, filled up to `bytes` with fields that are not gated.
fn object(entries: usize, bytes: usize, value: i64) -> Value {
    let mut spec = json!({ "map": {}, "list": [] });
    for i in 0..10 {
        spec[format!("field{i}")] = value.into();
    }
    for i in 0..entries {
        let mut entry = json!({ "name": format!("entry-{i}") });
        for field in 10..GATES {
            entry[format!("field{field}")] = value.into();
        }
        spec["map"][format!("entry-{i}")] = entry.clone();
        spec["list"].as_array_mut().expect("a list").push(entry);
    }
    let mut object =
        json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "a" }, "spec": spec });
    let mut filler = Vec::new();
    let missing = bytes.saturating_sub(object.to_string().len());
    while filler.len() * 50 < missing {
        filler.push(json!({ "name": format!("item-{:08}", filler.len()), "on": true, "size": 100 }));
    }
    object["spec"]["filler"] = filler.into();
    object
}

/// The entry of one who has all fields of an object.
fn claims(object: &Value) -> Value {
    fn set(value: &Value) -> Value {
        match value {
            Value::Object(fields) => fields.iter().map(|(name, value)| (format!("f:{name}"), set(value))).collect(),
            Value::Array(items) => {
                items.iter().map(|item| (format!("k:{}", json!({ "name": item["name"] })), set(item))).collect()
            }
            _ => json!({}),
        }
    }
    json!({ "manager": "m", "operation": "Update", "apiVersion": "example.com/v1", "fieldsV1": { "f:spec": set(&object["spec"]) } })
}

fn bench(c: &mut Criterion) {
    let gating = gating();
    for (name, entries, bytes) in [
        ("1 kB, 2 entries", 2, 1_000),
        ("10 kB, 2 entries", 2, 10_000),
        ("1 MB, 2 entries", 2, 1_000_000),
        ("10 kB, 10 entries", 10, 10_000),
        ("1 MB, 1000 entries", 1000, 1_000_000),
    ] {
        let stored = object(entries, bytes, 3);
        // The yardstick: every write parses an object and prints one, several times over.
        let text = stored.to_string();
        c.bench_function(&format!("{name} ({} bytes)/parse and print", text.len()), |b| {
            b.iter(|| serde_json::from_str::<Value>(black_box(&text)).map(|value| value.to_string()));
        });
        c.bench_function(&format!("{name}/excerpt"), |b| b.iter(|| gating.excerpt(black_box(&stored))));
        let owned = [claims(&stored)];
        c.bench_function(&format!("{name}/claims that nobody moves"), |b| {
            b.iter(|| gating.freeze_managed_fields(black_box(&owned), &owned, &stored).map(|entries| entries.len()));
        });
        for (what, value) in [("unchanged", 3), ("suppressed", 5)] {
            let sent = object(entries, bytes, value);
            let write = Write { stored: Some(&stored), read: Some(&stored), sent: None, part: Part::Whole };
            c.bench_function(&format!("{name}, {what}/warnings"), |b| {
                b.iter(|| gating.warnings(&write, black_box(&sent)))
            });
            c.bench_function(&format!("{name}, {what}/apply"), |b| {
                // By reference, so that dropping the object is not measured.
                let apply = |new: &mut Value| gating.apply(Some(&stored), new);
                b.iter_batched_ref(|| sent.clone(), apply, BatchSize::LargeInput);
            });
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
