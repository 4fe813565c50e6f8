//! The JSON gateway: `POST /v3/…` with a JSON body becomes a gRPC call in the same process.
//!
//! It knows nothing of how the services are built: it takes whatever answers gRPC over HTTP and finds paths and
//! messages in the descriptors. Status codes, bodies and headers are those of the gateway in etcd 3.7; `testdata/gateway.txt`
//! holds what a real one answered. On purpose it differs in three things: no random spaces in the JSON (Go's library
//! adds some, depending on the build), an upper bound for the request body, and an error instead of silence when a
//! stream begins with something that is no JSON.

mod body;
mod call;
mod metadata;
mod method_override;
mod status;
mod stream;

use std::{collections::HashMap, error::Error, sync::Arc};

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse, Response},
    routing::any,
};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use proto::{HttpRoute, http_routes};
use tonic::{Code, Status};

use status::error_response;

/// How much a client may send.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest encoded message; etcd allows `--max-request-bytes` and 512 KiB more.
    pub message_bytes_max: usize,
    /// Largest request body; of a stream, largest single JSON value.
    pub body_bytes_max: usize,
}

impl Limits {
    /// Room for a message of `message_bytes_max` in JSON: bytes fields grow by a third, the rest is names and spaces.
    pub fn for_messages(message_bytes_max: usize) -> Self {
        Limits { message_bytes_max, body_bytes_max: message_bytes_max.saturating_mul(2).saturating_add(64 * 1024) }
    }
}

/// What the gateway calls: `tonic::service::Routes`, an axum router of gRPC services, or anything like them.
pub trait GrpcService: Clone + Send + Sync + 'static {
    fn call(
        self,
        request: http::Request<tonic::body::Body>,
    ) -> impl Future<Output = Result<http::Response<tonic::body::Body>, Status>> + Send;
}

impl<S, B> GrpcService for S
where
    S: tower::Service<http::Request<tonic::body::Body>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    async fn call(
        self,
        request: http::Request<tonic::body::Body>,
    ) -> Result<http::Response<tonic::body::Body>, Status> {
        let answer = tower::ServiceExt::oneshot(self, request).await;
        answer.map(|response| response.map(tonic::body::Body::new)).map_err(|e| Status::from_error(e.into()))
    }
}

/// The routes `/v3/…` and, as an old alias, `/v3beta/…`, to be merged into the router of the client port.
pub fn router<S: GrpcService>(service: S, limits: Limits) -> Router {
    let paths = http_routes().iter().map(|route| (route.path.as_str(), route)).collect();
    let gateway = Arc::new(Gateway { service, limits, paths });
    let handler = any(move |request: Request| handle(gateway.clone(), request));
    ["/v3", "/v3/", "/v3/{*rest}", "/v3beta/{*rest}"]
        .into_iter()
        .fold(Router::new(), |router, path| router.route(path, handler.clone()))
}

struct Gateway<S> {
    service: S,
    limits: Limits,
    paths: HashMap<&'static str, &'static HttpRoute>,
}

async fn handle<S: GrpcService>(gateway: Arc<Gateway<S>>, request: Request) -> Response {
    let path = percent_decoded(request.uri().path());
    let path = match path.strip_prefix("/v3beta/") {
        Some(rest) => format!("/v3/{rest}"),
        None => path,
    };
    if let Some(clean) = clean_path(&path) {
        return redirect(&clean, request.uri());
    }
    let request = match method_override::apply(request, gateway.limits.body_bytes_max).await {
        Ok(request) => request,
        Err(status) => return error_response(&status),
    };
    match gateway.paths.get(path.as_str()) {
        None => error_response(&Status::new(Code::NotFound, "Not Found")),
        Some(_) if request.method() != Method::POST => {
            error_response(&Status::new(Code::Unimplemented, "Method Not Allowed"))
        }
        Some(route) if route.server_streaming => stream::call(&gateway, route, request).await,
        Some(route) => match call::unary(&gateway, route, request).await {
            Ok(response) => response,
            Err(status) => error_response(&status),
        },
    }
}

/// The path without doubled slashes and dots, if it is not clean already. Go's router sends clients there.
fn clean_path(path: &str) -> Option<String> {
    if path == "/v3" {
        return Some("/v3/".to_owned());
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    let tail = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    let clean = format!("/{}{tail}", parts.join("/"));
    (clean != path).then_some(clean)
}

fn redirect(path: &str, uri: &Uri) -> Response {
    let location = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    match HeaderValue::from_str(&location) {
        Ok(location) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response(),
        Err(_) => error_response(&Status::new(Code::NotFound, "Not Found")),
    }
}

/// `%72ange` is `range`. What is no escape stays as it is and will not match a route.
fn percent_decoded(path: &str) -> String {
    if !path.contains('%') {
        return path.to_owned();
    }
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = (*first == b'%').then(|| tail.first_chunk::<2>()).flatten();
        let escaped = digits.and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok());
        out.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("/v3/kv/range" => None; "clean")]
    #[test_case("/v3/" => None; "only the slash")]
    #[test_case("/v3" => Some("/v3/".to_owned()); "no slash")]
    #[test_case("/v3//kv/range" => Some("/v3/kv/range".to_owned()); "doubled slash")]
    #[test_case("/v3/./kv/../kv/range/" => Some("/v3/kv/range/".to_owned()); "dots")]
    fn cleans(path: &str) -> Option<String> {
        clean_path(path)
    }

    #[test_case("/v3/kv/%72ange" => "/v3/kv/range"; "escape")]
    #[test_case("/v3/%zz%7" => "/v3/%zz%7"; "no escapes")]
    fn decodes(path: &str) -> String {
        percent_decoded(path)
    }
}
