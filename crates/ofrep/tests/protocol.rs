//! The protocol, over HTTP without a network: statuses, fields, tags and events as OpenFeature's OpenAPI 0.3.0 has them.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{Request, Response},
};
use featureset::{GatesFile, Registry, Row};
use http_body_util::BodyExt;
use ofrep::{EVENTS, View, router};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt;

fn view() -> View {
    let toml = "schema = 1\nversion = \"1.5.0\"\n[gate.A]\ndescription = \"d\"\nowner = \"net\"\ncontact = \"c\"\n\
                enhancement = \"https://e\"\nsince = \"1.4\"\nsets = [\"DevPreviewNoUpgrade\"]\n";
    let registry = Registry::of_file(&GatesFile::parse(toml).unwrap(), "1.5.0").unwrap();
    let row = |version: &str, on: &[&str], off: &[&str]| Row {
        version: version.to_owned(),
        enabled: on.iter().map(|name| name.to_string()).collect(),
        disabled: off.iter().map(|name| name.to_string()).collect(),
    };
    View {
        rows: vec![row("1.5.0", &["A"], &["B"]), row("1.4.0", &[], &["A"])],
        feature_set: "DevPreviewNoUpgrade".to_owned(),
        desired: Some("1.5.0".to_owned()),
        registries: BTreeMap::from([("1.5.0".to_owned(), registry)]),
    }
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
    let (_sender, views) = watch::channel(Arc::new(view()));
    let router = router(views);
    let context = r#"{"context":{"targetingKey":"me"}}"#;
    let (status, body) = json_of(call(&router, &format!("{ONE}A"), context, None).await).await;
    let digest = view().rows[0].digest();
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

#[tokio::test]
async fn refusals() {
    let (_sender, views) = watch::channel(Arc::new(view()));
    let router = router(views);
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
    let (_sender, views) = watch::channel(Arc::new(View::default()));
    let router = router(views);
    let (status, said) = json_of(call(&router, &format!("{ONE}A"), "", None).await).await;
    assert_eq!((status, said), (500, json!({"errorDetails": "the cluster has no row of gates yet"})));
}

#[tokio::test]
async fn all_gates_with_a_tag() {
    let (sender, views) = watch::channel(Arc::new(view()));
    let router = router(views);
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

    // Another version is another answer, and so is a changed row.
    let older = call(&router, ALL, r#"{"context":{"version":"1.4.0"}}"#, Some(&tag)).await;
    assert_eq!(older.status(), 200);
    let mut changed = view();
    changed.rows[0].enabled.clear();
    sender.send_replace(Arc::new(changed));
    assert_eq!(call(&router, ALL, "{}", Some(&tag)).await.status(), 200);
}

#[tokio::test]
async fn a_change_is_an_event() {
    let (sender, views) = watch::channel(Arc::new(view()));
    let router = router(views);
    // Before the stream begins: no event.
    sender.send_replace(Arc::new(view()));
    let response = router.oneshot(Request::get(EVENTS).body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), body.frame()).await;
    assert!(early.is_err(), "{early:?}");
    sender.send_replace(Arc::new(View::default()));
    let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(&frame[..], b"event: message\ndata: {\"type\":\"refetchEvaluation\"}\n\n");
}
