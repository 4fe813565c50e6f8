//! The scale of a custom resource, with kubectl and on the wire.

use crate::common;

use common::{World, http::Http};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FLOCK: &str = "/apis/example.com/v1/namespaces/default/flocks/f";

fn definition(gate: Option<bool>) -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"count": {"type": "integer", "maximum": 100}, "kind": {"type": "string"}}},
        "status": {"type": "object", "properties": {"birds": {"type": "integer"}, "labels": {"type": "string"}}}}});
    let scale = json!({"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.birds", "labelSelectorPath": ".status.labels"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale}});
    let mut definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "flocks.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "flocks", "kind": "Flock"}, "versions": [version]}});
    if let Some(enabled) = gate {
        let gate = json!({"name": "Growth", "preRelease": "alpha", "enabled": enabled, "fieldPaths": [".spec.count"]});
        definition["spec"]["customFeatureGates"] = json!({"featureGates": [gate]});
    }
    definition
}

async fn define(http: &mut Http, gate: Option<bool>) {
    let path = format!("{DEFINITIONS}/flocks.example.com?fieldManager=admin&force=true");
    let answer = http.send("PATCH", &path, "application/apply-patch+yaml", definition(gate).to_string()).await;
    assert!(matches!(answer.code, 200 | 201), "{}", answer.body);
}

fn flock(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Flock", "metadata": {"name": "f"}, "spec": spec})
}

#[test]
fn kubectl_scales() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = World::start();
    let mut definition = definition(None);
    definition["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"] = ".status.birds".into();
    let refused = world.kubectl_with(&["create", "-f", "-"], &definition.to_string()).error();
    let wanted =
        "spec.subresources.scale.specReplicasPath: Invalid value: \".status.birds\": should be a json path under .spec";
    assert!(refused.contains(wanted), "{refused}");
    let made = world.kubectl_with(&["create", "-f", "-"], &self::definition(None).to_string());
    assert!(made.code == Some(0) && made.stderr.is_empty(), "{}", made.stderr);
    world.kubectl_wait(&["--for=condition=Established", "crd/flocks.example.com"]).ok();
    world.kubectl_with(&["create", "-f", "-"], &flock(json!({"count": 2, "kind": "geese"})).to_string()).ok();
    assert_eq!(world.kubectl(&["scale", "flock/f", "--replicas=5"]).ok(), "flock.example.com/f scaled\n");
    let get = |path: &str| world.kubectl(&["get", "flock", "f", "-o", &format!("jsonpath={{{path}}}")]).ok();
    assert_eq!((get(".spec.count"), get(".metadata.generation")), ("5".to_owned(), "2".to_owned()));
    let held = world.kubectl(&["scale", "flock/f", "--current-replicas=3", "--replicas=6"]).error();
    assert!(held.contains("Expected replicas to be 3, was 5"), "{held}");
    world.kubectl(&["scale", "flock/f", "--current-replicas=5", "--replicas=6"]).ok();
    assert_eq!(get(".spec.count"), "6");
    let refused = world.kubectl(&["scale", "flock/f", "--replicas=101"]).error();
    assert!(refused.contains("should be less than or equal to 100"), "{refused}");
    world
        .kubectl(&["patch", "flock", "f", "--subresource=status", "--type=merge", "-p", r#"{"status":{"birds":4}}"#])
        .ok();
    let table = world.kubectl(&["get", "flock", "f", "--subresource=scale"]).ok();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((&lines[0][..], &lines[1][..3]), (&["NAME", "DESIRED", "AVAILABLE", "AGE"][..], &["f", "6", "4"][..]));
}

#[test]
fn a_scale_has_the_form_of_autoscaling() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, None).await;
        let scale = format!("{FLOCK}/scale");
        http.json("POST", FLOCK.trim_end_matches("/f"), flock(json!({"kind": "geese"}))).await;
        let none = http.json("GET", &scale, Value::Null).await;
        let text = r#"Internal error occurred: the spec replicas field ".spec.count" does not exist"#;
        assert_eq!((none.code, none.body["message"].as_str()), (500, Some(text)));
        let made = http.merge(&scale, json!({"spec": {"replicas": 3}})).await;
        assert_eq!(made.code, 200, "{}", made.body);
        http.merge(&format!("{FLOCK}/status"), json!({"status": {"birds": 2, "labels": "a=b"}})).await;
        let read = http.json("GET", &scale, Value::Null).await;
        let whole = http.json("GET", FLOCK, Value::Null).await;
        let meta = &whole.body["metadata"];
        let wanted = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "a=b"},
            "metadata": {"name": "f", "namespace": "default", "uid": meta["uid"], "resourceVersion": meta["resourceVersion"],
                         "creationTimestamp": meta["creationTimestamp"]}});
        assert_eq!(read.body, wanted);

        // As in Kubernetes, an absent count is not printed.
        let none = http.merge(&scale, json!({"spec": {"replicas": 0}})).await;
        assert_eq!((none.code, &none.body["spec"]), (200, &json!({})));
        let mut next = http.merge(&scale, json!({"spec": {"replicas": 3}})).await.body;
        next["spec"]["replicas"] = 7.into();
        let put = http.json("PUT", &format!("{scale}?fieldManager=hpa"), next.clone()).await;
        assert_eq!((put.code, &put.body["spec"]["replicas"]), (200, &json!(7)));
        let stale = http.json("PUT", &scale, next.clone()).await;
        assert_eq!((stale.code, &stale.body["reason"]), (409, &json!("Conflict")));
        next["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        next["spec"]["replicas"] = (-1).into();
        let bad = http.json("PUT", &scale, next.clone()).await;
        assert!(bad.body["message"].as_str().unwrap().contains(".spec.count: Invalid value: -1: should be a non-negative integer"), "{}", bad.body);
        next["spec"]["replicas"] = "many".into();
        assert_eq!(http.json("PUT", &scale, next.clone()).await.code, 400);
        next["kind"] = "Flock".into();
        assert_eq!(http.json("PUT", &scale, next).await.code, 400);
        assert_eq!(http.json("DELETE", &scale, Value::Null).await.code, 405);
        assert_eq!(http.json("GET", "/apis/example.com/v1/namespaces/default/flocks/none/scale", Value::Null).await.code, 404);

        // The manager that scales owns the count, under its name in the object.
        let whole = http.json("GET", FLOCK, Value::Null).await;
        let entries = whole.body["metadata"]["managedFields"].as_array().unwrap();
        let hpa = entries.iter().find(|entry| entry["manager"] == "hpa").unwrap();
        assert_eq!((&hpa["subresource"], &hpa["apiVersion"]), (&json!("scale"), &json!("example.com/v1")));
        assert_eq!(hpa["fieldsV1"], json!({"f:spec": {"f:count": {}}}));
        let config = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 9}});
        let apply = |query: &str| (format!("{scale}?fieldManager=ops&{query}"), config.to_string());
        let (path, body) = apply("");
        let refused = http.send("PATCH", &path, "application/apply-patch+yaml", body).await;
        let text = "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \"scale\" using autoscaling/v1: .spec.replicas";
        assert_eq!((refused.code, refused.body["message"].as_str()), (409, Some(text)));
        let (path, body) = apply("force=true");
        let forced = http.send("PATCH", &path, "application/apply-patch+yaml", body).await;
        assert_eq!((forced.code, &forced.body["kind"], &forced.body["spec"]["replicas"]), (200, &json!("Scale"), &json!(9)));
    });
}

#[test]
fn a_gate_on_the_count_applies_to_scales() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Some(true)).await;
        let scale = format!("{FLOCK}/scale");
        let made = http.json("POST", FLOCK.trim_end_matches("/f"), flock(json!({"count": 3}))).await;
        define(&mut http, Some(false)).await;
        let kept = http.merge(&scale, json!({"spec": {"replicas": 8}})).await;
        assert_eq!((kept.code, &kept.body["spec"]["replicas"]), (200, &json!(3)));
        assert!(
            kept.warnings
                .iter()
                .any(|text| text.contains("spec.count: not updated, feature gate \\\"Growth\\\" is disabled")),
            "{:?}",
            kept.warnings
        );
        assert_eq!(kept.body["metadata"]["resourceVersion"], made.body["metadata"]["resourceVersion"]);
    });
}

/// A write of a count that a gate drops succeeds, and leaves nothing to print.
#[test]
fn a_first_count_that_a_gate_drops_is_not_an_error() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Some(false)).await;
        let scale = format!("{FLOCK}/scale");
        let made = http.json("POST", FLOCK.trim_end_matches("/f"), flock(json!({"kind": "geese"}))).await;
        let put = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "f"}, "spec": {"replicas": 8}});
        let apply = ("PATCH", format!("{scale}?fieldManager=m"), "application/apply-patch+yaml");
        let answers = [
            http.merge(&scale, json!({"spec": {"replicas": 8}})).await,
            http.merge(&format!("{scale}?dryRun=All"), json!({"spec": {"replicas": 8}})).await,
            http.json("PUT", &scale, put.clone()).await,
            http.send(apply.0, &apply.1, apply.2, put.to_string()).await,
        ];
        for answer in answers {
            assert_eq!((answer.code, &answer.body["spec"]), (200, &json!({})), "{}", answer.body);
            assert_eq!(answer.body["metadata"]["resourceVersion"], made.body["metadata"]["resourceVersion"]);
            assert!(answer.warnings.iter().any(|text| text.contains("spec.count: dropped")), "{:?}", answer.warnings);
        }
    });
}

/// The count is one field, whatever its name in a version, and a scale takes its ownership in all versions.
#[test]
fn a_scale_takes_ownership_of_the_count_in_every_version() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let mut definition = definition(None);
        let mut other = definition["spec"]["versions"][0].clone();
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        for (key, value) in [("name", json!("v2")), ("storage", false.into())] {
            other[key] = value;
        }
        other["subresources"]["scale"]["specReplicasPath"] = ".spec.number".into();
        definition["spec"]["versions"].as_array_mut().expect("versions").push(other);
        for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
            version["schema"]["openAPIV3Schema"] = any.clone();
        }
        assert_eq!(http.json("POST", DEFINITIONS, definition).await.code, 201);
        let second = FLOCK.replace("v1", "v2");
        let mut object = flock(json!({"number": 2, "kind": "geese"}));
        object["apiVersion"] = "example.com/v2".into();
        let maker = format!("{}?fieldManager=maker", second.trim_end_matches("/f"));
        assert_eq!(http.json("POST", &maker, object).await.code, 201);
        let wanted = flock(json!({"count": 3})).to_string();
        let applied = http.send("PATCH", &format!("{FLOCK}?fieldManager=applier"), "application/apply-patch+yaml", wanted).await;
        assert_eq!(applied.code, 200, "{}", applied.body);
        let config = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 9}}).to_string();
        let refused = http.send("PATCH", &format!("{FLOCK}/scale?fieldManager=ops"), "application/apply-patch+yaml", config).await;
        let text = "Apply failed with 2 conflicts: conflicts with \"applier\":\n- .spec.replicas\nconflicts with \"maker\" using autoscaling/v1:\n- .spec.replicas";
        assert_eq!((refused.code, refused.body["message"].as_str()), (409, Some(text)));
        let scaled = http.merge(&format!("{FLOCK}/scale?fieldManager=scaler"), json!({"spec": {"replicas": 5}})).await;
        assert_eq!(scaled.code, 200, "{}", scaled.body);
        let read = http.json("GET", FLOCK, Value::Null).await;
        let entries = read.body["metadata"]["managedFields"].as_array().expect("managers");
        let fields = |manager: &str| entries.iter().find(|entry| entry["manager"] == manager).map(|entry| &entry["fieldsV1"]);
        let managers: Vec<&str> = entries.iter().filter_map(|entry| entry["manager"].as_str()).collect();
        assert_eq!((managers, entries[1].get("time")), (vec!["applier", "scaler", "maker"], None));
        assert_eq!(fields("applier"), Some(&json!({"f:spec": {}})));
        assert_eq!(fields("scaler"), Some(&json!({"f:spec": {"f:count": {}}})));
        assert_eq!(fields("maker"), Some(&json!({"f:spec": {".": {}, "f:kind": {}}})));
    });
}
