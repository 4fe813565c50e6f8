//! HTTP endpoints beside the gateway: /health, /livez, /readyz, /version, /metrics, /debug/vars,
//! /feature-gates.
//!
//! `routes` gives the router for a client port, to be merged with the gateway's and closed by `finish`; `metrics_only`
//! is what `--listen-metrics-urls` serves. Answers are etcd's to the byte, except for the order of checks, which etcd
//! leaves to chance.

pub mod access;
mod answer;
mod checks;
mod feature_gates;
mod health;
mod query;
mod vars;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use crate::metrics::Metrics;
pub use access::Access;

/// What the endpoints ask the server. Reads should give up after the request timeout.
pub trait Health: Send + Sync + 'static {
    /// Reads locally.
    fn serializable_read(&self) -> impl Future<Output = Result<(), String>> + Send;
    /// Reads with the consent of the cluster.
    fn linearizable_read(&self) -> impl Future<Output = Result<(), String>> + Send;
    /// Raised alarms with their members.
    fn alarms(&self) -> Vec<(u64, Alarm)>;
    fn leader(&self) -> Option<u64>;
    fn is_learner(&self) -> bool;
    fn versions(&self) -> Versions;
    /// The page of the cluster feature gate, as JSON, or why these headers do not open it.
    fn feature_gates(&self, _: &HeaderMap) -> impl Future<Output = Result<String, String>> + Send {
        std::future::ready(Ok("{}".to_owned()))
    }
    /// JSON for `raft.status` of /debug/vars.
    fn raft_status(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm {
    NoSpace,
    Corrupt,
    /// A number that this version does not know.
    Other(i32),
}

impl Alarm {
    fn name(self) -> String {
        match self {
            Alarm::NoSpace => "NOSPACE".to_owned(),
            Alarm::Corrupt => "CORRUPT".to_owned(),
            Alarm::Other(number) => number.to_string(),
        }
    }
}

/// Versions as `X.Y.Z`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    pub server: String,
    /// `None` until the cluster has decided on one.
    pub cluster: Option<String>,
    pub storage: Option<String>,
}

/// Shared by the handlers.
struct App<H> {
    health: Arc<H>,
    metrics: Arc<Metrics>,
}

impl<H> Clone for App<H> {
    fn clone(&self) -> App<H> {
        App { health: self.health.clone(), metrics: self.metrics.clone() }
    }
}

/// Endpoints of a client port.
pub fn routes<H: Health>(health: Arc<H>, metrics: Arc<Metrics>) -> Router {
    let app = App { health, metrics };
    base()
        .route("/version", any(version))
        .route("/debug/vars", any(vars::handle))
        .route("/feature-gates", any(feature_gates::handle))
        .with_state(app)
}

/// Endpoints of `--listen-metrics-urls`, with etcd's answer to unknown paths.
pub fn metrics_only<H: Health>(health: Arc<H>, metrics: Arc<Metrics>) -> Router {
    base().with_state(App { health, metrics }).fallback(not_found)
}

/// Closes a client port's router: unknown paths, CORS, host names.
pub fn finish(router: Router, access: Access) -> Router {
    access.wrap(router.fallback(not_found))
}

fn base<H: Health>() -> Router<App<H>> {
    let router = Router::new().route("/metrics", any(scrape)).route("/health", any(health::handle));
    checks::add_routes(router)
}

async fn scrape<H: Health>(State(app): State<App<H>>) -> Response {
    let scrape = &app.metrics.scrape;
    scrape.in_flight.inc();
    let text = app.metrics.render();
    scrape.in_flight.dec();
    scrape.ok.inc();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn version<H: Health>(State(app): State<App<H>>, method: Method) -> Response {
    if method != Method::GET {
        return answer::method_not_allowed();
    }
    let Versions { server, cluster, storage } = app.health.versions();
    let (cluster, storage) = (cluster.as_deref().unwrap_or("not_decided"), storage.as_deref().unwrap_or("unknown"));
    let body = format!(r#"{{"etcdserver":"{server}","etcdcluster":"{cluster}","storage":"{storage}"}}"#);
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// Go's answer to a path that it does not serve.
pub async fn not_found() -> Response {
    answer::error(axum::http::StatusCode::NOT_FOUND, "404 page not found")
}

#[cfg(test)]
mod tests;
