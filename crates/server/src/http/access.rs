//! Who may call over plain HTTP: origins (CORS) and host names (against DNS rebinding).

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;

use super::answer;
use crate::config::Config;

/// `None` allows all.
#[derive(Debug, Clone, Default)]
pub struct Access {
    pub origins: Option<Vec<String>>,
    pub hosts: Option<Vec<String>>,
}

impl Access {
    pub fn of(config: &Config) -> Access {
        Access { origins: config.cors.clone(), hosts: config.host_whitelist.clone() }
    }

    /// Checks every request to `router`, its fallback included.
    pub fn wrap(self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(Arc::new(self), check))
    }

    fn host_allowed(&self, host: &str) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|known| known == host))
    }

    /// The value of `Access-Control-Allow-Origin`, if the caller gets one.
    fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let Some(origins) = &self.origins else { return Some(HeaderValue::from_static("*")) };
        let origin = headers.get(header::ORIGIN)?;
        origins.iter().any(|known| known.as_bytes() == origin.as_bytes()).then(|| origin.clone())
    }
}

async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let host = hostname(&request);
    if !access.host_allowed(&host) {
        tracing::warn!(host, "rejecting HTTP request to prevent DNS rebinding attacks");
        let text = format!(
            "\nThe Host header of this request, {host:?}, is not among the names that this server answers to.\n\n\
             It keeps a web page from reaching the server under a name of its own (DNS rebinding, CVE-2018-5702).\n\
             To allow the name, start the server with --host-whitelist {host:?}.\n"
        );
        return answer::error(StatusCode::MISDIRECTED_REQUEST, &text);
    }
    let origin = access.origin(request.headers());
    let mut response =
        if request.method() == Method::OPTIONS { Response::new(Body::empty()) } else { next.run(request).await };
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        let methods = HeaderValue::from_static("POST, GET, OPTIONS, PUT, DELETE");
        let allowed = HeaderValue::from_static("accept, content-type, authorization");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    response
}

/// The host without its port, from the URL (HTTP/2) or the header.
fn hostname(request: &Request) -> String {
    let header = || request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|authority| authority.as_str()).or_else(header).unwrap_or_default();
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host.to_owned(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host).to_owned(),
    }
}
