//! The protocol over HTTP without a network: statuses, fields, tags and events of OpenFeature's OpenAPI 0.3.0.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{Request, Response},
};
use featureset::{GatesFile, Registry, Row, object::FeatureGate};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use ofrep::{EVENTS, Sets, Source, Store, StoreFeature, Tokens, View, router};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt;

fn sets() -> Sets {
    let toml = "schema = 1\nversion = \"1.5.0\"\n[gate.A]\ndescription = \"d\"\nowner = \"net\"\ncontact = \"c\"\n\
                enhancement = \"https://e\"\nsince = \"1.4\"\nsets = [\"DevPreviewNoUpgrade\"]\n";
    let registry = Registry::of_file(&GatesFile::parse(toml).unwrap(), "1.5.0").unwrap();
    let row = |version: &str, on: &[&str], off: &[&str]| Row {
        version: version.to_owned(),
        enabled: on.iter().map(|name| name.to_string()).collect(),
        disabled: off.iter().map(|name| name.to_string()).collect(),
    };
    Sets {
        rows: vec![row("1.5.0", &["A"], &["B"]), row("1.4.0", &[], &["A"])],
        feature_sets: ["1.5.0", "1.4.0"].map(|version| (version.to_owned(), "DevPreviewNoUpgrade".to_owned())).into(),
        desired: Some("1.5.0".to_owned()),
        registries: BTreeMap::from([("1.5.0".to_owned(), registry)]),
    }
}

fn store() -> Store {
    let feature = |enabled: bool, why: &str| StoreFeature {
        enabled,
        stage: "ALPHA".to_owned(),
        held_off_by: (!enabled).then(|| why.to_owned()).into_iter().collect(),
        ..StoreFeature::default()
    };
    let off = feature(false, "member c: flag says off");
    Store {
        cluster_version: "3.8.0".to_owned(),
        features: BTreeMap::from([("Off".to_owned(), off), ("On".to_owned(), feature(true, ""))]),
    }
}

/// Feature sets alone.
fn view() -> View {
    View { sets: Source::known(sets()), store: Source::NotFollowed }
}

fn both() -> View {
    View { store: Source::known(store()), ..view() }
}

fn routed(view: View) -> Router {
    let (_, views) = watch::channel(Arc::new(view));
    router(views, None)
}

async fn call(router: &Router, path: &str, body: &str, tag: Option<&str>) -> Response<Body> {
    let mut request = Request::post(path).header("content-type", "application/json");
    if let Some(tag) = tag {
        request = request.header("if-none-match", tag);
    }
    router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap()
}

async fn json_of(response: Response<Body>) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

const ONE: &str = "/ofrep/v1/evaluate/flags/";
const ALL: &str = "/ofrep/v1/evaluate/flags";

#[tokio::test]
async fn one_gate() {
    let router = routed(view());
    let context = r#"{"context":{"targetingKey":"me"}}"#;
    let (status, body) = json_of(call(&router, &format!("{ONE}A"), context, None).await).await;
    let digest = sets().rows[0].digest();
    let metadata = json!({"version": "1.5.0", "featureSet": "DevPreviewNoUpgrade", "digest": digest, "stage": "DevPreview", "owner": "net"});
    let want = json!({"key": "A", "value": true, "reason": "STATIC", "variant": "on", "metadata": metadata});
    assert_eq!((status, body), (200, want));

    // The version of the caller chooses the row; a body is not needed.
    let older = r#"{"context":{"version":"1.4.0"}}"#;
    let (status, body) = json_of(call(&router, &format!("{ONE}A"), older, None).await).await;
    assert_eq!(
        (status, &body["value"], &body["variant"], &body["reason"]),
        (200, &json!(false), &json!("off"), &json!("STATIC"))
    );
    let (status, body) = json_of(call(&router, &format!("{ONE}B"), "", None).await).await;
    assert_eq!((status, &body["value"]), (200, &json!(false)));
}

/// While the rows are still those of a one-way set that was left, that set is reported, and not the one in the spec.
#[tokio::test]
async fn the_set_is_the_one_that_rows_are_made_from() {
    let condition = json!({"type": "FeatureSetInForce", "status": "True", "reason": "TechPreviewNoUpgrade",
        "message": "rows are made from it, but of 1.3.0 (Default)"});
    let row = |version| json!({"version": version, "enabled": [{"name": "A"}], "disabled": []});
    let object = json!({"metadata": {"name": "cluster"}, "spec": {"featureSet": "OKD"},
        "status": {"conditions": [condition], "featureGates": [row("1.4.0"), row("1.3.0")]}});
    let object: FeatureGate = serde_json::from_value(object).unwrap();
    let router = routed(View { sets: Source::known(Sets::new(Some(&object), None, BTreeMap::new())), ..view() });
    for (version, set) in [("1.4.0", "TechPreviewNoUpgrade"), ("1.3.0", "")] {
        let context = json!({"context": {"version": version}}).to_string();
        let (_, one) = json_of(call(&router, &format!("{ONE}A"), &context, None).await).await;
        let (_, all) = json_of(call(&router, ALL, &context, None).await).await;
        assert_eq!([&one["metadata"]["featureSet"], &all["metadata"]["featureSet"]], [set, set], "{version}");
    }
}

#[tokio::test]
async fn refusals() {
    let router = routed(view());
    for (key, body, status, code, part) in [
        ("Z", "{}", 404, "FLAG_NOT_FOUND", "does not know the gate \"Z\""),
        ("a/b", "{}", 404, "FLAG_NOT_FOUND", "a/b"),
        ("A", "{", 400, "PARSE_ERROR", "not JSON"),
        ("A", "[]", 400, "PARSE_ERROR", "not an object"),
        ("A", r#"{"context":3}"#, 400, "INVALID_CONTEXT", "must be an object"),
        ("A", r#"{"context":{"version":3}}"#, 400, "INVALID_CONTEXT", "must be a text"),
        ("A", r#"{"context":{"version":"9.9"}}"#, 400, "INVALID_CONTEXT", "there are rows for [\"1.5.0\", \"1.4.0\"]"),
    ] {
        let (got, said) = json_of(call(&router, &format!("{ONE}{key}"), body, None).await).await;
        assert_eq!((got, &said["errorCode"], &said["key"]), (status, &json!(code), &json!(key)), "{said}");
        assert!(said["errorDetails"].as_str().unwrap().contains(part), "{said}");
    }
    let (status, said) = json_of(call(&router, ALL, r#"{"context":{"version":"9.9"}}"#, None).await).await;
    assert_eq!((status, &said["errorCode"]), (400, &json!("INVALID_CONTEXT")));
}

#[tokio::test]
async fn nothing_is_known_yet() {
    let router = routed(View { sets: Source::known(Sets::default()), ..View::default() });
    let (status, said) = json_of(call(&router, &format!("{ONE}A"), "", None).await).await;
    assert_eq!((status, said), (500, json!({"errorDetails": "the cluster has no row of gates yet"})));
    let away = View { sets: Source::Unknown("connection refused".to_owned()), ..View::default() };
    let (status, said) = json_of(call(&routed(away), &format!("{ONE}A"), "", None).await).await;
    let want = json!({"errorDetails": "gates of feature sets are not known: connection refused"});
    assert_eq!((status, said), (500, want));
}

#[tokio::test]
async fn all_gates_with_a_tag() {
    let (sender, views) = watch::channel(Arc::new(view()));
    let router = router(views, None);
    let first = call(&router, ALL, "{}", None).await;
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let (status, body) = json_of(first).await;
    let keys: Vec<&Value> = body["flags"].as_array().unwrap().iter().map(|flag| &flag["key"]).collect();
    assert_eq!((status, keys), (200, vec![&json!("A"), &json!("B")]));
    assert_eq!(
        body["eventStreams"][0],
        json!({"type": "sse", "endpoint": {"requestUri": EVENTS}, "inactivityDelaySec": 120})
    );

    let again = call(&router, ALL, "{}", Some(&format!("\"x\", W/{tag}"))).await;
    assert_eq!((again.status().as_u16(), again.headers()["etag"].to_str().unwrap()), (304, tag.as_str()));
    assert!(again.into_body().collect().await.unwrap().to_bytes().is_empty());
    let lines = Request::post(ALL).header("if-none-match", "\"x\"").header("if-none-match", &tag);
    let again = router.clone().oneshot(lines.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(again.status(), 304, "tags in several lines");

    // Another version is another answer, and so is a changed row.
    let older = call(&router, ALL, r#"{"context":{"version":"1.4.0"}}"#, Some(&tag)).await;
    assert_eq!(older.status(), 200);
    let mut changed = sets();
    changed.rows[0].enabled.clear();
    sender.send_replace(Arc::new(View { sets: Source::known(changed), ..view() }));
    assert_eq!(call(&router, ALL, "{}", Some(&tag)).await.status(), 200);
}

#[tokio::test]
async fn a_change_is_an_event() {
    let (sender, views) = watch::channel(Arc::new(view()));
    let router = router(views, None);
    // Before the stream begins: no event.
    sender.send_replace(Arc::new(view()));
    let response = router.oneshot(Request::get(EVENTS).body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    // A comment opens the stream, so that clients know at once that it works.
    let opened = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let opened = String::from_utf8(opened.to_vec()).unwrap();
    assert_eq!(opened, format!("id: {}\n: open\n\n", view().id()));
    let early = body.frame().now_or_never();
    assert!(early.is_none(), "{early:?}");
    sender.send_replace(Arc::new(View::default()));
    let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(String::from_utf8(frame.to_vec()).unwrap(), event(&View::default()));
}

fn event(view: &View) -> String {
    format!("event: message\nid: {}\ndata: {{\"type\":\"refetchEvaluation\"}}\n\n", view.id())
}

/// A change while the stream was broken is reported when the client reconnects.
#[tokio::test]
async fn a_reconnecting_client_gets_the_missed_change() {
    let router = routed(view());
    for (seen, missed) in [(View::default().id(), true), (view().id(), false), ("nonsense".to_owned(), true)] {
        let request = Request::get(EVENTS).header("last-event-id", seen).body(Body::empty()).unwrap();
        let mut body = router.clone().oneshot(request).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        let next = body.frame().now_or_never().flatten();
        let next = next.map(|frame| String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap());
        assert_eq!(next, missed.then(|| event(&view())));
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_in_json() {
    let body = format!("{{\"context\":{{\"x\":\"{}\"}}}}", "x".repeat(300_000));
    for path in [&format!("{ONE}A"), ALL] {
        let (status, said) = json_of(call(&routed(view()), path, &body, None).await).await;
        assert!(status == 413 && said["errorDetails"].as_str().unwrap().contains("262144 bytes"), "{status} {said}");
    }
}

#[tokio::test]
async fn features_of_the_store() {
    let router = routed(both());
    let (status, body) = json_of(call(&router, &format!("{ONE}store.On"), "", None).await).await;
    let metadata =
        json!({"level": "cluster", "stage": "ALPHA", "clusterVersion": "3.8.0", "default": false, "locked": false});
    let want = json!({"key": "store.On", "value": true, "reason": "STATIC", "variant": "on", "metadata": metadata});
    assert_eq!((status, body), (200, want));
    // A store has no rows, so any version is valid.
    let any = r#"{"context":{"version":"9.9"}}"#;
    let (status, body) = json_of(call(&router, &format!("{ONE}store.Off"), any, None).await).await;
    let why = json!("member c: flag says off");
    assert_eq!((status, &body["value"], &body["metadata"]["heldOffBy"]), (200, &json!(false), &why));

    for (view, key, part) in [
        (both(), "store.Of", r#"the store has no cluster feature "Of"; it has ["Off", "On"]"#),
        (both(), "On", "does not know the gate"),
        (view(), "store.On", "start lockgate ofrep with --store-endpoints"),
        (View { sets: Source::NotFollowed, ..both() }, "A", "--no-feature-sets"),
    ] {
        let (status, said) = json_of(call(&routed(view), &format!("{ONE}{key}"), "", None).await).await;
        assert_eq!((status, &said["errorCode"], &said["key"]), (404, &json!("FLAG_NOT_FOUND"), &json!(key)));
        assert!(said["errorDetails"].as_str().unwrap().contains(part), "{said}");
    }
}

fn keys(body: &Value) -> Vec<&str> {
    body["flags"].as_array().unwrap().iter().map(|flag| flag["key"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn all_of_both() {
    let first = call(&routed(both()), ALL, "{}", None).await;
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let (status, body) = json_of(first).await;
    assert_eq!((status, keys(&body)), (200, vec!["A", "B", "store.Off", "store.On"]));
    let metadata = json!({"version": "1.5.0", "featureSet": "DevPreviewNoUpgrade", "storeClusterVersion": "3.8.0"});
    assert_eq!(body["metadata"], metadata);
    assert_eq!(call(&routed(both()), ALL, "{}", Some(&tag)).await.status(), 304);
    // Either part changes the tag.
    let mut other = store();
    other.features.get_mut("Off").unwrap().enabled = true;
    let changed = View { store: Source::known(other), ..view() };
    assert_eq!(call(&routed(changed), ALL, "{}", Some(&tag)).await.status(), 200);
    let mut other = sets();
    other.rows[0].enabled.clear();
    let changed = View { sets: Source::known(other), ..both() };
    assert_eq!(call(&routed(changed), ALL, "{}", Some(&tag)).await.status(), 200);
    // A version that no row has is refused, as without a store; a store alone takes any.
    let unknown = r#"{"context":{"version":"9.9"}}"#;
    let (status, said) = json_of(call(&routed(both()), ALL, unknown, None).await).await;
    assert_eq!((status, &said["errorCode"]), (400, &json!("INVALID_CONTEXT")));
    let alone = View { sets: Source::NotFollowed, ..both() };
    let (status, body) = json_of(call(&routed(alone), ALL, unknown, None).await).await;
    assert_eq!((status, keys(&body)), (200, vec!["store.Off", "store.On"]));
}

#[tokio::test]
async fn a_store_that_is_unavailable() {
    // Never connected: an error with the cause, also for all gates at once. Gates of the sets are served.
    let why = "connection refused";
    let router = routed(View { store: Source::Unknown(why.to_owned()), ..view() });
    let want = json!({"errorDetails": format!("cluster features of the store are not known: {why}")});
    for path in [format!("{ONE}store.On"), ALL.to_owned()] {
        assert_eq!(json_of(call(&router, &path, "{}", None).await).await, (500, want.clone()));
    }
    assert_eq!(call(&router, &format!("{ONE}A"), "{}", None).await.status(), 200);
    // Connected before: the last answer, marked as stale.
    let lost = both().store.lost(why);
    let router = routed(View { store: lost, ..both() });
    let (status, body) = json_of(call(&router, &format!("{ONE}store.On"), "{}", None).await).await;
    assert_eq!((status, &body["value"], &body["metadata"]["stale"]), (200, &json!(true), &json!(true)));
    let (_, body) = json_of(call(&router, ALL, "{}", None).await).await;
    let stale: Vec<bool> =
        body["flags"].as_array().unwrap().iter().map(|flag| flag["metadata"]["stale"] == json!(true)).collect();
    assert_eq!(stale, [false, false, true, true]);
}

#[tokio::test]
async fn a_gate_with_the_prefix_of_the_store_is_omitted() {
    let mut sets = sets();
    sets.rows[0].enabled.insert("store.On".to_owned());
    let view = View { sets: Source::known(sets), store: Source::NotFollowed };
    let (_, body) = json_of(call(&routed(view), ALL, "", None).await).await;
    assert_eq!(keys(&body), ["A", "B"]);
}

#[tokio::test]
async fn tokens() {
    let (_, views) = watch::channel(Arc::new(view()));
    let router = router(views, Some(Tokens::new(["one", " ", "two"])));
    for (header, value, status) in [
        ("authorization", "Bearer one", 200),
        ("authorization", "bearer two", 200),
        ("x-api-key", "two", 200),
        ("authorization", "Bearer three", 401),
        ("authorization", "Bearer ", 401),
        ("authorization", "Basic one", 401),
        ("x-api-key", "", 401),
        ("accept", "*/*", 401),
    ] {
        let request = Request::post(format!("{ONE}A")).header(header, value).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{header}: {value}");
        if status == 401 {
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            assert!(json_of(response).await.1["errorDetails"].as_str().unwrap().contains("X-API-Key"));
        }
    }
    let events = Request::get(EVENTS).body(Body::empty()).unwrap();
    assert_eq!(router.oneshot(events).await.unwrap().status(), 401);
}
