//! Differences that Kubernetes' end-to-end tests of API machinery found.

use crate::common;

use common::{World, http::Http};
use serde_json::{Value, json};

#[test]
fn rejects_invalid_timeouts_in_the_address() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        for path in ["/version", "/api/v1/namespaces", "/apis"] {
            let refused = http.json("GET", &format!("{path}?timeout=invalid"), Value::Null).await;
            let text = "invalid timeout specified in the request URL - time: invalid duration \"invalid\"";
            assert_eq!((refused.code, &refused.body["message"]), (400, &json!(text)), "{path}");
            for good in ["3m", "0s", "-1s", ""] {
                let answer = http.json("GET", &format!("{path}?timeout={good}"), Value::Null).await;
                assert_eq!(answer.code, 200, "{path} in {good}: {}", answer.body);
            }
        }
    });
}

/// Reviews cannot be printed as a table, but have the other forms.
#[test]
fn reviews_have_no_table() {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let mut ask = async |form: &str| {
            http.send_for("POST", path, [("content-type", "application/json"), ("accept", form)], asked.to_string())
                .await
        };
        let refused = ask("application/json;as=Table;v=v1;g=meta.k8s.io").await;
        assert_eq!((refused.code, &refused.body["reason"]), (406, &json!("NotAcceptable")), "{}", refused.body);
        let metadata = ask("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").await;
        assert_eq!(
            (metadata.code, &metadata.body["kind"]),
            (201, &json!("PartialObjectMetadata")),
            "{}",
            metadata.body
        );
        let other = ask("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").await;
        assert_eq!((other.code, &other.body["status"]["allowed"]), (201, &json!(true)), "{}", other.body);
    });
}

/// A field of a protobuf message: a text, or another message.
fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let length = u8::try_from(bytes.len()).ok().filter(|length| *length < 128).expect("a short field");
    [&[(number << 3) | 2, length], bytes].concat()
}

fn protobuf(api_version: &str, kind: &str, (name, version): (&str, &str), status: &[u8]) -> Vec<u8> {
    let about = [field(1, api_version), field(2, kind)].concat();
    let object = [field(1, [field(1, name), field(6, version)].concat()), field(3, status)].concat();
    [b"k8s\0".to_vec(), field(1, about), field(2, object)].concat()
}

/// Typed clients send protobuf, and a kube-apiserver stores it: conditions were lost.
#[test]
fn conditions_come_as_protobuf() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        http.json("POST", "/api/v1/namespaces", namespace).await;
        let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]});
        let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "n"},
            "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}});
        let made = http.json("POST", policies, policy).await;
        assert_eq!(made.code, 201, "{}", made.body);
        let condition = [field(1, "T"), field(2, "True"), field(5, "R"), field(6, "m")].concat();
        for (path, version, kind, number) in [
            ("/api/v1/namespaces/n/status", "v1", "Namespace", 2),
            (&*format!("{policies}/n/status"), "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", 3),
        ] {
            let now = http.json("GET", path, Value::Null).await.body;
            let now = now["metadata"]["resourceVersion"].as_str().expect("a version");
            let body = protobuf(version, kind, ("n", now), &field(number, &condition));
            let put = http.send("PUT", path, "application/vnd.kubernetes.protobuf", body).await;
            let kept = &put.body["status"]["conditions"][0];
            assert_eq!((put.code, &kept["type"], &kept["message"]), (200, &json!("T"), &json!("m")), "{}", put.body);
        }
    });
}

/// Merging precedes the validation of unknown fields, also for a new object.
#[test]
fn a_new_applied_object_is_merged_before_unknown_fields_are_counted() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
                "names": {"plural": "foos", "kind": "Foo"}, "versions": [version]}});
        http.json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
        let object = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "zzz": 1}).to_string();
        for mode in ["Strict", "Warn", "Ignore"] {
            let path = format!("/apis/example.com/v1/foos/a?fieldManager=m&fieldValidation={mode}");
            let refused = http.send("PATCH", &path, "application/apply-patch+yaml", object.clone()).await;
            let text = "failed to create typed patch object (/a; example.com/v1, Kind=Foo): .zzz: field not declared in schema";
            assert_eq!((refused.code, &refused.body["message"]), (400, &json!(text)), "{mode}");
        }
    });
}

/// One of Kubernetes' conformance tests looks for these words in `kubectl explain` of metadata.
#[test]
fn times_are_explained_as_timestamps() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let document = http.json("GET", "/openapi/v3/api/v1", Value::Null).await.body;
        let schemas = &document["components"]["schemas"];
        let time = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]["creationTimestamp"];
        assert!(
            time["description"].as_str().is_some_and(|text| text.starts_with("CreationTimestamp is a timestamp")),
            "{time}"
        );
    });
}
