//! The answer to what no route takes: gRPC clients get a gRPC status, others a 404 as Go gives it.

use axum::{
    body::Body,
    http::{HeaderValue, Request, Response, StatusCode, header},
};

use crate::status;

pub(crate) async fn answer(request: Request<Body>) -> Response<Body> {
    let grpc =
        request.headers().get(header::CONTENT_TYPE).is_some_and(|t| t.as_bytes().starts_with(b"application/grpc"));
    if grpc {
        return status::unknown_service(request.uri().path()).map(Body::new);
    }
    let mut response = Response::new(Body::from("404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
