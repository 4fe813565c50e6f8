//! Fields behind disabled gates, on the wire: nulls, values of the wrong type, versions without the field, and patches of a
//! definition's gates.

use crate::common;

use common::{
    World,
    http::{Answer, Http},
};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const APPLY: &str = "application/apply-patch+yaml";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// A definition of things whose `spec` has these fields in each version; the last version is stored.
fn definition(versions: &[(&str, Value)], gates: Value) -> Value {
    let version = |(i, (name, fields)): (usize, &(&str, Value))| {
        let schema =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields.clone()}}});
        json!({"name": name, "served": true, "storage": i + 1 == versions.len(), "schema": {"openAPIV3Schema": schema}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.g.example.com"},
        "spec": {"group": "g.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "customFeatureGates": {"featureGates": gates},
            "versions": versions.iter().enumerate().map(version).collect::<Vec<_>>()}})
}

fn gate(name: &str, path: &str, on: bool) -> Value {
    json!({"name": name, "preRelease": "alpha", "enabled": on, "fieldPaths": [path]})
}

fn things(version: &str) -> String {
    format!("/apis/g.example.com/{version}/namespaces/default/things")
}

fn thing(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("g.example.com/{version}"), "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

async fn switch(http: &mut Http, gates: Value) {
    let patch = json!({"spec": {"customFeatureGates": {"featureGates": gates}}});
    assert_eq!(http.merge(&format!("{CRDS}/things.g.example.com"), patch).await.code, 200);
}

/// Stores a thing while all gates are on, then switches them off.
async fn stored(http: &mut Http, versions: &[(&str, Value)], spec: Value, off: Value) -> Answer {
    assert_eq!(http.json("POST", CRDS, definition(versions, json!([]))).await.code, 201);
    let (last, _) = versions.last().expect("a version");
    let answer = http.json("POST", &things(last), thing(last, spec)).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    switch(http, off).await;
    answer
}

/// The warnings about gates.
fn told(answer: &Answer) -> Vec<String> {
    let told = answer.warnings.iter().filter(|told| told.contains("feature gate"));
    told.map(|told| told.trim_start_matches("299 - ").trim_matches('"').replace('\\', "")).collect()
}

fn state(answer: &Answer) -> (&Value, &Value, &Value) {
    let metadata = &answer.body["metadata"];
    (&answer.body["spec"], &metadata["generation"], &metadata["resourceVersion"])
}

/// Writes through a version without a frozen field of the storage version keep it, do not show it and do not count as changes
/// of it.
#[test]
fn a_version_without_the_field_neither_loses_nor_shows_it() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let number = json!({"type": "integer"});
        let versions = [("v1", json!({"q": number})), ("v2", json!({"q": number, "new": number}))];
        let off = json!([gate("New", ".spec.new", false)]);
        stored(&mut http, &versions, json!({"q": 1, "new": 8}), off).await;
        let old = format!("{}/a", things("v1"));

        let labelled = http.merge(&old, json!({"metadata": {"labels": {"a": "b"}}})).await;
        assert_eq!((&labelled.body["spec"], &labelled.body["metadata"]["generation"]), (&json!({"q": 1}), &json!(1)));
        let again = http.merge(&old, json!({"spec": {"q": 1}})).await;
        assert_eq!(state(&again), state(&labelled), "nothing to write");
        let changed = http.merge(&old, json!({"spec": {"q": 2}})).await;
        assert_eq!((&changed.body["spec"], &changed.body["metadata"]["generation"]), (&json!({"q": 2}), &json!(2)));
        let applied = format!("{old}?fieldManager=m&force=true");
        let applied = http.send("PATCH", &applied, APPLY, thing("v1", json!({"q": 3})).to_string()).await;
        assert_eq!((applied.code, &applied.body["spec"]), (200, &json!({"q": 3})));
        let dry = http.merge(&format!("{old}?dryRun=All"), json!({"spec": {"q": 4}})).await;
        assert_eq!((dry.code, &dry.body["spec"]), (200, &json!({"q": 4})));
        for answer in [labelled, again, changed, applied, dry] {
            assert_eq!(answer.warnings, [""; 0], "nobody was kept from anything");
        }

        let kept = http.json("GET", &format!("{}/a", things("v2")), Value::Null).await;
        assert_eq!(kept.body["spec"], json!({"q": 3, "new": 8}));
        let entries = kept.body["metadata"]["managedFields"].as_array().expect("managers");
        let owner = entries.iter().find(|entry| entry["fieldsV1"]["f:spec"].get("f:new").is_some());
        assert_eq!(owner.map(|entry| &entry["apiVersion"]), Some(&json!("g.example.com/v2")));
    });
}

/// A null counts as absent for a field that is not nullable.
#[test]
fn a_null_that_is_not_a_value_counts_as_absent() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let nullable = json!({"type": "integer", "nullable": true});
        let fields = json!({"n": {"type": "integer"}, "o": {"type": "integer"}, "null": nullable, "was": nullable});
        let off = json!([
            gate("N", ".spec.n", false),
            gate("O", ".spec.o", false),
            gate("Null", ".spec.null", false),
            gate("Was", ".spec.was", false)
        ]);
        let before = stored(&mut http, &[("v1", fields.clone())], json!({"n": 5, "null": null, "was": null}), off).await;
        let path = format!("{}/a", things("v1"));

        let mut sent = before.body.clone();
        sent["spec"] = json!({"n": null, "o": null, "null": null, "was": null});
        let answer = http.json("PUT", &path, sent.clone()).await;
        assert_eq!(state(&answer), state(&before));
        assert_eq!(told(&answer), ["spec.n: not removed, feature gate \"N\" is disabled"]);
        let config = thing("v1", json!({"n": null, "o": null})).to_string();
        let answer = http.send("PATCH", &format!("{path}?fieldManager=m"), APPLY, config).await;
        assert_eq!((answer.code, &answer.body["spec"]), (200, &before.body["spec"]));

        // A stored null that the schema no longer accepts must not block other writes.
        let mut fields = fields;
        fields["was"] = json!({"type": "integer"});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
        let patch = json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
        assert_eq!(http.merge(&format!("{CRDS}/things.g.example.com"), patch).await.code, 200);
        let answer = http.merge(&path, json!({"spec": {"was": 4}})).await;
        assert_eq!((answer.code, &answer.body["spec"]), (200, &json!({"n": 5, "null": null})));
        assert_eq!(told(&answer), ["spec.was: dropped, feature gate \"Was\" is disabled"]);
    });
}

#[test]
fn apply_reports_every_value_of_the_wrong_type() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let object = json!({"type": "object", "properties": {"r": {"type": "integer"}}});
        let fields = json!({"n": {"type": "integer"}, "o": object});
        let off = json!([gate("N", ".spec.n", false), gate("O", ".spec.o", false)]);
        let before = stored(&mut http, &[("v1", fields)], json!({"n": 5, "o": {"r": 1}}), off).await;
        for wrong in [json!({"n": "text", "o": [1]}), json!({"n": {"k": 1}, "o": "text"}), json!({"n": [], "o": 7})] {
            let config = thing("v1", wrong).to_string();
            let path = format!("{}/a?fieldManager=m&force=true", things("v1"));
            let answer = http.send("PATCH", &path, APPLY, config).await;
            assert_eq!(state(&answer), state(&before));
            assert_eq!(
                told(&answer),
                [
                    "spec.n: not updated, feature gate \"N\" is disabled",
                    "spec.o: not updated, feature gate \"O\" is disabled"
                ]
            );
        }
    });
}

/// `kubectl patch crd` without a type sends a strategic patch.
#[test]
fn gates_of_a_definition_are_patched_strategically() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let number = json!({"type": "integer"});
        let gates = json!([gate("A", ".spec.a", false), gate("B", ".spec.b", false)]);
        let fields = json!({"a": number, "b": number, "c": number});
        assert_eq!(http.json("POST", CRDS, definition(&[("v1", fields)], gates)).await.code, 201);
        let steps = [
            (json!([{"name": "A", "enabled": true}]), json!([gate("A", ".spec.a", true), gate("B", ".spec.b", false)])),
            (
                json!([{"name": "B", "fieldPaths": [".spec.c"]}]),
                json!([gate("A", ".spec.a", true), {"name": "B", "preRelease": "alpha", "enabled": false, "fieldPaths": [".spec.c", ".spec.b"]}]),
            ),
            (json!([{"name": "B", "$patch": "delete"}]), json!([gate("A", ".spec.a", true)])),
        ];
        for (patch, gates) in steps {
            let patch = json!({"spec": {"customFeatureGates": {"featureGates": patch}}}).to_string();
            let answer = http.send("PATCH", &format!("{CRDS}/things.g.example.com"), STRATEGIC, patch).await;
            assert_eq!((answer.code, &answer.body["spec"]["customFeatureGates"]["featureGates"]), (200, &gates));
        }
        // Lists without a key are replaced, as Kubernetes does with all other lists of a definition.
        let patch = json!({"spec": {"names": {"shortNames": ["t"]}}, "metadata": {"labels": {"a": "b"}}}).to_string();
        let answer = http.send("PATCH", &format!("{CRDS}/things.g.example.com"), STRATEGIC, patch).await;
        assert_eq!((answer.code, &answer.body["spec"]["names"]["shortNames"]), (200, &json!(["t"])));
        assert_eq!(answer.body["metadata"]["labels"], json!({"a": "b"}));
    });
}
