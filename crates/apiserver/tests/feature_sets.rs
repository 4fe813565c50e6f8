//! The manifests of feature sets on this server: which set may follow which, for every kind of write.

use crate::common;

use common::{
    World,
    http::{Answer, Http},
};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const GATES: &str = "/apis/config.openshift.io/v1/featuregates";
const CLUSTER: &str = "/apis/config.openshift.io/v1/featuregates/cluster";
const NAMESPACE: &str = "lockgate-gates";
const KEEP: &str = "keep.gates.lockgate.io";

/// The rows are old values of spec.featureSet, the columns new ones. `removed`, `changed` and `okd` stand for the texts of refusals.
const MATRIX: &str = r#"
from                  absent   ""       TechPreviewNoUpgrade  DevPreviewNoUpgrade  CustomNoUpgrade  OKD
absent                ok       ok       ok                    ok                   ok               ok
""                    removed  ok       ok                    ok                   ok               ok
TechPreviewNoUpgrade  removed  changed  ok                    changed              changed          changed
DevPreviewNoUpgrade   removed  changed  changed               ok                   changed          changed
CustomNoUpgrade       removed  changed  changed               changed              ok               changed
OKD                   removed  okd      ok                    ok                   ok               ok
"#;

/// An old set, a new set, and the text that refuses the change.
fn cells() -> Vec<(&'static str, &'static str, Option<String>)> {
    let mut lines = MATRIX.trim().lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let mut cells = Vec::new();
    for line in lines {
        for (new, verdict) in head[1..].iter().zip(&line[1..]) {
            let shown = if *new == "\"\"" { (*new).to_owned() } else { format!("{new:?}") };
            let why = match *verdict {
                "ok" => None,
                "removed" => Some("spec: Invalid value: .spec.featureSet cannot be removed".to_owned()),
                "changed" => Some(format!("spec.featureSet: Invalid value: {shown}: {} may not be changed", line[0])),
                "okd" => Some(format!("spec.featureSet: Invalid value: {shown}: OKD cannot transition to Default")),
                other => panic!("{other}"),
            };
            let why = why.map(|why| format!("FeatureGate.config.openshift.io \"cluster\" is invalid: {why}"));
            cells.push((line[0], *new, why));
        }
    }
    cells
}

fn spec(set: &str) -> Value {
    match set {
        "absent" => json!({}),
        "\"\"" => json!({"featureSet": ""}),
        set => json!({"featureSet": set}),
    }
}

fn gate(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "metadata": {"name": name}, "spec": spec})
}

fn text(answer: &Answer) -> Option<&str> {
    answer.body["message"].as_str()
}

async fn good(http: &mut Http, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = http.send(method, path, "application/json", body).await;
    assert!(answer.code < 300, "{method} {path}: {}", answer.body);
    answer.body
}

async fn apply(http: &mut Http, path: &str, object: &Value) -> Answer {
    let path = format!("{path}?fieldManager=matrix&force=true");
    http.send("PATCH", &path, "application/apply-patch+yaml", object.to_string()).await
}

/// Applies the objects of a manifest.
async fn install(http: &mut Http, manifest: &str) {
    for object in featureset::yaml::objects(manifest).unwrap() {
        let plural = match object["kind"].as_str().unwrap() {
            "Namespace" => "/api/v1/namespaces",
            "CustomResourceDefinition" => DEFINITIONS,
            "ValidatingAdmissionPolicy" => "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            "ValidatingAdmissionPolicyBinding" => BINDINGS,
            other => panic!("{other}"),
        };
        let path = format!("{plural}/{}", object["metadata"]["name"].as_str().unwrap());
        let answer = apply(http, &path, &object).await;
        assert!(answer.code < 300, "{path}: {}", answer.body);
    }
}

async fn furnish(http: &mut Http) {
    install(http, &featureset::generate::crds()).await;
    install(http, &featureset::generate::namespace(NAMESPACE)).await;
    install(http, &featureset::generate::policies(NAMESPACE)).await;
}

/// Resets FeatureGate `cluster` to this set, by removing what protects it for a moment.
async fn reset(http: &mut Http, set: &str) -> Value {
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": KEEP}, "spec": {"policyName": KEEP, "validationActions": ["Deny"]}});
    good(http, "DELETE", &format!("{BINDINGS}/{KEEP}"), Value::Null).await;
    http.send("DELETE", CLUSTER, "application/json", "").await;
    let answer = apply(http, CLUSTER, &gate("cluster", spec(set))).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    good(http, "POST", BINDINGS, binding).await;
    answer.body
}

/// A kind of write that changes the set.
async fn change(http: &mut Http, way: &str, found: &Value, set: &str) -> Answer {
    let mut object = found.clone();
    object["spec"] = spec(set);
    let wanted = spec(set).get("featureSet").cloned();
    match way {
        "update" => http.json("PUT", CLUSTER, object).await,
        "json patch" => {
            let op = match (&wanted, found["spec"].get("featureSet").is_some()) {
                (Some(set), _) => json!([{"op": "add", "path": "/spec/featureSet", "value": set}]),
                (None, true) => json!([{"op": "remove", "path": "/spec/featureSet"}]),
                (None, false) => json!([]),
            };
            http.send("PATCH", CLUSTER, "application/json-patch+json", op.to_string()).await
        }
        "merge patch" => http.merge(CLUSTER, json!({"spec": {"featureSet": wanted}})).await,
        "apply" => apply(http, CLUSTER, &gate("cluster", spec(set))).await,
        other => panic!("{other}"),
    }
}

#[test]
fn the_matrix_holds_for_every_kind_of_write() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        furnish(&mut http).await;
        let (mut checked, mut refused) = (0, 0);
        for way in ["update", "json patch", "merge patch", "apply"] {
            let mut at = None;
            for (old, new, why) in cells() {
                if at != Some(old) {
                    reset(&mut http, old).await;
                }
                let found = good(&mut http, "GET", CLUSTER, Value::Null).await;
                let answer = change(&mut http, way, &found, new).await;
                let what = format!("{old} to {new} by {way}");
                match &why {
                    None => {
                        assert_eq!((answer.code, &answer.body["spec"]), (200, &spec(new)), "{what}: {}", answer.body)
                    }
                    Some(why) => {
                        assert_eq!((answer.code, text(&answer)), (422, Some(why.as_str())), "{what}");
                        let now = good(&mut http, "GET", CLUSTER, Value::Null).await;
                        assert_eq!(now, found, "refused means untouched: {what}");
                        refused += 1;
                    }
                }
                at = why.is_some().then_some(old);
                checked += 1;
            }
        }
        assert_eq!((checked, refused), (4 * 36, 4 * 18));
    });
}

/// Deleting and creating again, deleting the collection, the definition or the namespace of the records is refused, and
/// `/status` does not change the spec.
#[test]
fn no_other_request_leaves_a_set() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        furnish(&mut http).await;
        let kept = |resource: &str, name: &str| {
            format!(
                "{resource} {name:?} is forbidden: ValidatingAdmissionPolicy '{KEEP}' with binding '{KEEP}' denied request: \
                 feature sets are kept in this object, it cannot be deleted"
            )
        };
        let definition = |plural: &str| format!("{DEFINITIONS}/{plural}.config.openshift.io");
        let deletions = [
            (CLUSTER.to_owned(), kept("featuregates.config.openshift.io", "cluster")),
            (GATES.to_owned(), kept("featuregates.config.openshift.io", "cluster")),
            (format!("{CLUSTER}?dryRun=All"), kept("featuregates.config.openshift.io", "cluster")),
            (format!("{GATES}?fieldSelector=metadata.name%3Dcluster"), kept("featuregates.config.openshift.io", "cluster")),
            (definition("featuregates"), kept("customresourcedefinitions.apiextensions.k8s.io", "featuregates.config.openshift.io")),
            (definition("clusterversions"), kept("customresourcedefinitions.apiextensions.k8s.io", "clusterversions.config.openshift.io")),
            (DEFINITIONS.to_owned(), kept("customresourcedefinitions.apiextensions.k8s.io", "clusteroperators.config.openshift.io")),
            (format!("/api/v1/namespaces/{NAMESPACE}"), kept("namespaces", NAMESPACE)),
        ];
        for set in ["absent", "\"\"", "TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade", "OKD"] {
            let found = reset(&mut http, set).await;
            for (path, why) in &deletions {
                let answer = http.send("DELETE", path, "application/json", "").await;
                assert_eq!((answer.code, text(&answer)), (403, Some(why.as_str())), "{set}: DELETE {path}");
            }
            // A rule that compares two specs does not apply to the first one.
            let mut object = good(&mut http, "GET", CLUSTER, Value::Null).await;
            object.as_object_mut().unwrap().remove("spec");
            let remove = json!([{"op": "remove", "path": "/spec"}]).to_string();
            let answers = [
                http.json("PUT", CLUSTER, object).await,
                http.merge(CLUSTER, json!({"spec": null})).await,
                http.send("PATCH", CLUSTER, "application/json-patch+json", remove).await,
            ];
            for answer in answers {
                assert!(answer.code == 422 && text(&answer).unwrap().contains("spec: Required value"), "{set}: {}", answer.body);
            }
            for new in ["absent", "\"\"", "TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade", "OKD"] {
                let again = http.json("POST", GATES, gate("cluster", spec(new))).await;
                assert_eq!((again.code, again.body["reason"].as_str()), (409, Some("AlreadyExists")), "{set} to {new}");
                let path = format!("{CLUSTER}/status");
                let mut object = good(&mut http, "GET", CLUSTER, Value::Null).await;
                object["spec"] = spec(new);
                let answers = [
                    http.json("PUT", &path, object.clone()).await,
                    http.merge(&path, json!({"spec": {"featureSet": spec(new).get("featureSet")}})).await,
                    apply(&mut http, &path, &gate("cluster", spec(new))).await,
                ];
                for answer in answers {
                    assert_eq!((answer.code, &answer.body["spec"]), (200, &spec(set)), "{set} to {new} by status");
                }
            }
            assert_eq!(good(&mut http, "GET", CLUSTER, Value::Null).await["metadata"]["uid"], found["metadata"]["uid"]);
        }
    });
}

#[test]
fn custom_lists_and_names_are_checked() {
    const LISTS: &str = "spec.customNoUpgrade is allowed only with featureSet CustomNoUpgrade";
    const BOTH: &str = "spec.customNoUpgrade.enabled and spec.customNoUpgrade.disabled must not have a gate in common";
    let lists = |enabled: &[&str], disabled: &[&str]| json!({"enabled": enabled, "disabled": disabled});
    let table = [
        (json!({"featureSet": "CustomNoUpgrade", "customNoUpgrade": lists(&["A"], &["B"])}), None),
        (json!({"featureSet": "CustomNoUpgrade", "customNoUpgrade": lists(&["A", "B"], &["C", "B"])}), Some(BOTH)),
        (json!({"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": ["A"]}}), None),
        (json!({"featureSet": "CustomNoUpgrade"}), None),
        (json!({"featureSet": "TechPreviewNoUpgrade", "customNoUpgrade": null}), None),
        (json!({"featureSet": "TechPreviewNoUpgrade", "customNoUpgrade": lists(&["A"], &[])}), Some(LISTS)),
        (json!({"featureSet": "OKD", "customNoUpgrade": {}}), Some(LISTS)),
        (json!({"featureSet": "", "customNoUpgrade": lists(&["A"], &["A"])}), Some(LISTS)),
        (json!({"customNoUpgrade": lists(&["A"], &[])}), Some(LISTS)),
    ];
    let denied = |name: &str, why: &str| {
        let by =
            "ValidatingAdmissionPolicy 'feature-gate.gates.lockgate.io' with binding 'feature-gate.gates.lockgate.io'";
        format!("featuregates.config.openshift.io {name:?} is forbidden: {by} denied request: {why}")
    };
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        furnish(&mut http).await;
        let wrong = http.json("POST", GATES, gate("other", json!({}))).await;
        assert_eq!(
            (wrong.code, text(&wrong)),
            (422, Some(denied("other", "the only FeatureGate is named cluster").as_str()))
        );
        for (spec, why) in table {
            // At creation (nothing is stored, so the next can be tried), and at each kind of change.
            let why = why.map(|why| denied("cluster", why));
            let made = http.json("POST", &format!("{GATES}?dryRun=All"), gate("cluster", spec.clone())).await;
            assert_eq!(made.code, if why.is_some() { 422 } else { 201 }, "{spec}: {}", made.body);
            if let Some(why) = &why {
                assert_eq!(text(&made), Some(why.as_str()), "{spec}");
            }
            let set = if spec["featureSet"] == "CustomNoUpgrade" { "CustomNoUpgrade" } else { "absent" };
            let mut object = reset(&mut http, set).await;
            object["spec"] = spec.clone();
            let answers = [
                http.json("PUT", CLUSTER, object).await,
                http.merge(CLUSTER, json!({"spec": spec})).await,
                apply(&mut http, CLUSTER, &gate("cluster", spec.clone())).await,
            ];
            for answer in answers {
                match &why {
                    Some(why) => assert_eq!((answer.code, text(&answer)), (422, Some(why.as_str())), "{spec}"),
                    None => assert_eq!(answer.code, 200, "{spec}: {}", answer.body),
                }
            }
            http.send("DELETE", &format!("{BINDINGS}/{KEEP}"), "application/json", "").await;
            http.send("DELETE", CLUSTER, "application/json", "").await;
            install(&mut http, &featureset::generate::policies(NAMESPACE)).await;
        }
    });
}

/// Entries of registries and of the audit trail can be added, but not changed or removed.
#[test]
fn records_are_append_only() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        furnish(&mut http).await;
        let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
        let record = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"1": "a"},
            "metadata": {"name": "gates-audit-1", "labels": {featureset::config_map::LABEL: "audit"}}});
        good(&mut http, "POST", &maps, record).await;
        let one = format!("{maps}/gates-audit-1");
        let denied = |why: &str| {
            let by = "ValidatingAdmissionPolicy 'records.gates.lockgate.io' with binding 'records.gates.lockgate.io'";
            format!("configmaps \"gates-audit-1\" is forbidden: {by} denied request: {why}")
        };
        let changed = denied("entries of registries and of the audit trail are added, never changed");
        let deleted = denied("registries and the audit trail are kept, they cannot be deleted");
        let label = denied("registries and the audit trail keep the label gates.lockgate.io/kind");
        for (method, path, patch, why) in [
            ("PATCH", &one, json!({"data": {"1": "b"}}), &changed),
            ("PATCH", &one, json!({"data": null}), &changed),
            ("PATCH", &one, json!({"data": {"1": "b"}, "metadata": {"labels": null}}), &changed),
            // Without its label, an object would no longer count as a record, and could be deleted.
            ("PATCH", &one, json!({"metadata": {"labels": null}}), &label),
            ("PATCH", &one, json!({"metadata": {"labels": {featureset::config_map::LABEL: "registry"}}}), &label),
            ("DELETE", &one, json!({}), &deleted),
            ("DELETE", &maps, json!({}), &deleted),
        ] {
            let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
            let answer = http.send(method, path, media, patch.to_string()).await;
            assert_eq!((answer.code, text(&answer)), (403, Some(why.as_str())), "{method} {patch}");
        }
        assert_eq!(http.merge(&one, json!({"data": {"2": "b"}})).await.code, 200);
        // A registry may be deleted after the controller has marked it as unused, the audit trail never.
        let mark = json!({"metadata": {"annotations": {featureset::sync::UNUSED_SINCE: "2026-01-01T00:00:00Z"}}});
        let registry = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"1": "a"},
            "metadata": {"name": "gates-1.2.0", "labels": {featureset::config_map::LABEL: "registry"}}});
        good(&mut http, "POST", &maps, registry).await;
        let old = format!("{maps}/gates-1.2.0");
        assert_eq!(http.send("DELETE", &old, "application/json", "").await.code, 403);
        assert_eq!(http.merge(&old, mark.clone()).await.code, 200);
        assert_eq!(http.send("DELETE", &old, "application/json", "").await.code, 200);
        assert_eq!(http.merge(&one, mark).await.code, 200);
        assert_eq!(http.send("DELETE", &one, "application/json", "").await.code, 403);
        // Other objects are not protected.
        let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}});
        good(&mut http, "POST", &maps, plain).await;
        good(&mut http, "DELETE", &format!("{maps}/plain"), Value::Null).await;
    });
}
