//! Calls with a stream of answers: one line of JSON each, `{"result":…}`, and `{"error":…}` if it ends badly.
//!
//! HTTP headers are sent with the first answer, as etcd's gateway does, because only then is the status known. For calls
//! whose request is a stream as well, the body is a sequence of JSON values, each passed on as it arrives.

use std::convert::Infallible;

use axum::{
    body::Body as HttpBody,
    extract::Request,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, header};
use http_body::Frame;
use http_body_util::{BodyStream, StreamBody};
use proto::{HttpRoute, json::Values};
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    time::{Instant, timeout_at},
};
use tonic::{Code, Status, body::Body};

use super::{
    Gateway, GrpcService, Limits, body,
    body::Messages,
    call::{deadline_exceeded, internal, read_request, start, within},
    metadata,
    status::{JSON, error_json, error_response, http_status},
};

pub(super) async fn call<S: GrpcService>(gateway: &Gateway<S>, route: &HttpRoute, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (metadata, limit) = match metadata::incoming(&parts).and_then(|m| Ok((m, metadata::timeout(&parts.headers)?))) {
        Ok(both) => both,
        Err(status) => return error_response(&status),
    };
    let deadline = limit.map(|limit| Instant::now() + limit);
    let (spoiled, spoiled_by) = oneshot::channel();
    let message = if route.client_streaming {
        Body::new(StreamBody::new(requests(body, route.input.clone(), gateway.limits, spoiled).map(Ok::<_, Status>)))
    } else {
        match read_request(gateway, route, &parts, body).await {
            Ok(message) => message,
            Err(status) => return error_response(&status),
        }
    };
    let mut spoiled_by = route.client_streaming.then_some(spoiled_by);
    let started = within(limit, unless(&mut spoiled_by, start(gateway, route, parts, metadata, message))).await;
    let (headers, messages) = match started {
        Ok(started) => started,
        Err(status) if route.client_streaming => return stream_error(&status),
        Err(status) => return error_response(&status),
    };
    let answers = Answers { messages, output: route.output.clone(), deadline, spoiled_by, ended: false };
    respond(answers, &headers).await
}

/// Waits for the first answer, then sends the headers and goes on.
async fn respond(mut answers: Answers, headers: &HeaderMap) -> Response {
    let first = match answers.next().await {
        Ok(Some(first)) => first,
        // Nothing was sent, so there is no content to name a type for.
        Ok(None) => return HttpBody::from_stream(stream::empty::<Result<Bytes, Infallible>>()).into_response(),
        Err(status) => return stream_error(&status),
    };
    let rest = stream::unfold(answers, |mut answers| async move {
        let line = answers.next_line().await?;
        Some((line, answers))
    });
    let lines = stream::once(async { first }).chain(rest).map(Ok::<_, Infallible>);
    let mut response = HttpBody::from_stream(lines).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response.headers_mut().extend(metadata::outgoing(headers));
    response
}

/// A stream that failed before its first answer.
fn stream_error(status: &Status) -> Response {
    let mut response = (http_status(status.code()), error_line(status)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response.headers_mut().extend(metadata::echoed(status.metadata()));
    response
}

struct Answers {
    messages: Messages,
    output: String,
    deadline: Option<Instant>,
    /// Reports a request stream that began with no JSON.
    spoiled_by: Option<oneshot::Receiver<Status>>,
    ended: bool,
}

impl Answers {
    /// The next line, also for an error; `None` at the end.
    async fn next_line(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        match self.next().await {
            Ok(line) => line,
            Err(status) => {
                self.ended = true;
                Some(error_line(&status).into())
            }
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let next = unless(&mut self.spoiled_by, self.messages.next());
        let message = match self.deadline {
            None => next.await?,
            Some(deadline) => timeout_at(deadline, next).await.unwrap_or_else(|_| Err(deadline_exceeded()))?,
        };
        let Some(message) = message else { return Ok(None) };
        let json = proto::json::encode(&self.output, &message).map_err(internal)?;
        Ok(Some(line("result", &json).into()))
    }
}

/// The result of `work`, unless the request stream turns out to be spoiled.
async fn unless<T>(
    spoiled_by: &mut Option<oneshot::Receiver<Status>>,
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let Some(receiver) = spoiled_by else { return work.await };
    tokio::pin!(work);
    let spoiled = tokio::select! {
        biased;
        spoiled = &mut *receiver => spoiled.ok(),
        // The report comes before the end of the request stream that ends the work.
        result = &mut work => match receiver.try_recv() {
            Ok(status) => Some(status),
            Err(TryRecvError::Empty) => return result,
            Err(TryRecvError::Closed) => {
                *spoiled_by = None;
                return result;
            }
        },
    };
    *spoiled_by = None;
    match spoiled {
        Some(status) => Err(status),
        None => work.await,
    }
}

fn error_line(status: &Status) -> Vec<u8> {
    line("error", &error_json(status))
}

/// One line of a stream. Go escapes what HTML could take for markup here, though not in single answers.
fn line(name: &str, json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + name.len() + 6);
    out.extend_from_slice(format!("{{\"{name}\":").as_bytes());
    let mut rest = json;
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'<' | b'>' | b'&', _) => out.extend_from_slice(format!("\\u{first:04x}").as_bytes()),
            (0xe2, [0x80, last @ (0xa8 | 0xa9), ..]) => {
                out.extend_from_slice(format!("\\u20{:02x}", last - 0x80).as_bytes());
                rest = &tail[2..];
                continue;
            }
            _ => out.push(*first),
        }
        rest = tail;
    }
    out.extend_from_slice(b"}\n");
    out
}

/// The values of a request body as gRPC frames. The first that is no message ends the stream, as the end of the body
/// does: what was asked until then goes on. If nothing was asked at all, or too much at once, `spoiled` ends the call.
fn requests(
    body: HttpBody,
    input: String,
    limits: Limits,
    spoiled: oneshot::Sender<Status>,
) -> impl Stream<Item = Frame<Bytes>> + Send {
    let reader = Requests { body: BodyStream::new(body), values: Values::default(), input, limits, ended: false };
    stream::unfold((reader, spoiled, 0u64), |(mut reader, spoiled, sent)| async move {
        match reader.next().await {
            Ok(frame) => frame.map(|frame| (Frame::data(frame), (reader, spoiled, sent + 1))),
            Err(status) => {
                if sent == 0 || status.code() == Code::ResourceExhausted {
                    // The receiver is gone if the client is.
                    let _ = spoiled.send(status);
                }
                None
            }
        }
    })
}

struct Requests {
    body: BodyStream<HttpBody>,
    values: Values,
    input: String,
    limits: Limits,
    ended: bool,
}

impl Requests {
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if let Some(value) = self.values.take_next().map_err(|e| undecodable(body::invalid(e)))? {
                if value.len() > self.limits.body_bytes_max {
                    return Err(body::body_too_large(value.len(), self.limits));
                }
                return body::frame_of(&self.input, &value, self.limits).map(Some).map_err(undecodable);
            }
            if self.ended {
                return Ok(None);
            }
            if self.values.pending() > self.limits.body_bytes_max {
                return Err(body::body_too_large(self.values.pending(), self.limits));
            }
            match self.body.next().await {
                Some(Ok(frame)) => self.values.push(frame.data_ref().map_or(&b""[..], |data| data)),
                Some(Err(_)) | None => {
                    self.ended = true;
                    self.values.end();
                }
            }
        }
    }
}

fn undecodable(status: Status) -> Status {
    match status.code() {
        Code::InvalidArgument => Status::new(status.code(), format!("Failed to decode request: {}", status.message())),
        _ => status,
    }
}
