//! Differences that Kubernetes' own integration tests of custom resources found (`interop/crd-suite`).

use crate::common;

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

/// Kubernetes' typed client sends definitions as protobuf.
#[test]
fn definitions_are_accepted_as_protobuf() {
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
fn the_namespace_of_a_cluster_scoped_object_is_ignored() {
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

/// `kubectl patch crd` sends strategic patches by default.
#[test]
fn definitions_accept_strategic_patches() {
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

/// An object gets the defaults of the version of the write and of the stored version, and no others when it is read.
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
        // A stored object keeps the defaults of its version until it is written.
        http.merge(&format!("{CRDS}/foos.example.com"), json!({"spec": {"versions": versions("v3")}})).await;
        let read = http.json("GET", &format!("{}/a", path("v3")), Value::Null).await;
        assert_eq!(read.body["spec"], json!({"v1": true, "v2": true}));
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        let patched = http.merge(&format!("{}/a", path("v2")), label).await;
        assert_eq!(patched.body["spec"], json!({"v1": true, "v2": true, "v3": true}), "{}", patched.body);
    });
}

#[test]
fn answers_are_yaml_on_request() {
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
fn errors_in_a_status_have_paths_from_there() {
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

/// A definition with defaults for unknown fields of metadata is accepted.
#[test]
fn defaults_add_no_unknown_metadata() {
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "o", "uid": "u"});
    let mut odd = owner.clone();
    odd["unknown"] = "x".into();
    let metadata = json!({"name": "Bar", "unknown": "x", "ownerReferences": [odd]});
    let object = json!({"apiVersion": "foos/v1", "kind": "Foo", "metadata": metadata});
    let embedded = |mut schema: Value| {
        for (key, value) in [("type", json!("object")), ("x-kubernetes-embedded-resource", true.into())] {
            schema[key] = value;
        }
        schema
    };
    let text = |default: &str| json!({"type": "string", "default": default});
    let owners = json!({"type": "array", "default": [odd], "items": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}});
    let by_field = json!({"type": "object", "default": {}, "properties": {
        "name": text("Bar"), "unknown": text("x"), "ownerReferences": owners}});
    let by_metadata = json!({"type": "object", "default": metadata});
    let header = |metadata: Value| json!({"apiVersion": text("foos/v1"), "kind": text("Foo"), "metadata": metadata});
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let properties = json!({
            "fields": embedded(json!({"default": {"apiVersion": "foos/v1", "kind": "Foo"}, "properties": header(by_field)})),
            "metadata-of": embedded(json!({"default": {"apiVersion": "foos/v1", "kind": "Foo"}, "properties": header(by_metadata)})),
            "object": embedded(json!({"default": object, "x-kubernetes-preserve-unknown-fields": true})),
            "around": {"type": "object", "default": {"in": object}, "properties": {"in": embedded(json!({"properties": {"spec": {"type": "object"}}}))}},
        });
        let definition = definition("Cluster", json!([version("v1", true, properties)]));
        let made = http.json("POST", CRDS, definition).await;
        assert_eq!(made.code, 201, "{}", made.body);
        let made = http.json("POST", "/apis/example.com/v1/foos", foo("v1", Value::Null)).await;
        let known = json!({"apiVersion": "foos/v1", "kind": "Foo", "metadata": {"name": "Bar", "ownerReferences": [owner]}});
        for place in ["/fields", "/metadata-of", "/object", "/around/in"] {
            assert_eq!(made.body.pointer(place), Some(&known), "{place} of {}", made.body);
        }
        let read = http.json("GET", "/apis/example.com/v1/foos/a", Value::Null).await;
        assert_eq!(read.body, made.body);
    });
}

/// Invalid metadata that another program stored is omitted, also in embedded objects.
#[test]
fn invalid_metadata_in_the_store_is_not_shown() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
        http.json("POST", CRDS, definition("Cluster", json!([version("v1", true, json!({"in": embedded}))]))).await;
        let metadata = json!({"name": "a", "unknown": 1, "generation": null, "labels": {"bad": "x y"}, "annotations": {"a": 1, "b": "c"},
            "finalizers": [], "uid": 7, "deletionTimestamp": "never"});
        let stored = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": metadata,
            "in": {"apiVersion": "v1", "kind": "Any", "metadata": metadata}});
        let put = async || {
            let client = client::Client::connect(vec![world.endpoint().to_owned()], client::ConnectOptions::new()).await;
            let client = client.expect("a client");
            client.put(client::Put::new("/registry/example.com/foos/a", stored.to_string())).await.expect("stored");
        };
        let path = "/apis/example.com/v1/foos/a";
        put().await;
        assert_eq!(http.json("DELETE", path, Value::Null).await.code, 200);
        put().await;
        let read = http.json("GET", path, Value::Null).await.body;
        let mut own = read["metadata"].clone();
        own.as_object_mut().expect("metadata").remove("resourceVersion");
        assert_eq!(own, json!({"name": "a", "generation": 1, "labels": {"bad": "x y"}}));
        assert_eq!(read["in"]["metadata"], json!({"name": "a", "labels": {"bad": "x y"}}));
        let listed = http.json("GET", "/apis/example.com/v1/foos", Value::Null).await;
        assert_eq!(listed.body["items"][0], read);
        // Invalid labels are still reported in a write, and can be corrected.
        let mut mended = read.clone();
        for (place, fault) in [("/metadata", "metadata.labels"), ("/in/metadata", "in.metadata.labels")] {
            let refused = http.json("PUT", path, mended.clone()).await;
            let text = refused.body["message"].as_str().unwrap_or_default().to_owned();
            assert!(refused.code == 422 && text.contains(&format!("{fault}: Invalid value: \"x y\"")), "{}", refused.body);
            mended.pointer_mut(place).expect("metadata")["labels"]["bad"] = "good".into();
        }
        let put = http.json("PUT", path, mended).await;
        assert_eq!((put.code, &put.body["metadata"]["generation"]), (200, &json!(2)), "{}", put.body);
        let refused = http.merge(path, json!({"in": {"metadata": {"labels": {"bad": 1}}}})).await;
        assert!(refused.body["message"].as_str().is_some_and(|text| text.contains("in.metadata: Invalid value")), "{}", refused.body);
    });
}
