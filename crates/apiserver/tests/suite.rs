//! What Kubernetes' own integration tests of custom resources found to be different here (`interop/crd-suite`).

mod common;

use base64::{Engine, engine::general_purpose::STANDARD};
use common::{World, http::Http};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(scope: &str, versions: Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": scope, "names": {"plural": "foos", "kind": "Foo"}, "versions": versions}})
}

fn version(name: &str, storage: bool, properties: Value) -> Value {
    json!({"name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}})
}

fn foo(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Foo", "metadata": {"name": "a"}, "spec": spec})
}

/// Kubernetes' typed client of definitions sends them so.
#[test]
fn definitions_come_as_protobuf() {
    let rows: Vec<Value> =
        serde_json::from_str(include_str!("../src/protobuf/testdata/definitions.json")).expect("the rows");
    let bytes = STANDARD.decode(rows[1]["protobuf"].as_str().expect("base64")).expect("bytes");
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let made = http.send("POST", CRDS, "application/vnd.kubernetes.protobuf", bytes).await;
        assert_eq!((made.code, &made.body["spec"]["names"]["listKind"]), (201, &json!("BarList")), "{}", made.body);
    });
}

#[test]
fn a_cluster_scoped_object_may_name_a_namespace_and_lies_in_none() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        assert_eq!(
            http.json("POST", CRDS, definition("Cluster", json!([version("v1", true, json!({}))]))).await.code,
            201
        );
        let mut object = foo("v1", Value::Null);
        object["metadata"]["namespace"] = "somewhere".into();
        let made = http.json("POST", "/apis/example.com/v1/foos", object.clone()).await;
        assert_eq!((made.code, made.body["metadata"].get("namespace")), (201, None), "{}", made.body);
        object["metadata"]["resourceVersion"] = made.body["metadata"]["resourceVersion"].clone();
        let put = http.json("PUT", "/apis/example.com/v1/foos/a", object).await;
        assert_eq!((put.code, put.body["metadata"].get("namespace")), (200, None), "{}", put.body);
    });
}

/// `kubectl patch crd` sends nothing else unless it is told to.
#[test]
fn definitions_take_strategic_patches() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        http.json("POST", CRDS, definition("Cluster", json!([version("v1", true, json!({}))]))).await;
        let path = format!("{CRDS}/foos.example.com");
        let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"names": {"shortNames": ["f"]}}}).to_string();
        let patched = http.send("PATCH", &path, "application/strategic-merge-patch+json", patch.clone()).await;
        assert_eq!(
            (patched.code, &patched.body["spec"]["names"]["shortNames"]),
            (200, &json!(["f"])),
            "{}",
            patched.body
        );
        let patched =
            http.send("PATCH", &format!("{path}/status"), "application/strategic-merge-patch+json", patch).await;
        assert_eq!(patched.code, 200, "{}", patched.body);
    });
}

/// An object gets the defaults of the version that it is written through and of the one that it is stored in, and of no other when it
/// is read.
#[test]
fn defaults_of_a_read_are_those_of_the_stored_version() {
    let own = |name: &str| json!({"type": "boolean", "default": true, "description": name});
    let all = |version: &str| {
        let mut fields = json!({"v1": {"type": "boolean"}, "v2": {"type": "boolean"}, "v3": {"type": "boolean"}});
        fields[version] = own(version);
        json!({"spec": {"type": "object", "properties": fields}})
    };
    let versions = |stored: &str| {
        let of = |name: &str| version(name, name == stored, all(name));
        json!([of("v1"), of("v2"), of("v3")])
    };
    let path = |version: &str| format!("/apis/example.com/{version}/foos");
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        http.json("POST", CRDS, definition("Cluster", versions("v1"))).await;
        for dry in ["?dryRun=All", ""] {
            let made = http.json("POST", &format!("{}{dry}", path("v2")), foo("v2", json!({}))).await;
            assert_eq!((made.code, &made.body["spec"]), (201, &json!({"v1": true, "v2": true})), "{}", made.body);
        }
        for version in ["v1", "v2", "v3"] {
            let read = http.json("GET", &format!("{}/a", path(version)), Value::Null).await;
            assert_eq!(read.body["spec"], json!({"v1": true, "v2": true}), "through {version}");
            let listed = http.json("GET", &path(version), Value::Null).await;
            assert_eq!(listed.body["items"][0]["spec"], read.body["spec"], "through {version}");
        }
        // What is stored keeps the defaults of its version until it is written.
        http.merge(&format!("{CRDS}/foos.example.com"), json!({"spec": {"versions": versions("v3")}})).await;
        let read = http.json("GET", &format!("{}/a", path("v3")), Value::Null).await;
        assert_eq!(read.body["spec"], json!({"v1": true, "v2": true}));
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        let patched = http.merge(&format!("{}/a", path("v2")), label).await;
        assert_eq!(patched.body["spec"], json!({"v1": true, "v2": true, "v3": true}), "{}", patched.body);
    });
}

#[test]
fn answers_come_as_yaml_to_those_who_ask() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let maps = "/api/v1/namespaces/default/configmaps";
        for (path, code, start) in [
            (maps, 200, "apiVersion: v1\nitems: []\nkind: ConfigMapList\n"),
            ("/api/v1/namespaces/default/configmaps/none", 404, "apiVersion: v1\ncode: 404\n"),
            ("/api/v1", 200, "groupVersion: v1\nkind: APIResourceList\n"),
            ("/api/v1/configmaps?watch=true", 406, "apiVersion: v1\ncode: 406\n"),
        ] {
            let (found, media, bytes) = http.get_bytes(path, "application/yaml").await;
            let text = String::from_utf8_lossy(&bytes);
            assert_eq!((found, media.as_str()), (code, "application/yaml"), "{path}");
            assert!(text.starts_with(start), "{path}: {text}");
        }
    });
}

#[test]
fn faults_of_a_status_are_told_from_there() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let number = json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 10}}});
        let mut version = version("v1", true, json!({"spec": number, "status": number}));
        version["subresources"] = json!({"status": {}});
        http.json("POST", CRDS, definition("Cluster", json!([version]))).await;
        http.json("POST", "/apis/example.com/v1/foos", foo("v1", json!({}))).await;
        for (path, part, words) in [
            ("/apis/example.com/v1/foos/a", "spec", "spec.n in body should be less than or equal to 10"),
            ("/apis/example.com/v1/foos/a/status", "status", "n in body should be less than or equal to 10"),
        ] {
            let refused = http.merge(path, json!({part: {"n": 15}})).await;
            let text = format!("Foo.example.com \"a\" is invalid: {part}.n: Invalid value: 15: {words}");
            assert_eq!((refused.code, &refused.body["message"]), (422, &json!(text)));
        }
    });
}
