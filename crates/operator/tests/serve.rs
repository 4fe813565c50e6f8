//! Health, readiness and metrics over HTTP, without a network.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

use axum::{body::Body, http::Request};
use http_body_util::BodyExt;
use operator::{metrics::Metrics, serve::router};
use tower::ServiceExt;

async fn get(path: &str) -> (u16, String, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router(Metrics::new().unwrap()).oneshot(request).await.unwrap();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, kind, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_controller_before_its_first_look() {
    let (status, _, said) = get("/healthz").await;
    assert_eq!((status, said.as_str()), (200, "ok"));
    let (status, _, said) = get("/readyz").await;
    assert_eq!((status, said.as_str()), (503, "the API was not asked yet"));
    let (status, kind, said) = get("/metrics").await;
    assert_eq!((status, kind.as_str()), (200, "text/plain; version=0.0.4; charset=utf-8"));
    assert!(said.contains("leader_election_master_status{name=\"lockgate-gates-controller\"} 0\n"), "{said}");
}
