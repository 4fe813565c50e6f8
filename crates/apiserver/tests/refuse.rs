//! Invalid requests get the Status that Kubernetes gives, and change nothing.

use crate::common;

use common::{
    World,
    http::{Events, Http},
};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

#[test]
fn a_watch_of_a_silent_store_gets_bookmarks() {
    let world = World::start_with(|options| options.bookmark_every = std::time::Duration::from_millis(300));
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let path = "/api/v1/configmaps?watch=true&timeoutSeconds=3600";
        let now =
            http.json("GET", MAPS, Value::Null).await.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let mut silent = Events::open(world.api(), path).await;
        let asking = format!("{path}&allowWatchBookmarks=true&resourceVersion={now}");
        let events = Events::open(world.api(), &asking).await.take(3).await;
        let sound = |event: &Value| {
            event["type"] == "BOOKMARK" && event["object"]["metadata"]["resourceVersion"] == now.as_str()
        };
        assert!(events.iter().all(sound), "{events:?}");
        assert!(silent.is_silent(), "a watch gets bookmarks only if it asks for them");
        assert_eq!(http.json("POST", MAPS, map("first")).await.code, 201);
        assert_eq!(silent.take(1).await[0]["type"], "ADDED");
    });
}

#[test]
fn rejects_invalid_bodies_and_queries() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let large = format!("\"{}\"", "x".repeat(4 << 20));
        let deep = "[".repeat(5000);
        let cases: Vec<(&str, &str, &str, String, u16, &str)> = vec![
            ("POST", MAPS, JSON, String::new(), 400, "BadRequest"),
            ("POST", MAPS, JSON, "{".into(), 400, "BadRequest"),
            ("POST", MAPS, JSON, deep, 400, "BadRequest"),
            ("POST", MAPS, JSON, "[]".into(), 400, "BadRequest"),
            ("POST", MAPS, JSON, r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}"#.into(), 400, "BadRequest"),
            ("POST", MAPS, JSON, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"a":1}}}"#.into(), 400, "BadRequest"),
            ("POST", MAPS, JSON, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":"x"}"#.into(), 400, "BadRequest"),
            ("POST", MAPS, JSON, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#.into(), 422, "Invalid"),
            ("POST", MAPS, JSON, large, 413, "RequestEntityTooLarge"),
            ("POST", MAPS, "text/plain", "x".into(), 415, "UnsupportedMediaType"),
            ("POST", MAPS, "application/vnd.kubernetes.protobuf", "k8s\0\u{7f}".into(), 400, "BadRequest"),
            ("POST", "/api/v1/configmaps", JSON, map("a").to_string(), 405, "MethodNotAllowed"),
            ("POST", "/api/v1/namespaces/none/configmaps", JSON, map("a").to_string(), 404, "NotFound"),
            ("PUT", MAPS, JSON, "{}".into(), 405, "MethodNotAllowed"),
            ("GET", "/api/v1/configmaps?labelSelector=a+in+(b", JSON, String::new(), 400, "BadRequest"),
            ("GET", "/api/v1/configmaps?fieldSelector=data.a=1", JSON, String::new(), 400, "BadRequest"),
            ("GET", "/api/v1/configmaps?continue=x", JSON, String::new(), 400, "BadRequest"),
            ("GET", "/api/v1/configmaps?limit=x", JSON, String::new(), 400, "BadRequest"),
            ("GET", "/api/v1/configmaps?resourceVersion=999999", JSON, String::new(), 504, "Timeout"),
            ("GET", "/api/v1/configmaps?watch=true&sendInitialEvents=true", JSON, String::new(), 422, "Invalid"),
            ("POST", CRDS, JSON, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b.c"},
                "spec": {"names": 1, "versions": [2], "customFeatureGates": 3}, "status": 4}).to_string(), 400, "BadRequest"),
            ("POST", CRDS, JSON, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b.c"},
                "spec": "x"}).to_string(), 400, "BadRequest"),
        ];
        for (method, path, media, body, code, reason) in cases {
            let shown = format!("{method} {path} {media} {body:.60}");
            let answer = http.send(method, path, media, body).await;
            assert_eq!((answer.code, answer.body["reason"].as_str()), (code, Some(reason)), "{shown}: {}", answer.body);
            assert_eq!(answer.body["kind"], "Status");
        }
        let left = http.json("GET", MAPS, Value::Null).await;
        assert_eq!(left.body["items"], json!([]), "nothing was written");
    });
}

#[test]
fn rejects_stale_versions_failed_preconditions_and_bad_patches() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let made = http.json("POST", MAPS, map("a")).await;
        assert_eq!(made.code, 201);
        let one = format!("{MAPS}/a");
        let mut stale = made.body.clone();
        stale["metadata"]["resourceVersion"] = "1".into();
        let answer = http.json("PUT", &one, stale).await;
        assert_eq!((answer.code, answer.body["reason"].as_str()), (409, Some("Conflict")));
        let mut strange = made.body.clone();
        strange["metadata"]["uid"] = "other".into();
        assert_eq!(http.json("PUT", &one, strange).await.code, 409);
        let mut renamed = made.body.clone();
        renamed["metadata"]["name"] = "b".into();
        assert_eq!(http.json("PUT", &one, renamed).await.code, 400);
        assert_eq!(http.json("DELETE", &one, json!({"preconditions": {"uid": "other"}})).await.code, 409);
        let patch = |body: &str| body.to_owned();
        let media = "application/json-patch+json";
        assert_eq!(http.send("PATCH", &one, media, patch(r#"[{"op":"remove","path":"/data/none"}]"#)).await.code, 422);
        assert_eq!(
            http.send("PATCH", &one, media, patch(r#"[{"op":"test","path":"/data/a","value":"2"}]"#)).await.code,
            422
        );
        assert_eq!(http.send("PATCH", &one, media, patch("{}")).await.code, 400);
        assert_eq!(http.send("PATCH", &one, "application/apply-patch+cbor", patch("{}")).await.code, 415);
        // An update without a change is not written.
        let same = http.json("PUT", &one, made.body.clone()).await;
        assert_eq!(
            (same.code, &same.body["metadata"]["resourceVersion"]),
            (200, &made.body["metadata"]["resourceVersion"])
        );
        let dry = http.json("DELETE", &format!("{one}?dryRun=All"), Value::Null).await;
        assert_eq!(dry.code, 200);
        assert_eq!(http.json("GET", &one, Value::Null).await.code, 200, "a dry run deletes nothing");
        assert_eq!(http.json("POST", MAPS, map("a")).await.body["reason"], "AlreadyExists");
        let gone = http.json("DELETE", &format!("{MAPS}?fieldSelector=metadata.name%3Da"), Value::Null).await;
        assert_eq!((gone.code, gone.body["items"].as_array().map(Vec::len)), (200, Some(1)));
        assert_eq!(http.json("GET", &one, Value::Null).await.code, 404);
    });
}

/// The code, reason, text and details of each answer are those of kube-apiserver 1.37.
#[test]
fn rejects_patches_that_do_not_fit() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let made = http.json("POST", MAPS, map("a")).await;
        let one = format!("{MAPS}/a");
        let media = "application/json-patch+json";
        let misfits = [
            json!([{"op": "test", "path": "/data/a", "value": "2"}]),
            json!([{"op": "replace", "path": "/data/a", "value": "2"}, {"op": "test", "path": "/data/a", "value": "1"}]),
            json!([{"op": "remove", "path": "/data/none"}]),
            json!([{"op": "add", "path": "/none/a", "value": "1"}]),
            json!([{"op": "add", "path": "data", "value": {}}]),
            json!([{"op": "move", "from": "/none", "path": "/data/b"}]),
            json!([{"op": "copy", "from": "/none/a", "path": "/data/b"}]),
            json!([{"op": "add", "path": "/metadata/managedFields/9", "value": {}}]),
            json!([{"op": "add", "path": "/data/a/b", "value": 1}]),
            json!([{"op": "bend", "path": "/data/a"}]),
        ];
        for patch in misfits {
            let answer = http.send("PATCH", &one, media, patch.to_string()).await;
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid", "code": 422,
                "message": "the server rejected our request due to an error in our request", "details": {}});
            assert_eq!((answer.code, answer.body), (422, status), "{patch}");
        }
        let gone = http.send("PATCH", &format!("{MAPS}/none"), media, "{}").await;
        assert_eq!(gone.code, 404, "an invalid patch is reported only for an existing object");
        let broken = http.send("PATCH", &format!("{MAPS}/none"), media, "{").await;
        assert_eq!((broken.code, broken.body["message"].as_str()), (400, Some("invalid JSON patch")));
        let lenient = http.send("PATCH", &one, media, json!([{"op": "replace", "path": "/data/b", "value": "2"}]).to_string()).await;
        assert_eq!((lenient.code, &lenient.body["data"]), (200, &json!({"a": "1", "b": "2"})), "Kubernetes replaces a missing field");
        let version = |body: &Value| body["metadata"]["resourceVersion"].as_str().unwrap().parse::<i64>().unwrap();
        assert_eq!(version(&lenient.body), version(&made.body) + 1, "nothing was written before");
    });
}

/// Found by attack: a delete with an unreadable body deleted, and a request with an invalid `dryRun` wrote.
#[test]
fn requests_with_unreadable_options_change_nothing() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let made = http.json("POST", MAPS, map("a")).await.body;
        let one = format!("{MAPS}/a");
        for body in [
            "[]",
            "7",
            "{",
            r#"{"preconditions":7}"#,
            r#"{"preconditions":{"uid":7}}"#,
            r#"{"dryRun":7}"#,
            r#"{"kind":"Other"}"#,
        ] {
            assert_eq!(http.send("DELETE", &one, JSON, body).await.code, 400, "{body}");
            assert_eq!(http.send("DELETE", MAPS, JSON, body).await.code, 400, "{body}");
        }
        for body in [r#"{"dryRun":["x"]}"#, r#"{"propagationPolicy":"x"}"#] {
            assert_eq!(http.send("DELETE", &one, JSON, body).await.code, 422, "{body}");
        }
        for query in ["dryRun=", "dryRun", "dryRun=All&dryRun=x"] {
            assert_eq!(http.json("POST", &format!("{MAPS}?{query}"), map("b")).await.code, 422, "{query}");
            assert_eq!(http.json("DELETE", &format!("{one}?{query}"), Value::Null).await.code, 422, "{query}");
        }
        assert_eq!(http.send("DELETE", &format!("{one}?propagationPolicy=x"), JSON, "").await.code, 422);
        let left = http.json("GET", MAPS, Value::Null).await.body;
        assert_eq!(left["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(left["items"][0]["metadata"], made["metadata"]);
    });
}

/// The answers are those of kube-apiserver 1.37.
#[test]
fn rejects_invalid_objects() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let made = http.json("POST", MAPS, map("a")).await.body;
        let one = format!("{MAPS}/a");
        let changed = |pointer: &str, value: Value| {
            let mut object = made.clone();
            object["metadata"][pointer] = value;
            object
        };
        let nameless = |mut object: Value| {
            object["metadata"].as_object_mut().unwrap().remove("name");
            object
        };
        let uid = made["metadata"]["uid"].as_str().unwrap();
        let moved = format!("Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4, Key: \
            /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object \
            meta: {uid}");
        let cases = [
            (one.as_str(), nameless(made.clone()), 400, "the name of the object (a based on URL) was undeterminable: name must be provided"),
            ("/api/v1/namespaces/default/configmaps/b", made.clone(), 400, "the name of the object (a) does not match the name on the URL (b)"),
            (&one, changed("uid", "x".into()), 409, &moved),
            (&one, changed("deletionTimestamp", "2001-01-01T00:00:00Z".into()), 422,
                "ConfigMap \"a\" is invalid: metadata.deletionTimestamp: Invalid value: \"2001-01-01T00:00:00Z\": field is immutable"),
            (&one, changed("labels", json!({"a": 1})), 400,
                "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field \
                 ObjectMeta.metadata.labels of type string"),
            (&one, changed("finalizers", json!(["orphan", "foregroundDeletion"])), 422,
                "ConfigMap \"a\" is invalid: metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
                 foregroundDeletion cannot be both set"),
        ];
        for (path, object, code, text) in cases {
            let answer = http.json("PUT", path, object).await;
            assert_eq!((answer.code, answer.body["message"].as_str()), (code, Some(text)));
        }
        for (query, text) in [
            ("dryRun=x", "UpdateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\"]: supported values: \"All\""),
            ("fieldValidation=x", "UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"x\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""),
        ] {
            let answer = http.json("PUT", &format!("{one}?{query}"), made.clone()).await;
            assert_eq!((answer.code, answer.body["message"].as_str()), (422, Some(text)));
        }
        let empty = changed("labels", json!({}));
        let same = http.json("PUT", &one, empty).await;
        assert_eq!((same.code, same.body), (200, made), "an empty field is no change");
    });
}

/// Found by attack: an object too large for the store was answered with "try again", and clients retried endlessly.
#[test]
fn rejects_objects_too_large_for_the_store() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boxes.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster",
                     "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
                     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
        });
        assert_eq!(http.json("POST", CRDS, definition).await.code, 201);
        for kib in [1700, 2500, 3000] {
            let object = json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}, "a": "x".repeat(kib << 10)});
            let answer = http.json("POST", "/apis/example.com/v1/boxes", object).await;
            assert_eq!((answer.code, &answer.body["reason"]), (413, &json!("RequestEntityTooLarge")), "{kib} KiB");
        }
    });
}
