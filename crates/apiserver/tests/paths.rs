//! Paths and methods that are not served get the answers of kube-apiserver: code, content type and text.

use crate::common;

use common::{
    World,
    http::{Events, Http},
};
use serde_json::{Value, json};

const PAGE: &str = "404 page not found";
const RESOURCE: &str = "the server could not find the requested resource";
const METHOD: &str = "the server does not allow this method on the requested resource";
const FOOS: &str = "/apis/ex.io/v1/namespaces/default/foos";

fn definition(plural: &str, kind: &str, scope: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.ex.io")},
        "spec": {"group": "ex.io", "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": [version]}})
}

async fn define(http: &mut Http) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (plural, kind, scope) in [("foos", "Foo", "Namespaced"), ("bars", "Bar", "Cluster")] {
        assert_eq!(http.json("POST", path, definition(plural, kind, scope)).await.code, 201);
    }
    assert_eq!(http.json("POST", FOOS, foo("a")).await.code, 201);
}

fn foo(name: &str) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": name}})
}

#[test]
fn rejects_unknown_paths_and_methods() {
    let cases: &[(&str, &str, u16, &str)] = &[
        ("GET", "/x", 404, PAGE),
        ("POST", "/x", 404, PAGE),
        ("GET", "/apis/none.io", 404, PAGE),
        ("GET", "/apis/none.io/v1", 404, PAGE),
        ("GET", "/apis/ex.io/v9/foos", 404, PAGE),
        ("GET", "/apis/ex.io/v1/nones/a", 404, PAGE),
        ("GET", "/apis/ex.io/v1/foos/a", 404, PAGE),
        ("POST", "/apis/ex.io/v1/foos", 404, PAGE),
        ("DELETE", "/apis/ex.io/v1/foos", 404, PAGE),
        ("GET", "/apis/ex.io/v1/namespaces/default/bars", 404, PAGE),
        ("GET", "/healthz/x", 404, PAGE),
        ("GET", "/readyz/", 404, PAGE),
        ("GET", "/openapi", 404, PAGE),
        ("GET", "/api/v2", 404, RESOURCE),
        ("PUT", "/apis/apiextensions.k8s.io/v2", 404, RESOURCE),
        ("GET", "/api/v1/nones", 404, RESOURCE),
        ("GET", "/api/v1/configmaps/a", 404, RESOURCE),
        ("POST", "/api/v1//configmaps", 404, RESOURCE),
        ("GET", "/apis/apiextensions.k8s.io/v2", 404, RESOURCE),
        ("GET", "/api/v1/namespaces/default/configmaps/a/status", 404, RESOURCE),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/a", 404, RESOURCE),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405, METHOD),
        ("POST", "/version", 405, METHOD),
        ("PUT", "/api/v1", 405, METHOD),
        ("POST", "/api/v1/configmaps", 405, METHOD),
        ("DELETE", "/api/v1/configmaps", 405, METHOD),
        ("DELETE", "/api/v1/namespaces", 405, METHOD),
        ("PUT", "/api/v1/namespaces/default/configmaps", 405, METHOD),
        ("POST", "/api/v1/namespaces/default/configmaps/a", 405, METHOD),
        ("TRACE", "/api/v1/namespaces/default/configmaps/a", 405, METHOD),
        ("DELETE", "/api/v1/namespaces/default/status", 405, METHOD),
        ("GET", "/apis/ex.io/v1/namespaces/default/foos/a/none", 404, r#"foos.ex.io "a" not found"#),
        ("PUT", "/apis/ex.io/v1/namespaces/default/foos/a/scale", 404, r#"foos.ex.io "a" not found"#),
        ("DELETE", "/apis/ex.io/v1/bars/a/status", 405, r#"delete is not supported on resources of kind "bars.ex.io""#),
        ("POST", "/apis/ex.io/v1/bars/a/status", 405, r#"create is not supported on resources of kind "bars.ex.io""#),
        ("TRACE", FOOS, 405, r#" is not supported on resources of kind "foos.ex.io""#),
        ("PUT", FOOS, 400, "name must be provided"),
        ("PATCH", FOOS, 400, "name must be provided"),
    ];
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http).await;
        for (method, path, code, text) in cases {
            let (found, kind, bytes) = http.raw(method, path).await;
            let said = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(found, *code, "{method} {path}: {said}");
            match *text {
                PAGE => assert_eq!((&*kind, &*said), ("text/plain; charset=utf-8", "404 page not found\n"), "{path}"),
                _ => {
                    let status: Value = serde_json::from_str(&said).expect("a Status");
                    assert_eq!((&*kind, &status["message"]), ("application/json", &json!(text)), "{method} {path}");
                }
            }
        }
        assert_eq!(http.json("GET", &format!("{FOOS}/a"), Value::Null).await.code, 200, "nothing was deleted");
    });
}

/// The names of objects that were added.
fn added(events: &[Value]) -> Vec<&str> {
    assert!(events.iter().all(|event| event["type"] == "ADDED"), "{events:?}");
    events.iter().filter_map(|event| event["object"]["metadata"]["name"].as_str()).collect()
}

#[test]
fn methods_with_the_meaning_of_another() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http).await;
        // A name in the path of a create is ignored.
        assert_eq!(http.json("POST", &format!("{FOOS}/other"), foo("b")).await.body["metadata"]["name"], "b");
        // One object is read, not watched.
        assert_eq!(http.json("GET", &format!("{FOOS}/a?watch=true"), Value::Null).await.body["kind"], "Foo");
        let mut watches = Vec::new();
        for watch in ["watch=x", "watch=", "watch"] {
            let mut events = Events::open(world.api(), &format!("{FOOS}?{watch}&timeoutSeconds=3600")).await;
            assert_eq!(added(&events.take(2).await), ["a", "b"], "{watch}");
            watches.push(events);
        }
        http.json("POST", FOOS, foo("c")).await;
        for events in &mut watches {
            assert_eq!(added(&events.take(1).await), ["c"]);
        }
        for list in ["watch=False", "watch=0"] {
            assert_eq!(http.json("GET", &format!("{FOOS}?{list}"), Value::Null).await.body["kind"], "FooList");
        }
        for method in ["POST", "DELETE"] {
            assert_eq!(http.raw(method, "/apis/ex.io").await.0, 200);
            assert_eq!(http.raw(method, "/healthz/etcd").await.0, 200);
        }
    });
}

#[test]
fn invalid_names_of_namespaces_are_not_found() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http).await;
        for namespace in [&*"a".repeat(64), "A_B", "a.b", "-a"] {
            let all = format!("/apis/ex.io/v1/namespaces/{namespace}/foos");
            let made = http.json("POST", &all, foo("x")).await;
            assert_eq!(made.body["message"], format!("namespaces {namespace:?} not found"));
            let read = http.json("GET", &format!("{all}/x"), Value::Null).await;
            assert_eq!(read.body["message"], r#"foos.ex.io "x" not found"#);
            assert_eq!(http.json("GET", &all, Value::Null).await.body["items"], json!([]));
        }
    });
}
