//! ValidatingAdmissionPolicies for every kind of write.

use crate::common;

use common::{World, http::Http};
use harness::asynchronous::until;
use serde_json::{Value, json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/g.example.com/v1/namespaces/default/things";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}});
    let parts = json!({"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema, "subresources": parts});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.g.example.com"},
        "spec": {"group": "g.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", true), version("v2", false)]}})
}

fn thing(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "g.example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"replicas": replicas}})
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// A policy that refuses all requests that its rules match, with a message that describes the request.
fn policy(name: &str, rule: Value) -> Value {
    let count = |object: &str| format!("{object} == null ? '-' : string({object}.?spec.?replicas.orValue(0))");
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [{"name": "new", "expression": count("object")}, {"name": "old", "expression": count("oldObject")},
            {"name": "part", "expression": "has(request.subResource) ? '/' + request.subResource : ''"}],
        "validations": [{"expression": "false", "messageExpression":
            "request.operation + variables.part + ' ' + request.kind.kind + ' ' + request.name + ' ' + variables.old + ' -> ' + variables.new"}]}})
}

fn binding(name: &str, action: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": [action]}})
}

fn everything() -> Value {
    json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]})
}

async fn good(http: &mut Http, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = http.send(method, path, "application/json", body).await;
    assert!(answer.code < 300, "{method} {path}: {}", answer.body);
    answer.body
}

async fn until_gone(http: &mut Http, path: &str) {
    let what = format!("{path} is gone");
    until(&what, async || http.json("GET", path, Value::Null).await.code == 404).await;
}

/// Creates objects before there is a policy.
async fn furnish(http: &mut Http) {
    good(http, "POST", DEFINITIONS, definition()).await;
    good(http, "POST", THINGS, thing("a", 1)).await;
    good(http, "POST", MAPS, map("m")).await;
    good(
        http,
        "POST",
        "/api/v1/namespaces",
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}),
    )
    .await;
}

#[test]
fn every_write_is_validated() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        furnish(&mut http).await;
        let a = good(&mut http, "GET", &format!("{THINGS}/a"), Value::Null).await;
        good(&mut http, "POST", POLICIES, policy("all", everything())).await;
        good(&mut http, "POST", MAPS, map("not-bound")).await;
        good(&mut http, "POST", BINDINGS, binding("all", "Deny")).await;

        const JSON: &str = "application/json";
        const MERGE: &str = "application/merge-patch+json";
        const APPLY: &str = "application/apply-patch+yaml";
        let mut replaced = a.clone();
        replaced["spec"]["replicas"] = json!(3);
        let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "default"}, "spec": {"replicas": 5}});
        let by = "?fieldManager=f";
        let table: Vec<(&str, String, &str, Value, &str, &str)> = vec![
            ("POST", THINGS.into(), JSON, thing("b", 2), "things.g.example.com", "b: CREATE Thing b - -> 2"),
            ("POST", format!("{THINGS}?dryRun=All"), JSON, thing("b", 2), "things.g.example.com", "b: CREATE Thing b - -> 2"),
            ("PUT", format!("{THINGS}/a"), JSON, replaced.clone(), "things.g.example.com", "a: UPDATE Thing a 1 -> 3"),
            ("PUT", format!("{THINGS}/a/status"), JSON, replaced, "things.g.example.com", "a: UPDATE/status Thing a 1 -> 1"),
            ("PUT", format!("{THINGS}/a/scale"), JSON, scale, "things.g.example.com", "a: UPDATE/scale Scale a 1 -> 5"),
            ("PATCH", format!("{THINGS}/a"), "application/json-patch+json", json!([{"op": "replace", "path": "/spec/replicas", "value": 4}]), "things.g.example.com", "a: UPDATE Thing a 1 -> 4"),
            ("PATCH", format!("{THINGS}/a"), MERGE, json!({"spec": {"replicas": 4}}), "things.g.example.com", "a: UPDATE Thing a 1 -> 4"),
            ("PATCH", format!("{THINGS}/a"), MERGE, json!({}), "things.g.example.com", "a: UPDATE Thing a 1 -> 1"),
            ("PATCH", format!("{THINGS}/a/status"), MERGE, json!({"status": {"replicas": 4}}), "things.g.example.com", "a: UPDATE/status Thing a 1 -> 1"),
            ("PATCH", format!("{THINGS}/a/scale"), MERGE, json!({"spec": {"replicas": 6}}), "things.g.example.com", "a: UPDATE/scale Scale a 1 -> 6"),
            ("PATCH", format!("{THINGS}/a{by}&force=true"), APPLY, thing("a", 7), "things.g.example.com", "a: UPDATE Thing a 1 -> 7"),
            ("PATCH", format!("{THINGS}/c{by}"), APPLY, thing("c", 8), "things.g.example.com", "c: CREATE Thing c - -> 8"),
            ("DELETE", format!("{THINGS}/a"), JSON, json!({}), "things.g.example.com", "a: DELETE Thing a 1 -> -"),
            ("DELETE", THINGS.into(), JSON, json!({}), "things.g.example.com", "a: DELETE Thing a 1 -> -"),
            ("DELETE", format!("{DEFINITIONS}/things.g.example.com"), JSON, json!({}), "customresourcedefinitions.apiextensions.k8s.io", "things.g.example.com: DELETE CustomResourceDefinition things.g.example.com 0 -> -"),
            ("PATCH", format!("{DEFINITIONS}/things.g.example.com"), MERGE, json!({"metadata": {"labels": {"x": "y"}}}), "customresourcedefinitions.apiextensions.k8s.io", "things.g.example.com: UPDATE CustomResourceDefinition things.g.example.com 0 -> 0"),
            ("PATCH", format!("{MAPS}/m"), "application/strategic-merge-patch+json", json!({"data": {"k": "v"}}), "configmaps", "m: UPDATE ConfigMap m 0 -> 0"),
            ("POST", MAPS.into(), JSON, map("o"), "configmaps", "o: CREATE ConfigMap o - -> 0"),
            ("DELETE", MAPS.into(), JSON, json!({}), "configmaps", "m: DELETE ConfigMap m 0 -> -"),
            ("DELETE", "/api/v1/namespaces/n".into(), JSON, json!({}), "namespaces", "n: DELETE Namespace n 0 -> -"),
        ];
        for (method, path, media, body, resource, seen) in table {
            let (name, seen) = seen.split_once(": ").unwrap();
            let answer = http.send(method, &path, media, body.to_string()).await;
            let denied = format!("ValidatingAdmissionPolicy 'all' with binding 'all' denied request: {seen}");
            let said = format!("{resource} {name:?} is forbidden: {denied}");
            let found = (answer.code, answer.body["reason"].as_str(), answer.body["message"].as_str());
            assert_eq!(found, (422, Some("Invalid"), Some(said.as_str())), "{method} {path}");
            assert_eq!(answer.body["details"]["causes"], json!([{"message": denied}]));
        }
        assert_eq!(good(&mut http, "GET", &format!("{THINGS}/a"), Value::Null).await, a, "a refused write changes nothing");

        // With Warn, the requests succeed with a warning.
        let patch = json!({"spec": {"validationActions": ["Warn"]}});
        assert_eq!(http.merge(&format!("{BINDINGS}/all"), patch).await.code, 200, "policies do not apply to policies");
        let answer = http.merge(&format!("{THINGS}/a"), json!({"spec": {"replicas": 9}})).await;
        let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'all' with binding 'all': UPDATE Thing a 1 -> 9\"";
        assert_eq!((answer.code, answer.warnings), (200, vec![warning.to_owned()]));
        let answer = http.send("DELETE", &format!("{THINGS}/a"), JSON, "").await;
        assert_eq!((answer.code, answer.warnings.len()), (200, 1));
        good(&mut http, "DELETE", &format!("{POLICIES}/all"), Value::Null).await;
        assert!(http.json("POST", THINGS, thing("a", 1)).await.warnings.is_empty());
    });
}

/// Rules may name another version than the request; the policy sees the object in the version of the rule.
#[test]
fn versions_are_equivalent_unless_exact() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        furnish(&mut http).await;
        let rule = json!({"apiGroups": ["g.example.com"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["UPDATE"]});
        let mut one = policy("one", rule);
        one["spec"]["validations"][0]["messageExpression"] =
            "request.kind.version + ' ' + request.requestKind.version + ' ' + object.apiVersion + ' by ' + request.userInfo.username".into();
        one["spec"]["validations"][0]["reason"] = "Forbidden".into();
        good(&mut http, "POST", POLICIES, one).await;
        good(&mut http, "POST", BINDINGS, binding("one", "Deny")).await;
        let path = "/apis/g.example.com/v2/namespaces/default/things/a";
        let answer = http.merge(path, json!({"spec": {"replicas": 2}})).await;
        let seen = "v1 v2 g.example.com/v1 by kubernetes-admin";
        let said = format!("things.g.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'one' with binding 'one' denied request: {seen}");
        assert_eq!((answer.code, answer.body["reason"].as_str(), answer.body["message"].as_str()), (403, Some("Forbidden"), Some(said.as_str())));
        let exact = json!({"spec": {"matchConstraints": {"matchPolicy": "Exact"}}});
        let changed = http.merge(&format!("{POLICIES}/one"), exact).await.body;
        assert_eq!((&changed["metadata"]["generation"], &changed["status"]["observedGeneration"]), (&json!(2), &json!(2)));
        assert_eq!(http.merge(path, json!({"spec": {"replicas": 2}})).await.code, 200);
    });
}

/// A policy is enforced by all servers, regardless of which of them stored it.
#[test]
fn a_policy_holds_on_all_servers_at_once() {
    let world = World::start();
    let other = world.another();
    world.run(async {
        let (mut here, mut there) = (Http::connect(world.api()).await, Http::connect(&other).await);
        let rule =
            json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]});
        good(&mut here, "POST", POLICIES, policy("p", rule)).await;
        for round in 0..20 {
            good(&mut here, "POST", BINDINGS, binding("p", "Deny")).await;
            let (a, b) = (map(&format!("here-{round}")), map(&format!("there-{round}")));
            assert_eq!(there.json("POST", MAPS, b.clone()).await.code, 422, "round {round}");
            assert_eq!(here.json("POST", MAPS, a.clone()).await.code, 422, "round {round}");
            good(&mut here, "DELETE", &format!("{BINDINGS}/p"), Value::Null).await;
            assert_eq!(
                here.json("POST", MAPS, a).await.code,
                201,
                "the server that removes a binding stops enforcing it at once, round {round}"
            );
        }
    });
}

#[test]
fn a_namespace_stays_while_a_policy_keeps_its_content() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        furnish(&mut http).await;
        good(&mut http, "POST", "/api/v1/namespaces/n/configmaps", map("kept")).await;
        let rule =
            json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["DELETE"]});
        good(&mut http, "POST", POLICIES, policy("p", rule)).await;
        good(&mut http, "POST", BINDINGS, binding("p", "Deny")).await;
        good(&mut http, "DELETE", "/api/v1/namespaces/n", Value::Null).await;
        // Namespaces are cleaned up in the order of their names: the server has tried `n` when `z` is gone.
        let later = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "z"}});
        good(&mut http, "POST", "/api/v1/namespaces", later).await;
        good(&mut http, "DELETE", "/api/v1/namespaces/z", Value::Null).await;
        until_gone(&mut http, "/api/v1/namespaces/z").await;
        good(&mut http, "GET", "/api/v1/namespaces/n/configmaps/kept", Value::Null).await;
        good(&mut http, "DELETE", &format!("{BINDINGS}/p"), Value::Null).await;
        until_gone(&mut http, "/api/v1/namespaces/n").await;
    });
}

#[test]
fn bad_policies_are_refused_and_good_ones_patched() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let mut bad = policy("p", everything());
        bad["spec"]["validations"][0]["expression"] = "object.x >".into();
        let answer = http.json("POST", POLICIES, bad).await;
        let message = answer.body["message"].as_str().unwrap_or_default();
        let begin = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: spec.validations[0].expression: \
            Invalid value: \"object.x >\": compilation failed: ERROR: <input>:1:11: Syntax error";
        assert!(answer.code == 422 && message.starts_with(begin), "{message}");
        let made = good(&mut http, "POST", POLICIES, policy("p", everything())).await;
        let constraints = &made["spec"]["matchConstraints"];
        let defaults = (&made["spec"]["failurePolicy"], &constraints["matchPolicy"], &constraints["namespaceSelector"], &constraints["resourceRules"][0]["scope"]);
        assert_eq!(defaults, (&json!("Fail"), &json!("Equivalent"), &json!({}), &json!("*")));
        let mut unseen = made.clone();
        unseen["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        assert_eq!(http.json("PUT", &format!("{POLICIES}/p"), unseen).await.code, 422, "an update without a resourceVersion is refused");

        // The patch that kubectl sends to insert a variable before others, which may then use it.
        let patch = json!({"spec": {"$setElementOrder/variables": [{"name": "zero"}, {"name": "new"}, {"name": "old"}, {"name": "part"}],
            "variables": [{"name": "zero", "expression": "'0'"}, {"name": "new", "expression": "variables.zero"}]}});
        let strategic = "application/strategic-merge-patch+json";
        let patched = http.send("PATCH", &format!("{POLICIES}/p"), strategic, patch.to_string()).await.body;
        let names: Vec<&str> = patched["spec"]["variables"].as_array().expect("variables").iter().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(names, ["zero", "new", "old", "part"]);
        let later = json!({"spec": {"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]}});
        let answer = http.merge(&format!("{POLICIES}/p"), later).await;
        assert!(answer.code == 422 && answer.body["message"].as_str().unwrap_or_default().contains("undefined field 'b'"), "{}", answer.body);
        let answer = http.json("POST", BINDINGS, json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "b"}, "spec": {"validationActions": ["Deny", "Warn"]}})).await;
        assert_eq!(answer.code, 422);
        let causes: Vec<&str> = answer.body["details"]["causes"].as_array().unwrap().iter().filter_map(|cause| cause["field"].as_str()).collect();
        assert_eq!(causes, ["spec.policyName", "spec.validationActions"]);
    });
}
