//! gRPC status to HTTP status and JSON, as grpc-gateway maps them.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use tonic::{Code, Status};

use super::metadata;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The answer to a call that failed before anything was sent.
pub(super) fn error_response(status: &Status) -> Response {
    let mut response = (http_status(status.code()), error_json(status)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response.headers_mut().extend(metadata::echoed(status.metadata()));
    if status.code() == Code::Unauthenticated
        && let Ok(message) = HeaderValue::from_str(status.message())
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, message);
    }
    response
}

/// `{"code":…,"message":…}`, each only if it is not zero or empty.
pub(super) fn error_json(status: &Status) -> Vec<u8> {
    let mut parts = Vec::new();
    if status.code() != Code::Ok {
        parts.push(format!("\"code\":{}", status.code() as i32).into_bytes());
    }
    if !status.message().is_empty() {
        parts.push([b"\"message\":".as_slice(), &proto::json::string(status.message())].concat());
    }
    [b"{".as_slice(), &parts.join(&b","[..]), b"}"].concat()
}

pub(super) fn http_status(code: Code) -> StatusCode {
    let number = match code {
        Code::Ok => 200,
        Code::Cancelled => 499,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
        Code::DeadlineExceeded => 504,
        Code::NotFound => 404,
        Code::AlreadyExists | Code::Aborted => 409,
        Code::PermissionDenied => 403,
        Code::Unauthenticated => 401,
        Code::ResourceExhausted => 429,
        Code::Unimplemented => 501,
        Code::Unavailable => 503,
        Code::Unknown | Code::Internal | Code::DataLoss => 500,
    };
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_written_as_a_real_gateway_does() {
        let json = |code, message: &str| String::from_utf8(error_json(&Status::new(code, message))).unwrap();
        assert_eq!(json(Code::NotFound, "Not Found"), r#"{"code":5,"message":"Not Found"}"#);
        assert_eq!(json(Code::Unknown, ""), r#"{"code":2}"#);
        assert_eq!(json(Code::Internal, "a \"b\"\n<c>"), r#"{"code":13,"message":"a \"b\"\n<c>"}"#);
    }
}
