//! Answers in the form that Go's `http.Error` gives them.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// Text with a line end that browsers must not take for anything else.
pub(super) fn error(status: StatusCode, text: &str) -> Response {
    let mut response = plain(format!("{text}\n"));
    *response.status_mut() = status;
    response
}

pub(super) fn plain(body: String) -> Response {
    let mut response = bare(body);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

/// Text without the hint to browsers, which `/health` lacks.
pub(super) fn bare(body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}

pub(super) fn method_not_allowed() -> Response {
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
    response
}
