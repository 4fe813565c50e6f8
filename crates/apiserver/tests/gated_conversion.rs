//! Gates of definitions that a webhook converts.

use crate::common;

use common::{
    board::{Board, NAME, all, apply, board, define, entry, meta, one, told, world},
    http::Http,
};
use serde_json::{Value, json};

#[test]
fn a_create_through_the_other_version_is_gated() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(false), &webhook).await;
        let wish = board("v2", json!({"color": "red", "count": 5, "dims": {"size": 2}}));
        let tried = http.json("POST", &format!("{}?dryRun=All", all("v2")), wish.clone()).await;
        assert_eq!((tried.code, &tried.body["spec"]), (201, &json!({"color": "red"})), "{}", tried.body);
        assert_eq!(http.json("GET", &one("v2"), Value::Null).await.code, 404, "a dry run");
        let calls = webhook.calls();
        let made = http.json("POST", &all("v2"), wish).await;
        assert_eq!((made.code, &made.body["spec"]), (201, &json!({"color": "red"})), "{}", made.body);
        assert_eq!(webhook.calls() - calls, 2, "to the version that is stored, and back");
        assert_eq!(told(&made), ["spec.replicas: dropped", "spec.size: dropped"]);
        assert_eq!(told(&tried), told(&made));
        let fields = json!({"f:spec": {".": {}, "f:color": {}}});
        assert_eq!(entry(&made, "unknown")["fieldsV1"], fields, "what was dropped is not owned");
        let calls = webhook.calls();
        let read = http.json("GET", &one("v1"), Value::Null).await;
        assert_eq!((&read.body["spec"], webhook.calls()), (&json!({"color": "red"}), calls), "it is stored as v1");
        // An object without gated fields is treated as without gates.
        let plain = json!({"apiVersion": "stable.example.com/v2", "kind": "Board", "metadata": {"name": "c"}, "spec": {"color": "red"}});
        let made = http.json("POST", &all("v2"), plain).await;
        assert_eq!((made.code, made.warnings.len(), webhook.calls() - calls), (201, 0, 2));
    });
}

#[test]
fn updates_of_all_kinds_are_gated() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(true), &webhook).await;
        let made = http.json("POST", &all("v2"), board("v2", json!({"color": "red", "count": 3, "dims": {"size": 2}}))).await;
        assert_eq!((made.code, made.warnings.len()), (201, 0), "{}", made.body);
        define(&mut http, Board::first(false), &webhook).await;

        // An unchanged update has no warnings and writes nothing.
        let read = http.json("GET", &one("v2"), Value::Null).await;
        let calls = webhook.calls();
        let put = http.json("PUT", &one("v2"), read.body.clone()).await;
        assert_eq!((put.code, &put.body, put.warnings.len()), (200, &read.body, 0));
        assert_eq!(webhook.calls() - calls, 2, "one to read it, one to the version that is stored");

        let mut changed = read.body.clone();
        changed["spec"] = json!({"color": "red", "count": 9});
        let calls = webhook.calls();
        let put = http.json("PUT", &one("v2"), changed.clone()).await;
        assert_eq!((put.code, &put.body), (200, &read.body), "{:?}", put.warnings);
        assert_eq!(told(&put), ["spec.replicas: not updated", "spec.size: not removed"]);
        assert_eq!(webhook.calls() - calls, 2, "what is left is what was read");

        changed["spec"]["color"] = "blue".into();
        let calls = webhook.calls();
        let put = http.json("PUT", &one("v2"), changed).await;
        assert_eq!(webhook.calls() - calls, 3, "and what is left is brought back");
        assert_eq!(put.body["spec"], json!({"color": "blue", "count": 3, "dims": {"size": 2}}));
        assert_eq!(meta(&put, "generation"), 2);
        let merged = http.merge(&one("v2"), json!({"spec": {"count": null}})).await;
        assert_eq!((&merged.body, told(&merged)), (&put.body, vec!["spec.replicas: not removed".to_owned()]));
        let patch = json!([{"op": "test", "path": "/spec/count", "value": 3}, {"op": "replace", "path": "/spec/count", "value": 4}]);
        let patched = http.send("PATCH", &one("v2"), "application/json-patch+json", patch.to_string()).await;
        assert_eq!((&patched.body, told(&patched)), (&put.body, vec!["spec.replicas: not updated".to_owned()]));

        // Through the stored version, whose names the gates use.
        let direct = http.merge(&one("v1"), json!({"spec": {"replicas": 4, "size": 4}})).await;
        assert_eq!(direct.body["spec"], json!({"color": "blue", "replicas": 3, "size": 2}));
        assert_eq!(meta(&direct, "resourceVersion"), meta(&put, "resourceVersion"));
        let tried = http.merge(&format!("{}?dryRun=All", one("v2")), json!({"spec": {"color": "red", "count": 4}})).await;
        assert_eq!(tried.body["spec"], json!({"color": "red", "count": 3, "dims": {"size": 2}}));
        assert_eq!(told(&tried), ["spec.replicas: not updated"]);
        assert_eq!(http.json("GET", &one("v2"), Value::Null).await.body, put.body);

        define(&mut http, Board::first(true), &webhook).await;
        let taken = http.merge(&one("v2"), json!({"spec": {"count": 7}})).await;
        assert_eq!((&taken.body["spec"]["count"], meta(&taken, "generation")), (&json!(7), &json!(3)));
    });
}

#[test]
fn gates_apply_to_status_and_scale() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(true), &webhook).await;
        http.json("POST", &all("v2"), board("v2", json!({"color": "red", "count": 3}))).await;
        let status = format!("{}/status", one("v2"));
        let set = http.merge(&status, json!({"status": {"state": "new", "replicas": 1}})).await;
        assert_eq!(set.body["status"], json!({"state": "new", "replicas": 1}));
        define(&mut http, Board::first(false), &webhook).await;

        let held = http.merge(&status, json!({"status": {"state": "old", "replicas": 2}, "spec": {"count": 8}})).await;
        assert_eq!(held.body["status"], json!({"state": "new", "replicas": 2}), "{}", held.body);
        assert_eq!((told(&held), meta(&held, "generation")), (vec!["status.phase: not updated".to_owned()], &json!(1)));
        let scale = format!("{}/scale", one("v2"));
        let scaled = http.merge(&scale, json!({"spec": {"replicas": 9}})).await;
        assert_eq!((scaled.code, &scaled.body["spec"]["replicas"]), (200, &json!(3)), "{}", scaled.body);
        assert_eq!(told(&scaled), ["spec.replicas: not updated"]);
        assert_eq!(meta(&scaled, "resourceVersion"), meta(&held, "resourceVersion"));
        define(&mut http, Board::first(true), &webhook).await;
        let scaled = http.merge(&scale, json!({"spec": {"replicas": 9}})).await;
        assert_eq!((scaled.code, &scaled.body["spec"]["replicas"], scaled.warnings.len()), (200, &json!(9), 0));
        assert_eq!(http.json("GET", &one("v1"), Value::Null).await.body["spec"]["replicas"], 9);
    });
}

#[test]
fn applied_values_and_their_owners_are_kept() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(false), &webhook).await;
        let made = apply(&mut http, "v2", "one", json!({"color": "red", "count": 5, "dims": {"size": 1}})).await;
        assert_eq!((made.code, &made.body["spec"]), (201, &json!({"color": "red"})), "{}", made.body);
        assert_eq!(told(&made), ["spec.replicas: dropped", "spec.size: dropped"]);
        assert_eq!(
            entry(&made, "one")["fieldsV1"],
            json!({"f:spec": {"f:color": {}}}),
            "what was dropped is not owned"
        );
        let again = apply(&mut http, "v2", "one", json!({"color": "red", "count": 6})).await;
        assert_eq!((&again.body, told(&again)), (&made.body, vec!["spec.replicas: dropped".to_owned()]));

        define(&mut http, Board::first(true), &webhook).await;
        let taken = apply(&mut http, "v2", "one", json!({"color": "red", "count": 5, "dims": {"size": 1}})).await;
        assert_eq!(taken.body["spec"], json!({"color": "red", "count": 5, "dims": {"size": 1}}), "{}", taken.body);
        let claim = json!({"f:spec": {"f:color": {}, "f:count": {}, "f:dims": {"f:size": {}}}});
        assert_eq!(entry(&taken, "one")["fieldsV1"], claim);

        define(&mut http, Board::first(false), &webhook).await;
        // Other managers get no conflict, no change and no ownership, in either version, even if they apply equal values.
        for (version, spec) in
            [("v2", json!({"count": 9})), ("v1", json!({"replicas": 9})), ("v2", json!({"count": 5}))]
        {
            let other = apply(&mut http, version, "two", spec.clone()).await;
            assert_eq!(other.code, 200, "{version} {spec}: {}", other.body);
            assert!(entry(&other, "two").is_null(), "{version} {spec}: {}", entry(&other, "two"));
            assert_eq!(meta(&other, "resourceVersion"), meta(&taken, "resourceVersion"), "{version} {spec}");
        }
        // The owner omits the fields: values and ownership stay.
        let left = apply(&mut http, "v2", "one", json!({"color": "red"})).await;
        assert_eq!(left.body, taken.body);
        assert_eq!(told(&left), ["spec.replicas: not removed", "spec.size: not removed"]);
        // The owner continues in the other version, where the fields have other names.
        let moved = apply(&mut http, "v1", "one", json!({"color": "blue"})).await;
        assert_eq!(moved.body["spec"], json!({"color": "blue", "replicas": 5, "size": 1}));
        assert_eq!(entry(&moved, "one")["apiVersion"], "stable.example.com/v1");
        let claim = json!({"f:spec": {"f:color": {}, "f:replicas": {}, "f:size": {}}});
        assert_eq!(entry(&moved, "one")["fieldsV1"], claim);
        let back = apply(&mut http, "v2", "one", json!({"color": "blue"})).await;
        assert_eq!(back.body["spec"], json!({"color": "blue", "count": 5, "dims": {"size": 1}}));
        let claim = json!({"f:spec": {"f:color": {}, "f:count": {}, "f:dims": {"f:size": {}}}});
        assert_eq!(entry(&back, "one")["fieldsV1"], claim);
        // A write of managedFields does not remove the ownership.
        let given = json!([{"manager": "me", "operation": "Update", "apiVersion": "stable.example.com/v2",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:color": {}, "f:count": {}}}}]);
        let said = http.merge(&one("v2"), json!({"metadata": {"managedFields": given}})).await;
        assert_eq!(entry(&said, "me")["fieldsV1"], json!({"f:spec": {"f:color": {}}}), "{}", said.body);
        assert_eq!(entry(&said, "one")["fieldsV1"], json!({"f:spec": {"f:count": {}, "f:dims": {"f:size": {}}}}));
    });
}

#[test]
fn a_failure_of_any_webhook_call_changes_nothing() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(true), &webhook).await;
        apply(&mut http, "v2", "one", json!({"color": "red", "count": 3})).await;
        define(&mut http, Board::first(false), &webhook).await;
        let before = http.json("GET", &one("v1"), Value::Null).await.body;
        let words = [
            "Internal error occurred: conversion webhook for stable.example.com/v1, Kind=Board failed: not now",
            "Internal error occurred: conversion webhook for stable.example.com/v2, Kind=Board failed: not now",
        ];
        for call in 1..10 {
            webhook.fail_at(call);
            let done = apply(&mut http, "v2", "one", json!({"color": "blue", "count": 9})).await;
            webhook.fail_at(0);
            if done.code == 200 {
                assert_eq!(done.body["spec"], json!({"color": "blue", "count": 3}));
                assert!(call > 3, "only {call} calls");
                break;
            }
            assert!(done.code == 500 && words.contains(&done.body["message"].as_str().unwrap()), "{}", done.body);
            assert_eq!(http.json("GET", &one("v1"), Value::Null).await.body, before, "call {call}");
            assert!(call < 9, "every call has failed");
        }
        for call in 1..=2 {
            webhook.fail_at(call);
            let wish = json!({"apiVersion": "stable.example.com/v2", "kind": "Board", "metadata": {"name": "c"}, "spec": {"count": 3}});
            let done = http.json("POST", &all("v2"), wish).await;
            webhook.fail_at(0);
            assert!(done.code == 500 && words.contains(&done.body["message"].as_str().unwrap()), "{}", done.body);
            assert_eq!(http.json("GET", &format!("{}/c", all("v1")), Value::Null).await.code, 404);
        }
    });
}

#[test]
fn defaults_of_the_other_version_are_dropped_silently() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let with_default = |on: bool| Board { storage: "v1", on, count: Some(1) };
        let defined = define(&mut http, with_default(false), &webhook).await;
        assert!(
            defined.warnings.iter().any(|text| text.contains("defaults of v2 are not held back by gates")),
            "{:?}",
            defined.warnings
        );
        let made = http.json("POST", &all("v2"), board("v2", json!({"color": "red"}))).await;
        // A read through v2 adds none of its defaults.
        assert_eq!((made.code, &made.body["spec"], made.warnings.len()), (201, &json!({"color": "red"}), 0));
        assert_eq!(entry(&made, "unknown")["fieldsV1"], json!({"f:spec": {".": {}, "f:color": {}}}), "nor is it owned");
        let stored = http.json("GET", &one("v1"), Value::Null).await;
        assert_eq!(stored.body["spec"], json!({"color": "red"}), "what the default brought is not stored");
        let put = http.json("PUT", &one("v2"), made.body.clone()).await;
        assert_eq!((put.code, &put.body, put.warnings.len()), (200, &made.body, 0), "what was read, sent back");
        let wished = http.merge(&one("v2"), json!({"spec": {"count": 5}})).await;
        assert_eq!((&wished.body, told(&wished)), (&made.body, vec!["spec.replicas: dropped".to_owned()]));
        let wish = json!({"apiVersion": "stable.example.com/v2", "kind": "Board", "metadata": {"name": "c"}, "spec": {"count": 5}});
        assert_eq!(told(&http.json("POST", &all("v2"), wish).await), ["spec.replicas: dropped"]);
        define(&mut http, with_default(true), &webhook).await;
        let wished = http.merge(&one("v2"), json!({"spec": {"color": "blue"}})).await;
        assert_eq!((wished.code, &wished.body["spec"]["count"]), (200, &json!(1)));
        assert_eq!(http.json("GET", &one("v1"), Value::Null).await.body["spec"]["replicas"], 1, "on: it is stored");
    });
}

/// Objects that are stored in an older storage version are gated by their content.
#[test]
fn objects_of_an_older_storage_version_are_gated() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(true), &webhook).await;
        http.json("POST", &all("v1"), board("v1", json!({"color": "red", "replicas": 3, "size": 2}))).await;
        define(&mut http, Board { storage: "v2", on: false, count: None }, &webhook).await;
        let held = http.merge(&one("v1"), json!({"spec": {"color": "blue", "replicas": 9, "size": 9}})).await;
        assert_eq!(held.body["spec"], json!({"color": "blue", "replicas": 3, "size": 2}), "{}", held.body);
        assert_eq!(told(&held), ["spec.count: not updated", "spec.dims.size: not updated"]);
        // In the gate's version the field has a parent, and is removed with it.
        let gone = http.merge(&format!("{}?dryRun=All", one("v1")), json!({"spec": {"size": null}})).await;
        assert_eq!(gone.body["spec"], json!({"color": "blue", "replicas": 3}));
        assert_eq!(told(&gone), ["spec.dims.size: removed with its parent"]);
        let calls = webhook.calls();
        let read = http.json("GET", &one("v2"), Value::Null).await;
        assert_eq!(read.body["spec"], json!({"color": "blue", "count": 3, "dims": {"size": 2}}));
        assert_eq!(webhook.calls(), calls, "it is stored as v2 now");
        define(&mut http, Board { storage: "v1", on: false, count: None }, &webhook).await;
        let held = http.merge(&one("v1"), json!({"spec": {"color": "red", "replicas": 9}})).await;
        assert_eq!(
            held.body["spec"],
            json!({"color": "red", "replicas": 3, "size": 2}),
            "through the stored version too"
        );
        assert_eq!(told(&held), ["spec.replicas: not updated"]);
    });
}

/// Invalid values are ignored in fields that a gate drops, and reported elsewhere, also if the webhook fails on them.
#[test]
fn only_dropped_fields_may_be_invalid() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(true), &webhook).await;
        http.json("POST", &all("v2"), board("v2", json!({"color": "red", "count": 3}))).await;
        define(&mut http, Board::first(false), &webhook).await;
        let large = http.merge(&one("v2"), json!({"spec": {"count": 99}})).await;
        assert_eq!((large.code, &large.body["spec"]["count"]), (200, &json!(3)), "{}", large.body);
        let strange = http.merge(&one("v2"), json!({"spec": {"count": "many"}})).await;
        assert_eq!((strange.code, told(&strange)), (200, vec!["spec.replicas: not updated".to_owned()]));
        let wrong = http.merge(&one("v2"), json!({"spec": {"count": "many", "color": 5}})).await;
        assert_eq!(wrong.code, 422, "{}", wrong.body);
        let message = wrong.body["message"].as_str().unwrap();
        assert!(message.contains("spec.color: Invalid value: \"integer\"") && !message.contains("count"), "{message}");
        // The answer names the invalid field and not the webhook that failed on it.
        webhook.fail_at(2);
        let wrong = http.merge(&one("v2"), json!({"spec": {"color": 5}})).await;
        assert!(wrong.code == 422 && wrong.body["message"].as_str().unwrap().contains("spec.color"), "{}", wrong.body);
    });
}

/// Creates, patches, scales and applies with the real kubectl.
#[test]
fn kubectl_sees_gates_in_both_versions() {
    if harness::kubectl().is_none() {
        return;
    }
    let (world, webhook) = world();
    let define = |on: bool| {
        let definition = Board::first(on).definition(&webhook).to_string();
        let args = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        world.kubectl_with(&args, &definition).ok();
        world.kubectl_wait(&["--for=condition=Established", &format!("crd/{NAME}")]).ok();
    };
    define(false);
    let wish = board("v2", json!({"color": "red", "count": 5})).to_string();
    let made = world.kubectl_with(&["create", "-f", "-"], &wish);
    assert!(made.code == Some(0), "{}", made.stderr);
    assert_eq!(made.stderr, "Warning: spec.replicas: dropped, feature gate \"Scaling\" is disabled\n");
    let field = |version: &str, path: &str| {
        let resource = format!("boards.{version}.stable.example.com");
        world.kubectl(&["get", &resource, "b", "-o", &format!("jsonpath={{{path}}}")]).ok()
    };
    let v2 = "boards.v2.stable.example.com";
    define(true);
    world.kubectl(&["patch", v2, "b", "--type=merge", "-p", r#"{"spec":{"count":5}}"#]).ok();
    assert_eq!(field("v1", ".spec.replicas"), "5");
    define(false);
    let version = field("v1", ".metadata.resourceVersion");
    let patched = world.kubectl(&["patch", v2, "b", "--type=merge", "-p", r#"{"spec":{"count":6}}"#]);
    assert!(
        patched.stderr.contains("spec.replicas: not updated") && patched.stdout.contains("(no change)"),
        "{}",
        patched.stderr
    );
    let scaled = world.kubectl(&["scale", v2, "b", "--replicas=8"]);
    assert!(scaled.stderr.contains("spec.replicas: not updated"), "{}", scaled.stderr);
    let changed = board("v2", json!({"color": "red", "count": 7})).to_string();
    let args = ["apply", "--server-side", "--field-manager=me", "-f", "-"];
    let applied = world.kubectl_with(&args, &changed);
    assert!(applied.code == Some(0) && applied.stderr.contains("spec.replicas: not updated"), "{}", applied.stderr);
    assert_eq!((field("v2", ".spec.count"), field("v1", ".spec.replicas")), ("5".into(), "5".into()));
    assert_ne!(field("v1", ".metadata.resourceVersion"), version, "color has one more owner");
    let version = field("v1", ".metadata.resourceVersion");
    let applied = world.kubectl_with(&args, &changed);
    assert!(applied.code == Some(0), "{}", applied.stderr);
    assert_eq!(field("v1", ".metadata.resourceVersion"), version);
    let explained = world.kubectl(&["explain", "boards.spec.replicas", "--api-version=stable.example.com/v1"]).ok();
    assert!(explained.contains("[alpha, gate Scaling: off]"), "{explained}");
}
