//! Managers of fields, on the wire: requests that kubectl does not send, and fields behind gates.

use crate::common;

use common::{
    World,
    http::{Answer, Http},
};
use harness::asynchronous::until;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const APPLY: &str = "application/apply-patch+yaml";

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

async fn apply(http: &mut Http, path: &str, query: &str, config: &Value) -> Answer {
    http.send("PATCH", &format!("{path}?{query}"), APPLY, config.to_string()).await
}

fn entry<'a>(answer: &'a Answer, manager: &str) -> &'a Value {
    let entries = answer.body["metadata"]["managedFields"].as_array().expect("managedFields");
    entries.iter().find(|entry| entry["manager"] == manager).unwrap_or(&Value::Null)
}

#[test]
fn rejects_invalid_applies_and_changes_nothing() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let (one, good) = (format!("{MAPS}/a"), map("a", json!({"k": "v"})));
        let long = format!("fieldManager={}", "m".repeat(129));
        let with = |change: &dyn Fn(&mut Value)| {
            let mut config = good.clone();
            change(&mut config);
            config
        };
        let refused: [(&str, Value, u16, &str); 11] = [
            (
                "",
                good.clone(),
                422,
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            ),
            (&long, good.clone(), 422, "fieldManager: Too long: may not be more than 128 bytes"),
            ("fieldManager=a%0Ab", good.clone(), 422, "invalid character U+000A (at position 1)"),
            ("fieldManager=m", json!("text"), 400, "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type map[string]interface {}"),
            (
                "fieldManager=m",
                with(&|config| config["kind"] = "Secret".into()),
                400,
                "invalid object type: /v1, Kind=Secret",
            ),
            (
                "fieldManager=m",
                with(&|config| config["metadata"]["name"] = "b".into()),
                400,
                "does not match the name on the URL",
            ),
            (
                "fieldManager=m",
                with(&|config| config["metadata"]["managedFields"] = json!([])),
                400,
                "metadata.managedFields must be nil",
            ),
            (
                "fieldManager=m",
                with(&|config| config["metadata"]["uid"] = "u".into()),
                409,
                "uid mismatch: the provided object specified uid u, and no existing object was found",
            ),
            (
                "fieldManager=m",
                with(&|config| config["data"]["k"] = 5.into()),
                400,
                "failed to create typed patch object (default/a; v1, Kind=ConfigMap): .data.k: expected string, got 5",
            ),
            ("fieldManager=m", with(&|config| config["more"] = 5.into()), 400, ".more: field not declared in schema"),
            ("fieldManager=m&fieldValidation=Some", good.clone(), 422, "fieldValidation: Unsupported value"),
        ];
        for (query, config, code, text) in refused {
            let answer = apply(&mut http, &one, query, &config).await;
            let message = answer.body["message"].as_str().unwrap_or_default();
            assert!(answer.code == code && message.contains(text), "{query} {config}: {} {message}", answer.code);
        }
        let twice = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}"#;
        let answer = http.send("PATCH", &format!("{one}?fieldManager=m&fieldValidation=Strict"), APPLY, twice).await;
        assert!(answer.code == 400 && answer.body.to_string().contains("already set in map"), "{}", answer.body);
        let answer = http.send("PATCH", &format!("{one}?fieldManager=m"), APPLY, "a: [b").await;
        assert!(
            answer.code == 400 && answer.body["message"].as_str().unwrap().starts_with("error encoding patch: yaml: ")
        );
        let answer = http.send("PATCH", &format!("{one}?fieldManager=m"), "application/apply-patch+cbor", "x").await;
        assert_eq!((answer.code, &answer.body["message"]), (415, &json!("415: Unsupported Media Type")));
        let missing = format!("/apis/{}", "apiextensions.k8s.io/v1/customresourcedefinitions/x.example.com/status");
        let status = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"});
        assert_eq!(apply(&mut http, &missing, "fieldManager=m", &status).await.code, 404, "a part makes no whole");
        assert_eq!(http.json("GET", &one, Value::Null).await.code, 404, "nothing was written");
        http.json("POST", MAPS, good.clone()).await;
        let forced = http.send("PATCH", &format!("{one}?force=true"), "application/merge-patch+json", "{}").await;
        assert!(
            forced.body["message"]
                .as_str()
                .unwrap()
                .contains("force: Forbidden: may not be specified for non-apply patch")
        );
        let stale = with(&|config| config["metadata"]["resourceVersion"] = "1".into());
        assert_eq!(apply(&mut http, &one, "fieldManager=m", &stale).await.body["reason"], "Conflict");
        let long = http.json("POST", &format!("{MAPS}?{long}"), map("b", json!({}))).await;
        assert!(long.code == 422 && long.body["message"].as_str().unwrap().starts_with("CreateOptions.meta.k8s.io"));
    });
}

#[test]
fn writes_of_all_kinds_have_their_managers() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let one = format!("{MAPS}/a");
        let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {k: v}\n";
        let made = http.send("PATCH", &format!("{one}?fieldManager=m&dryRun=All"), APPLY, yaml).await;
        assert_eq!((made.code, http.json("GET", &one, Value::Null).await.code), (201, 404), "a dry run makes nothing");
        let made = http.send("PATCH", &format!("{one}?fieldManager=m"), APPLY, yaml).await;
        assert_eq!(made.code, 201);
        assert_eq!(entry(&made, "m")["fieldsV1"], json!({"f:data": {"f:k": {}}}));
        let again = apply(&mut http, &one, "fieldManager=m", &map("a", json!({"k": "v"}))).await;
        assert_eq!((again.code, &again.body), (200, &made.body), "not even a time");

        // Without a name and without a program, and with a name.
        let patched = http.merge(&one, json!({"data": {"l": "1"}})).await;
        assert_eq!(entry(&patched, "unknown")["operation"], "Update");
        assert_eq!(entry(&patched, "unknown")["fieldsV1"], json!({"f:data": {"f:l": {}}}));
        let mut whole = patched.body.clone();
        whole["data"]["l"] = "2".into();
        let put = http.json("PUT", &format!("{one}?fieldManager=editor"), whole).await;
        assert_eq!(entry(&put, "editor")["fieldsV1"], json!({"f:data": {"f:l": {}}}));
        assert!(entry(&put, "unknown").is_null(), "it has lost its only field");
        assert_eq!(entry(&put, "editor")["apiVersion"], "v1");

        let refused = apply(&mut http, &one, "fieldManager=m", &map("a", json!({"k": "v", "l": "3"}))).await;
        let wanted = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409, "reason": "Conflict",
            "message": "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.l",
            "details": {"causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"editor\" using v1", "field": ".data.l"}]},
        });
        assert_eq!(refused.body, wanted);
        let forced = apply(&mut http, &one, "fieldManager=m&force=true", &map("a", json!({"k": "v", "l": "3"}))).await;
        assert_eq!((forced.code, &forced.body["data"]["l"]), (200, &json!("3")));
        assert!(entry(&forced, "editor").is_null());

        // Managers are removed on request, and recorded again from the next apply on.
        let reset = http.merge(&one, json!({"metadata": {"managedFields": []}})).await;
        assert!(reset.code == 200 && reset.body["metadata"].get("managedFields").is_none(), "{}", reset.body);
        let patched = http.merge(&one, json!({"data": {"l": "4"}})).await;
        assert!(patched.body["metadata"].get("managedFields").is_none(), "nobody keeps track of it");
        let refused = apply(&mut http, &one, "fieldManager=m", &map("a", json!({"l": "5"}))).await;
        assert!(refused.body.to_string().contains("before-first-apply"), "{}", refused.body);
        let shared = apply(&mut http, &one, "fieldManager=m", &map("a", json!({"l": "4"}))).await;
        assert_eq!(entry(&shared, "before-first-apply")["fieldsV1"], json!({"f:data": {".": {}, "f:k": {}, "f:l": {}}}));
    });
}

#[test]
fn old_updaters_are_merged() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let one = format!("{MAPS}/a");
        http.json("POST", &format!("{MAPS}?fieldManager=m00"), map("a", json!({"k00": "v"}))).await;
        for index in 1..13 {
            let key = format!("k{index:02}");
            let path = format!("{one}?fieldManager=m{index:02}");
            http.send("PATCH", &path, "application/merge-patch+json", json!({"data": {key: "v"}}).to_string()).await;
        }
        let answer = http.json("GET", &one, Value::Null).await;
        let entries = answer.body["metadata"]["managedFields"].as_array().unwrap();
        assert_eq!(entries.len(), 10);
        let oldest = json!({"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}}});
        assert_eq!(entry(&answer, "ancient-changes")["fieldsV1"], oldest);
    });
}

fn definition(enabled: bool) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "color": {"type": "string"}, "size": {"type": "integer"},
        "dims": {"type": "object", "properties": {"depth": {"type": "integer"}, "width": {"type": "integer"}}},
        "pins": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items":
            {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "level": {"type": "integer"}}}},
    }}}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}});
    let gate = json!({"name": "Extra", "preRelease": "alpha", "enabled": enabled, "fieldPaths": [".spec.size", ".spec.pins[*].level", ".spec.dims.depth"]});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "cards.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "cards", "kind": "Card"},
            "versions": [version("v1", true), version("v2", false)], "customFeatureGates": {"featureGates": [gate]}}})
}

async fn gate(http: &mut Http, on: bool) {
    let path = format!("{DEFINITIONS}/cards.example.com");
    let answer = apply(http, &path, "fieldManager=admin&force=true", &definition(on)).await;
    assert!(matches!(answer.code, 200 | 201), "{}", answer.body);
}

fn card(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Card", "metadata": {"name": "c"}, "spec": spec})
}

const CARD: &str = "/apis/example.com/v1/namespaces/default/cards/c";

#[test]
fn fields_behind_gates_are_neither_owned_nor_lost() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        gate(&mut http, false).await;
        let wish = |size: i64| card("v1", json!({"color": "red", "size": size, "pins": [{"name": "a", "level": 1}]}));
        let made = apply(&mut http, CARD, "fieldManager=one", &wish(5)).await;
        assert_eq!((made.code, &made.body["spec"]), (201, &json!({"color": "red", "pins": [{"name": "a"}]})));
        let dropped: Vec<&String> = made.warnings.iter().filter(|text| text.contains("dropped")).collect();
        assert_eq!(dropped.len(), 2, "{:?}", made.warnings);
        let item = json!({r#"k:{"name":"a"}"#: {".": {}, "f:name": {}}});
        let claim = json!({"f:spec": {"f:color": {}, "f:pins": item}});
        assert_eq!(entry(&made, "one")["fieldsV1"], claim, "what was dropped is not owned");
        let again = apply(&mut http, CARD, "fieldManager=one", &wish(6)).await;
        assert_eq!(again.body, made.body);
        assert!(again.warnings.iter().any(|text| text.contains("spec.size: dropped")), "{:?}", again.warnings);
        // Invalid values are ignored as well.
        let strange = card("v1", json!({"color": "red", "size": "big", "pins": [{"name": "a"}]}));
        let again = apply(&mut http, CARD, "fieldManager=one", &strange).await;
        assert_eq!((again.code, &again.body), (200, &made.body));

        gate(&mut http, true).await;
        let taken = apply(&mut http, CARD, "fieldManager=one", &wish(5)).await;
        assert_eq!(taken.body["spec"]["size"], 5);
        let owned = entry(&taken, "one")["fieldsV1"].clone();
        assert_eq!(owned["f:spec"]["f:size"], json!({}));

        gate(&mut http, false).await;
        // A different value of another manager causes a warning, no conflict and no change.
        let other = apply(&mut http, CARD, "fieldManager=two", &card("v1", json!({"size": 9}))).await;
        assert_eq!((other.code, &other.body["spec"]["size"]), (200, &json!(5)));
        assert!(other.warnings.iter().any(|text| text.contains("spec.size: not updated")), "{:?}", other.warnings);
        assert!(entry(&other, "two").is_null(), "{}", entry(&other, "two"));
        assert_eq!(other.body["metadata"]["resourceVersion"], taken.body["metadata"]["resourceVersion"]);
        // The owner omits the field: value and ownership stay.
        let left = apply(&mut http, CARD, "fieldManager=one", &card("v1", json!({"color": "red"}))).await;
        assert_eq!(left.body["spec"], json!({"color": "red", "size": 5}));
        assert!(left.warnings.iter().any(|text| text.contains("spec.size: not removed")), "{:?}", left.warnings);
        assert_eq!(entry(&left, "one")["fieldsV1"], json!({"f:spec": {"f:color": {}, "f:size": {}}}));
        let put = http.merge(CARD, json!({"spec": {"size": 7, "color": "blue"}})).await;
        assert_eq!(put.body["spec"], json!({"color": "blue", "size": 5}));
        assert_eq!(entry(&put, "one")["fieldsV1"], json!({"f:spec": {"f:size": {}}}));
        assert_eq!(entry(&put, "unknown")["fieldsV1"], json!({"f:spec": {"f:color": {}}}));

        gate(&mut http, true).await;
        let gone = apply(&mut http, CARD, "fieldManager=one", &card("v1", json!({}))).await;
        assert_eq!(gone.body["spec"], json!({"color": "blue"}));

        // The manager that applied the gates removes them by omitting them.
        let mut plain = definition(true);
        plain["spec"].as_object_mut().unwrap().remove("customFeatureGates");
        let path = format!("{DEFINITIONS}/cards.example.com");
        let answer = apply(&mut http, &path, "fieldManager=admin", &plain).await;
        assert_eq!((answer.code, answer.body["spec"].get("customFeatureGates")), (200, None));
    });
}

/// A parent that is no longer applied is removed, also if a gate has dropped all of its fields.
#[test]
fn a_parent_emptied_by_a_gate_is_removed_with_its_applier() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        gate(&mut http, false).await;
        let wish = |dims: Value| card("v1", json!({"color": "red", "dims": dims}));
        let (all, none) = (wish(json!({"depth": 1})), card("v1", json!({"color": "red"})));
        let made = apply(&mut http, CARD, "fieldManager=one", &all).await;
        assert_eq!((made.code, &made.body["spec"]["dims"]), (201, &json!({})));
        assert_eq!(entry(&made, "one")["fieldsV1"], json!({"f:spec": {"f:color": {}, "f:dims": {}}}));
        assert_eq!(apply(&mut http, CARD, "fieldManager=one", &all).await.body, made.body);
        // A dropped value does not change the ownership of existing fields.
        let other = apply(&mut http, CARD, "fieldManager=two", &card("v1", json!({"dims": {"depth": 2}}))).await;
        assert_eq!((other.code, &other.body), (200, &made.body));
        let wide = apply(&mut http, CARD, "fieldManager=two", &card("v1", json!({"dims": {"width": 2}}))).await;
        let again = apply(&mut http, CARD, "fieldManager=one", &all).await;
        assert_eq!(again.body, wide.body, "an apply of the same is none");
        let left = apply(&mut http, CARD, "fieldManager=one", &none).await;
        assert_eq!(left.body["spec"]["dims"], json!({"width": 2}), "what others have stays");
        let left = apply(&mut http, CARD, "fieldManager=two", &card("v1", json!({}))).await;
        assert_eq!(left.body["spec"], json!({"color": "red"}));

        let made = apply(&mut http, CARD, "fieldManager=one", &all).await;
        assert_eq!(made.body["spec"]["dims"], json!({}));
        let left = apply(&mut http, CARD, "fieldManager=one", &none).await;
        assert_eq!(left.body["spec"], json!({"color": "red"}));
        assert_eq!(entry(&left, "one")["fieldsV1"], json!({"f:spec": {"f:color": {}}}));

        // A field that was written while the gate was on has an entry of its own.
        gate(&mut http, true).await;
        let taken = apply(&mut http, CARD, "fieldManager=one", &all).await;
        gate(&mut http, false).await;
        let again = apply(&mut http, CARD, "fieldManager=one", &all).await;
        assert_eq!(again.body, taken.body);
    });
}

/// A map that another manager owns as well does not become null with its last field: a null would be refused.
#[test]
fn a_map_with_another_owner_stays_without_its_last_field() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        gate(&mut http, true).await;
        let dims = |dims: Value| card("v1", json!({"dims": dims, "pins": [{"name": "a"}]}));
        let made = apply(&mut http, CARD, "fieldManager=one", &dims(json!({}))).await;
        assert_eq!(made.code, 201, "{}", made.body);
        let taken = apply(&mut http, CARD, "fieldManager=two&force=true", &dims(json!({"width": 2}))).await;
        assert_eq!((taken.code, &taken.body["spec"]["dims"]), (200, &json!({"width": 2})));
        let left = apply(&mut http, CARD, "fieldManager=two", &card("v1", json!({}))).await;
        assert_eq!((left.code, &left.body["spec"]["dims"]), (200, &json!({})), "{}", left.body);
        let again = apply(&mut http, CARD, "fieldManager=one", &dims(json!({}))).await;
        assert_eq!(again.body, left.body, "an apply of the same is none");
    });
}

#[test]
fn managers_of_several_versions_share_one_object() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        gate(&mut http, true).await;
        let newer = CARD.replace("v1", "v2");
        apply(&mut http, CARD, "fieldManager=one", &card("v1", json!({"color": "red", "size": 1}))).await;
        let refused = apply(&mut http, &newer, "fieldManager=two", &card("v2", json!({"color": "blue"}))).await;
        assert!(
            refused.body["message"].as_str().unwrap().contains("conflict with \"one\": .spec.color"),
            "{}",
            refused.body
        );
        http.merge(&newer, json!({"spec": {"size": 2}})).await;
        let refused = apply(&mut http, CARD, "fieldManager=one", &card("v1", json!({"color": "red", "size": 1}))).await;
        assert!(
            refused.body["message"].as_str().unwrap().contains("\"unknown\" using example.com/v2: .spec.size"),
            "{}",
            refused.body
        );
        // A manager keeps its identity in another version.
        let moved = apply(&mut http, &newer, "fieldManager=one", &card("v2", json!({"size": 2}))).await;
        assert_eq!(moved.body["spec"], json!({"size": 2}), "the color is not applied any more");
        assert_eq!(
            (&entry(&moved, "one")["apiVersion"], &entry(&moved, "one")["fieldsV1"]),
            (&json!("example.com/v2"), &json!({"f:spec": {"f:size": {}}}))
        );
    });
}

/// As in Kubernetes, the time of a manager is updated when it changes one of its fields, also if a gate freezes others.
#[test]
fn an_open_field_that_changes_gives_its_manager_a_new_time() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let integer = json!({"type": "integer"});
        let spec = json!({"type": "object", "properties": {"open": integer, "gated": integer}});
        let gate = |on: bool| json!([{"name": "G", "preRelease": "alpha", "enabled": on, "fieldPaths": [".spec.gated"]}]);
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "times.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "times", "kind": "Time"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
                "customFeatureGates": {"featureGates": gate(true)}}});
        assert_eq!(http.json("POST", DEFINITIONS, definition).await.code, 201);
        let one = "/apis/example.com/v1/namespaces/default/times/a";
        let config = |open: i64, gated: i64| {
            json!({"apiVersion": "example.com/v1", "kind": "Time", "metadata": {"name": "a"}, "spec": {"open": open, "gated": gated}})
        };
        let first = apply(&mut http, one, "fieldManager=applier", &config(1, 1)).await;
        assert_eq!(first.code, 201, "{}", first.body);
        http.merge(&format!("{one}?fieldManager=patcher"), json!({"spec": {"open": 2}})).await;
        let off = json!({"spec": {"customFeatureGates": {"featureGates": gate(false)}}});
        http.merge(&format!("{DEFINITIONS}/times.example.com"), off).await;
        // Times have a resolution of one second: wait until a write elsewhere gets a later one.
        let (clock, mut ticks) = (format!("{MAPS}/clock"), 0);
        until("the server's clock shows a later second", async || {
            ticks += 1;
            let tick = map("clock", json!({"ticks": ticks.to_string()}));
            let ticked = apply(&mut http, &clock, "fieldManager=ticker", &tick).await;
            entry(&ticked, "ticker")["time"].as_str() > entry(&first, "applier")["time"].as_str()
        })
        .await;

        let patched = http.merge(&format!("{one}?fieldManager=patcher"), json!({"spec": {"open": 3, "gated": 3}})).await;
        assert_ne!(entry(&patched, "patcher")["time"], entry(&first, "applier")["time"], "{}", patched.body);
        assert_eq!(entry(&patched, "applier")["fieldsV1"], json!({"f:spec": {"f:gated": {}}}));
        let forced = apply(&mut http, one, "fieldManager=applier&force=true", &config(4, 4)).await;
        assert_eq!(entry(&forced, "applier")["fieldsV1"], entry(&first, "applier")["fieldsV1"]);
        assert_ne!(entry(&forced, "applier")["time"], entry(&first, "applier")["time"], "{}", forced.body);
        let again = apply(&mut http, one, "fieldManager=applier", &config(4, 5)).await;
        assert_eq!(again.body, forced.body, "nothing has changed, not even a time");
    });
}
