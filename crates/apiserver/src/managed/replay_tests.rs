//! Histories of objects, each step with what Kubernetes' own field manager makes of it (`interop/ssa` records them).

use serde_json::{Value, json};

use super::{Alike, ApplyError, Managers, Node, Reset, Types, Writer, value};

const NOW: &str = "2026-01-01T00:00:00Z";
const RECORDED: [(&str, &str); 2] = [
    ("named", include_str!("../../testdata/apply/named.json")),
    ("random", include_str!("../../testdata/apply/random.json")),
];

#[test]
fn every_step_is_as_in_kubernetes() {
    for (file, text) in RECORDED {
        replay(file, text);
    }
}

/// `APPLY_RECORDED=file cargo test -p apiserver --lib replay` for more of them than are kept here.
#[test]
fn others_too() {
    if let Ok(path) = std::env::var("APPLY_RECORDED") {
        replay(&path, &std::fs::read_to_string(&path).unwrap());
    }
}

fn replay(file: &str, text: &str) {
    let recorded: Value = serde_json::from_str(text).unwrap();
    let scenarios = recorded["scenarios"].as_array().unwrap();
    let (mut steps, mut exact) = (0, 0);
    for scenario in scenarios {
        let mut types = types(scenario.get("versions").unwrap_or(&recorded["versions"]));
        let mut live = None;
        for (index, step) in scenario["steps"].as_array().unwrap().iter().enumerate() {
            if let Some(versions) = step.get("versions") {
                types = self::types(versions);
            }
            let at = format!("{file}: {}: step {index}: {}", scenario["name"], step);
            steps += 1;
            exact += usize::from(play(&types, &mut live, step, &at));
        }
    }
    assert!(exact * 100 >= steps * 95, "only {exact} of {steps} steps of {file} are alike to the last null");
}

/// The object as Kubernetes has it after a step.
fn recorded(step: &Value) -> Value {
    let mut object = step["object"].clone();
    let mut entries = step["managed"].as_array().cloned().unwrap_or_default();
    for (entry, timed) in entries.iter_mut().zip(step["timed"].as_array().into_iter().flatten()) {
        if timed == true {
            entry["time"] = NOW.into();
        }
    }
    object["metadata"]["managedFields"] = entries.into();
    object
}

/// Without nulls and what is empty.
fn full(value: &Value) -> Value {
    let is_full = |value: &Value| !matches!(value, Value::Null) && *value != json!({}) && *value != json!([]);
    match value {
        Value::Object(map) => {
            let full = map.iter().map(|(key, value)| (key.clone(), full(value))).filter(|(_, value)| is_full(value));
            Value::Object(full.collect())
        }
        Value::Array(list) => list.iter().map(full).collect(),
        other => other.clone(),
    }
}

fn types(versions: &Value) -> Types {
    let versions = versions.as_object().unwrap().iter();
    versions.map(|(name, schema)| (format!("example.com/{name}"), Node::of_object(schema))).collect()
}

/// One step; false if the object differs from Kubernetes' in what is empty.
fn play(types: &Types, live: &mut Option<Value>, step: &Value, at: &str) -> bool {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let version = format!("example.com/{}", text("version"));
    let reset = if text("subresource").is_empty() { Reset::Except(&["status"]) } else { Reset::Only("status") };
    let writer = Writer {
        types,
        api_version: &version,
        subresource: text("subresource"),
        manager: text("manager"),
        reset,
        counts: None,
        gating: None,
        elsewhere: None,
        views: &Alike,
        zero: &Value::Null,
        now: NOW,
    };
    if let Some(live) = live {
        live["apiVersion"] = version.as_str().into();
    }
    let given = |body: &Value| {
        let mut body = body.clone();
        (body["apiVersion"], body["kind"]) = (version.as_str().into(), "Thing".into());
        body
    };
    let outcome = match step.get("apply") {
        Some(body) => {
            let managers = live.as_ref().map(Managers::of).unwrap_or_default();
            let applied = writer.apply(live.as_ref(), &given(body), managers, step["force"] == true);
            applied.map(|applied| (applied.object, applied.managers))
        }
        None => {
            let new = given(&step["update"]);
            let managers = match (writer.subresource, live.as_ref()) {
                ("", live) => Managers::given(live.unwrap_or(&Value::Null), &new),
                (_, live) => live.map(Managers::of).unwrap_or_default(),
            };
            let managers = writer.update(live.as_ref(), &new, managers).capped();
            Ok((super::writer::bare(&new), managers))
        }
    };
    match outcome {
        Err(ApplyError::Conflicts(conflicts)) => {
            assert_eq!(conflicts.message(), text("error"), "{at}");
            let mut causes = conflicts.causes();
            causes.sort_by_key(|cause| cause["message"].as_str().unwrap().to_owned());
            assert_eq!(json!(causes), step["causes"], "{at}");
        }
        Err(ApplyError::Typed(why) | ApplyError::Merge(why)) => {
            assert!(text("error").contains(&why) || text("error").contains("expected"), "{at}\n{why}");
        }
        Ok((object, managers)) => {
            assert_eq!(text("error"), "", "{at}");
            // An empty map that is applied stays empty here, so that the same again is no change; there it is null or gone.
            assert!(value::same(&full(&object), &full(&step["object"])), "{at}\n{object}");
            let exact = value::same(&object, &step["object"]);
            if exact {
                let (entries, timed) = without_times(&managers);
                assert_eq!(json!(entries), step["managed"], "{at}");
                assert_eq!(json!(timed), step.get("timed").cloned().unwrap_or(json!([])), "{at}");
            }
            *live = Some(recorded(step));
            return exact;
        }
    }
    true
}

fn without_times(managers: &Managers) -> (Vec<Value>, Vec<bool>) {
    let mut entries = managers.to_json();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    entries.sort_by_key(|entry| ["operation", "manager", "apiVersion", "subresource"].map(|name| text(entry, name)));
    let timed = entries.iter_mut().map(|entry| entry.as_object_mut().unwrap().remove("time").is_some()).collect();
    (entries, timed)
}
