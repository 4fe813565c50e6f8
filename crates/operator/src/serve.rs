//! `/metrics`, `/healthz` and `/readyz` of the controller.

use std::io;

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;

use crate::metrics::Metrics;

pub fn router(metrics: Metrics) -> Router {
    Router::new()
        .route("/metrics", get(text))
        // That it answers is the answer.
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
        .with_state(metrics)
}

/// Serves until it fails.
pub async fn serve(listener: TcpListener, metrics: Metrics) -> io::Result<()> {
    axum::serve(listener, router(metrics)).await
}

async fn text(State(metrics): State<Metrics>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.text())
}

async fn ready(State(metrics): State<Metrics>) -> impl IntoResponse {
    match metrics.unready() {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    }
}
