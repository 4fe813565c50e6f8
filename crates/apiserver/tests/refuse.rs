//! What is no proper request gets the Status that Kubernetes gives, and changes nothing.

mod common;

use common::{World, http::Http};
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
        let path = "/api/v1/configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds=2&resourceVersion=";
        let now =
            http.json("GET", MAPS, Value::Null).await.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let events = http.lines(&format!("{path}{now}")).await;
        assert!(events.len() >= 2, "{events:?}");
        let sound = |event: &Value| {
            event["type"] == "BOOKMARK" && event["object"]["metadata"]["resourceVersion"] == now.as_str()
        };
        assert!(events.iter().all(sound), "{events:?}");
        let silent = http.lines("/api/v1/configmaps?watch=true&timeoutSeconds=1").await;
        assert!(silent.is_empty(), "bookmarks are for those who ask: {silent:?}");
    });
}

#[test]
fn bodies_and_queries() {
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
            ("POST", MAPS, JSON, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":"x"}"#.into(), 422, "Invalid"),
            ("POST", MAPS, JSON, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#.into(), 422, "Invalid"),
            ("POST", MAPS, JSON, large, 413, "RequestEntityTooLarge"),
            ("POST", MAPS, "text/plain", "x".into(), 415, "UnsupportedMediaType"),
            ("POST", MAPS, "application/vnd.kubernetes.protobuf", "k8s\0\u{7f}".into(), 400, "BadRequest"),
            ("POST", "/api/v1/configmaps", JSON, map("a").to_string(), 404, "NotFound"),
            ("POST", "/api/v1/namespaces/none/configmaps", JSON, map("a").to_string(), 404, "NotFound"),
            ("PUT", MAPS, JSON, "{}".into(), 405, "MethodNotAllowed"),
            ("GET", "/apis/no.such/v1/things", JSON, String::new(), 404, "NotFound"),
            ("GET", "/api/v1/configmaps?labelSelector=a+in+(b", JSON, String::new(), 400, "BadRequest"),
            ("GET", "/api/v1/configmaps?fieldSelector=data.a=1", JSON, String::new(), 400, "BadRequest"),
            ("GET", "/api/v1/configmaps?continue=x", JSON, String::new(), 400, "BadRequest"),
            ("GET", "/api/v1/configmaps?limit=x", JSON, String::new(), 400, "BadRequest"),
            ("GET", "/api/v1/configmaps?resourceVersion=999999", JSON, String::new(), 504, "Timeout"),
            ("GET", "/api/v1/configmaps?watch=true&sendInitialEvents=true", JSON, String::new(), 422, "Invalid"),
            ("POST", CRDS, JSON, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b.c"},
                "spec": {"names": 1, "versions": [2], "customFeatureGates": 3}, "status": 4}).to_string(), 422, "Invalid"),
            ("POST", CRDS, JSON, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b.c"},
                "spec": "x"}).to_string(), 422, "Invalid"),
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
fn versions_preconditions_and_patches() {
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
        // The same again is no write.
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
