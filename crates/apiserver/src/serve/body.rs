//! Bodies of requests: read within limits of size and time, also those that the answer does not need.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Response, Version, header::CONNECTION};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::answer::Body;
use crate::status::{Result, Status};

const BYTES_MAX: usize = 3 * 1024 * 1024;
const BYTES_READ_MAX: usize = 10 * BYTES_MAX;
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How much is read of what nobody needs, and for how long; Kubernetes reads as much.
const UNREAD_BYTES_MAX: usize = 256 * 1024;
const UNREAD_WAIT_MAX: Duration = Duration::from_secs(5);

/// A client that does not send what it announced does not hold the server up for ever.
pub(crate) async fn collect_in_time(body: &mut Incoming) -> Result<Bytes> {
    match tokio::time::timeout(WAIT_MAX, collect(body)).await {
        Ok(collected) => collected,
        Err(_) => Err(Status::timeout("the body of the request did not come in time")),
    }
}

/// The body, if it is not too large. What is beyond is read and thrown away for a while: over HTTP/2 an answer that comes before
/// the end of the request is lost on many clients.
async fn collect(body: &mut Incoming) -> Result<Bytes> {
    let (mut bytes, mut length) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Status::bad_request(format!("failed to read the body: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length <= BYTES_MAX {
            bytes.extend_from_slice(&data);
        } else if length > BYTES_READ_MAX {
            break;
        }
    }
    if length > BYTES_MAX { Err(Status::too_large(format!("limit is {BYTES_MAX}"))) } else { Ok(bytes.freeze()) }
}

/// Reads what a request was answered without. A connection that is closed while its client still sends can take the answer with it,
/// and the client's next request fails; where there is too much, it is told that the connection ends.
pub(crate) async fn pass_over(body: &mut Incoming, version: Version, response: &mut Response<Body>) {
    if body.is_end_stream() {
        return;
    }
    let ended = tokio::time::timeout(UNREAD_WAIT_MAX, rest(body)).await.unwrap_or(false);
    if !ended && version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Whether the body has come to its end.
async fn rest(body: &mut Incoming) -> bool {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        length += frame.data_ref().map_or(0, Bytes::len);
        if length > UNREAD_BYTES_MAX {
            return false;
        }
    }
    true
}
