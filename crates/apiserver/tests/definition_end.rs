//! The objects of a definition are deleted with it, regardless of who wrote it last.

use crate::common;

use common::{World, http::Http};
use harness::asynchronous::until;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOLTS: &str = "/apis/ex.io/v1/namespaces/default/bolts";
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "bolts.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": {"plural": "bolts", "kind": "Bolt"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

async fn define(http: &mut Http, definition: Value) {
    let made = http.json("POST", DEFINITIONS, definition).await;
    assert_eq!(made.code, 201, "{}", made.body);
}

async fn bolt(http: &mut Http, metadata: Value) {
    let bolt = json!({"apiVersion": "ex.io/v1", "kind": "Bolt", "metadata": metadata});
    let made = http.json("POST", BOLTS, bolt).await;
    assert_eq!(made.code, 201, "{}", made.body);
}

async fn serve(http: &mut Http, path: &str, served: bool) {
    let mut changed = http.json("GET", path, Value::Null).await.body;
    changed["spec"]["versions"][0]["served"] = served.into();
    let done = http.json("PUT", path, changed).await;
    assert_eq!(done.code, 200, "{}", done.body);
}

async fn until_gone(http: &mut Http, path: &str) {
    let what = format!("{path} is gone");
    until(&what, async || http.json("GET", path, Value::Null).await.code == 404).await;
}

/// `kubectl replace -f` and GitOps tools write definitions without the finalizers that are in them.
#[test]
fn objects_are_deleted_with_a_replaced_definition() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let path = format!("{DEFINITIONS}/bolts.ex.io");
        define(&mut http, definition()).await;
        bolt(&mut http, json!({"name": "a"})).await;
        let mut again = definition();
        again["metadata"]["resourceVersion"] =
            http.json("GET", &path, Value::Null).await.body["metadata"]["resourceVersion"].clone();
        assert_eq!(http.json("PUT", &path, again).await.code, 200);
        assert_eq!(http.json("DELETE", &path, Value::Null).await.code, 200);
        until_gone(&mut http, &path).await;
        define(&mut http, definition()).await;
        assert_eq!(http.json("GET", BOLTS, Value::Null).await.body["items"], json!([]));
    });
}

/// Objects whose definition serves no version remain in the store, and would reappear with the next definition.
#[test]
fn objects_that_are_not_served_are_deleted_with_their_definition() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let path = format!("{DEFINITIONS}/bolts.ex.io");
        define(&mut http, definition()).await;
        bolt(&mut http, json!({"name": "a"})).await;
        serve(&mut http, &path, false).await;
        assert_eq!(http.json("GET", BOLTS, Value::Null).await.code, 404);
        assert_eq!(http.json("DELETE", &path, Value::Null).await.code, 200);
        until_gone(&mut http, &path).await;
        define(&mut http, definition()).await;
        assert_eq!(http.json("GET", BOLTS, Value::Null).await.body["items"], json!([]));
    });
}

#[test]
fn objects_that_are_not_served_are_deleted_with_their_namespace() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let path = format!("{DEFINITIONS}/bolts.ex.io");
        define(&mut http, definition()).await;
        assert_eq!(http.json("POST", "/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await.code, 201);
        let bolts = "/apis/ex.io/v1/namespaces/n/bolts";
        let bolt = json!({"apiVersion": "ex.io/v1", "kind": "Bolt", "metadata": {"name": "a"}});
        assert_eq!(http.json("POST", bolts, bolt).await.code, 201);
        serve(&mut http, &path, false).await;
        assert_eq!(http.json("DELETE", "/api/v1/namespaces/n", Value::Null).await.code, 200);
        until_gone(&mut http, "/api/v1/namespaces/n").await;
        serve(&mut http, &path, true).await;
        assert_eq!(http.json("GET", "/apis/ex.io/v1/bolts", Value::Null).await.body["items"], json!([]));
    });
}

/// As in Kubernetes, the deletion adds the finalizer to those of others, which are respected.
#[test]
fn the_deletion_adds_the_finalizer() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let path = format!("{DEFINITIONS}/bolts.ex.io");
        let mut held = definition();
        held["metadata"]["finalizers"] = json!(["ex.io/mine"]);
        define(&mut http, held).await;
        let made = http.json("GET", &path, Value::Null).await.body;
        assert_eq!(made["metadata"]["finalizers"], json!(["ex.io/mine"]));
        bolt(&mut http, json!({"name": "a", "finalizers": ["ex.io/hold"]})).await;
        let marked = http.json("DELETE", &path, Value::Null).await.body;
        assert_eq!(marked["metadata"]["finalizers"], json!(["ex.io/mine", CLEANUP]));
        let again = http.json("DELETE", &path, Value::Null).await;
        assert_eq!((again.code, &again.body["metadata"]["finalizers"]), (200, &json!(["ex.io/mine", CLEANUP])));
        http.merge(&path, json!({"metadata": {"finalizers": [CLEANUP]}})).await;
        http.merge(&format!("{BOLTS}/a"), json!({"metadata": {"finalizers": null}})).await;
        until_gone(&mut http, &path).await;
    });
}
