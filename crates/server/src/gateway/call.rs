//! Calls with one answer, and what all calls share.

use std::future::Future;

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, Uri, Version, header, request::Parts};
use proto::HttpRoute;
use tonic::{Code, Status, body::Body};

use super::{Gateway, GrpcService, body, body::Messages, metadata, status::JSON};

pub(super) async fn unary<S: GrpcService>(
    gateway: &Gateway<S>,
    route: &HttpRoute,
    request: Request,
) -> Result<Response, Status> {
    let (parts, body) = request.into_parts();
    let metadata = metadata::incoming(&parts)?;
    let limit = metadata::timeout(&parts.headers)?;
    let frame = read_request(gateway, route, &parts, body).await?;
    let call = async {
        let (headers, mut messages) = start(gateway, route, parts, metadata, frame).await?;
        let Some(message) = messages.next().await? else {
            return Err(Status::new(Code::Internal, "the call ended without an answer"));
        };
        // A unary call may still fail behind its message.
        messages.next().await?;
        Ok((headers, message))
    };
    let (headers, message) = within(limit, call).await?;
    let json = proto::json::encode(&route.output, &message).map_err(internal)?;
    let mut response = json.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response.headers_mut().extend(metadata::outgoing(&headers));
    Ok(response)
}

/// The framed message of a request that consists of one JSON value; an empty body is an empty message.
pub(super) async fn read_request<S>(
    gateway: &Gateway<S>,
    route: &HttpRoute,
    parts: &Parts,
    body: axum::body::Body,
) -> Result<Body, Status> {
    let length = parts.headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if let Some(length) = length.filter(|&length| length > gateway.limits.body_bytes_max) {
        return Err(body::body_too_large(length, gateway.limits));
    }
    let frame = match body::first_value(body, gateway.limits).await? {
        Some(value) => body::frame_of(&route.input, &value, gateway.limits)?,
        None => body::framed(b""),
    };
    Ok(Body::new(http_body_util::Full::new(frame)))
}

/// Starts the gRPC call; its headers and messages.
pub(super) async fn start<S: GrpcService>(
    gateway: &Gateway<S>,
    route: &HttpRoute,
    parts: Parts,
    metadata: HeaderMap,
    body: Body,
) -> Result<(HeaderMap, Messages), Status> {
    let mut request = http::Request::new(body);
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = Uri::try_from(route.grpc_path()).map_err(internal)?;
    *request.headers_mut() = metadata;
    // Who is connected, for services that ask.
    *request.extensions_mut() = parts.extensions;
    let (head, body) = gateway.service.clone().call(request).await?.into_parts();
    let messages = Messages::new(&head.headers, body);
    Ok((head.headers, messages))
}

/// The result of `call`, unless the time the client gave it is over before.
pub(super) async fn within<T>(
    limit: Option<std::time::Duration>,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match limit {
        None => call.await,
        Some(limit) if limit.is_zero() => Err(deadline_exceeded()),
        Some(limit) => tokio::time::timeout(limit, call).await.unwrap_or_else(|_| Err(deadline_exceeded())),
    }
}

pub(super) fn deadline_exceeded() -> Status {
    Status::new(Code::DeadlineExceeded, "context deadline exceeded")
}

pub(super) fn internal(error: impl std::error::Error) -> Status {
    Status::new(Code::Internal, error.to_string())
}
