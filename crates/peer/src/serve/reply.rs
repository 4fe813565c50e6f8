//! Answers in the form that Go's server and etcd give them.

use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{Either, Full};
use membership::ClusterId;
use serde::Serialize;

use crate::{
    Transport,
    header::{CLUSTER_ID, LOCKGATE_VERSION, insert},
    outbox::StreamBody,
    probe,
};

pub(super) type ReplyBody = Either<Full<Bytes>, StreamBody>;

pub(super) struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: ReplyBody,
}

impl Reply {
    fn new(status: StatusCode, content_type: Option<&'static str>, body: ReplyBody) -> Reply {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        Reply { status, headers, body }
    }

    /// As Go's `http.Error`: the text and a newline.
    pub(super) fn error(status: u16, text: impl AsRef<str>) -> Reply {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = Bytes::from(format!("{}\n", text.as_ref()));
        let reply = Reply::new(status, Some("text/plain; charset=utf-8"), Either::Left(Full::new(body)));
        reply.with(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
    }

    /// As etcd's `HTTPError`: JSON with a message.
    pub(super) fn json_error(status: u16, message: &str) -> Reply {
        let mut reply = Reply::json(&serde_json::json!({ "message": message }), false);
        reply.status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        reply
    }

    pub(super) fn not_found() -> Reply {
        Reply::error(404, "404 page not found")
    }

    pub(super) fn method_not_allowed(allow: Option<&str>) -> Reply {
        let reply = Reply::error(405, "Method Not Allowed");
        match allow {
            Some(allow) => reply.with(header::ALLOW, allow),
            None => reply,
        }
    }

    pub(super) fn no_content() -> Reply {
        Reply::new(StatusCode::NO_CONTENT, None, Either::Left(Full::default()))
    }

    /// Go's encoder ends with a newline, its `Marshal` does not.
    pub(super) fn json<T: Serialize>(value: &T, newline: bool) -> Reply {
        match serde_json::to_vec(value) {
            Ok(mut body) => {
                if newline {
                    body.push(b'\n');
                }
                Reply::bytes("application/json", body.into())
            }
            Err(error) => Reply::error(500, error.to_string()),
        }
    }

    pub(super) fn bytes(content_type: &'static str, body: Bytes) -> Reply {
        Reply::new(StatusCode::OK, Some(content_type), Either::Left(Full::new(body)))
    }

    pub(super) fn probing() -> Reply {
        Reply::bytes("text/plain; charset=utf-8", probe::answer(SystemTime::now()).into())
    }

    pub(super) fn stream(body: StreamBody) -> Reply {
        Reply::new(StatusCode::OK, None, Either::Right(body))
    }

    pub(super) fn with(mut self, name: HeaderName, value: &str) -> Reply {
        insert(&mut self.headers, name, value);
        self
    }

    pub(super) fn with_cluster(self, cluster: ClusterId) -> Reply {
        self.with(CLUSTER_ID, &cluster.to_string())
    }

    pub(super) fn into_response(self, transport: &Transport) -> Response<ReplyBody> {
        let version = &transport.shared().options.identity.lockgate_version;
        let reply = self.with(LOCKGATE_VERSION, version);
        let mut response = Response::new(reply.body);
        *response.status_mut() = reply.status;
        *response.headers_mut() = reply.headers;
        response
    }
}
