//! Counts of gRPC calls, and the tower layer that counts them from the outside, refuses what etcd's interceptors refuse
//! and logs slow calls.
//!
//! The layer never decodes a message: it follows the five-byte frame headers in both bodies, so a call costs a few
//! atomic additions.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, Request, Response};
use http_body::{Body, Frame, SizeHint};
use parking_lot::RwLock;
use pin_project_lite::pin_project;
use prometheus::{Histogram, IntCounter, IntCounterVec};
use tonic::{Code, Status};
use tower::Layer;
use tower_service::Service;

use super::build::Builder;
use super::methods::{CANCELED, CODES, METHODS, UNKNOWN};
use crate::status;

/// Distinct values of `client-api-version` that get a label of their own; a client could send any.
const CLIENT_VERSIONS_MAX: usize = 32;

const HANDLING_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

pub struct Grpc {
    methods: Vec<Method>,
    by_path: HashMap<String, usize>,
    pub sent_bytes: IntCounter,
    pub received_bytes: IntCounter,
    /// By `Type` (send, receive) and `API` (watch, lease-keepalive).
    stream_failures: IntCounterVec,
    client_requests: IntCounterVec,
    /// Unary and stream counters by version.
    client_versions: RwLock<HashMap<String, [IntCounter; 2]>>,
}

struct Method {
    is_stream: bool,
    started: IntCounter,
    handled: [IntCounter; CODES.len()],
    received: IntCounter,
    sent: IntCounter,
    /// Only with `--metrics=extensive`.
    seconds: Option<Histogram>,
}

impl Grpc {
    pub(super) fn new(b: &mut Builder, extensive: bool) -> Grpc {
        let labels = &["grpc_type", "grpc_service", "grpc_method"];
        let started = b.counters("grpc_server_started_total", "Calls begun.", labels);
        let received = b.counters("grpc_server_msg_received_total", "Messages received.", labels);
        let sent = b.counters("grpc_server_msg_sent_total", "Messages sent.", labels);
        let handled = b.counters(
            "grpc_server_handled_total",
            "Calls ended, by code.",
            &["grpc_type", "grpc_service", "grpc_method", "grpc_code"],
        );
        let seconds = extensive.then(|| {
            b.histograms_at("grpc_server_handling_seconds", "Time of a whole call.", &HANDLING_BUCKETS, labels)
        });
        let method = |(service, method, kind): &(&str, &str, &str)| Method {
            is_stream: *kind != "unary",
            started: started.with_label_values(&[kind, service, method]),
            handled: CODES.map(|code| handled.with_label_values(&[kind, service, method, code])),
            received: received.with_label_values(&[kind, service, method]),
            sent: sent.with_label_values(&[kind, service, method]),
            seconds: seconds.as_ref().map(|vec| vec.with_label_values(&[kind, service, method])),
        };
        let path = |(i, (service, method, _)): (usize, &(&str, &str, &str))| (format!("/{service}/{method}"), i);
        Grpc {
            methods: METHODS.iter().map(method).collect(),
            by_path: METHODS.iter().enumerate().map(path).collect(),
            sent_bytes: b.counter("etcd_network_client_grpc_sent_bytes_total", "Bytes sent to gRPC clients."),
            received_bytes: b
                .counter("etcd_network_client_grpc_received_bytes_total", "Bytes received from gRPC clients."),
            stream_failures: b.counters(
                "etcd_network_server_stream_failures_total",
                "Broken streams with clients.",
                &["Type", "API"],
            ),
            client_requests: b.counters(
                "etcd_server_client_requests_total",
                "Requests by the API version that the client names.",
                &["type", "client_api_version"],
            ),
            client_versions: RwLock::new(HashMap::new()),
        }
    }

    /// A client's stream ended with an error. That a client left, or waited long enough, is none.
    pub fn receive_failed(&self, api: &str, status: &Status) {
        if !matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded) {
            tracing::warn!(api, error = %status, "failed to receive a request from a gRPC stream");
            self.stream_failures.with_label_values(&["receive", api]).inc();
        }
    }

    fn count_client(&self, version: &str, is_stream: bool) {
        if let Some(counters) = self.client_versions.read().get(version) {
            return counters[usize::from(is_stream)].inc();
        }
        let mut versions = self.client_versions.write();
        let version = if versions.len() < CLIENT_VERSIONS_MAX { version } else { "other" };
        let make = || ["unary", "stream"].map(|kind| self.client_requests.with_label_values(&[kind, version]));
        versions.entry(version.to_owned()).or_insert_with(make)[usize::from(is_stream)].inc();
    }
}

// As names: a text would be read anew in every call.
const CLIENT_API_VERSION: HeaderName = HeaderName::from_static("client-api-version");
const HAS_LEADER: HeaderName = HeaderName::from_static("hasleader");

/// What a call may be.
#[derive(Clone)]
pub struct Guard {
    /// Larger messages are refused as soon as their header is read.
    pub message_bytes_max: usize,
    /// Unary calls that take longer are logged.
    pub slow: Duration,
    /// Calls may ask to be refused while there is no leader.
    pub has_leader: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Streams may ask to be ended when there has been no leader for a while.
    pub leader_lost: LeaderLost,
    /// A learner serves little.
    pub is_learner: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Makes a future that ends when the leader has been lost for a while.
pub type LeaderLost = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// What a learner serves; of ranges, the serializable ones.
const SERVED_BY_LEARNERS: &[(&str, &str)] = &[
    ("etcdserverpb.KV", "Range"),
    ("etcdserverpb.Maintenance", "FeatureGateHistory"),
    ("etcdserverpb.Maintenance", "FeatureGateStatus"),
    ("etcdserverpb.Maintenance", "Snapshot"),
    ("etcdserverpb.Maintenance", "Status"),
];

impl Guard {
    /// Lets everything pass.
    pub fn open() -> Guard {
        Guard {
            message_bytes_max: usize::MAX,
            slow: Duration::MAX,
            has_leader: Arc::new(|| true),
            leader_lost: Arc::new(|| Box::pin(std::future::pending())),
            is_learner: Arc::new(|| false),
        }
    }

    fn refusal(&self, method: usize, headers: &HeaderMap) -> Option<Status> {
        let (service, name, _) = METHODS[method];
        if (self.is_learner)() && !SERVED_BY_LEARNERS.contains(&(service, name)) {
            return Some(status::not_supported_for_learner());
        }
        let version = headers.get(CLIENT_API_VERSION);
        if version.is_some_and(|value| std::str::from_utf8(value.as_bytes()).is_err()) {
            return Some(status::invalid_client_api_version());
        }
        (needs_leader(headers) && !(self.has_leader)()).then(status::no_leader)
    }

    /// A stream that was begun with a leader in mind ends with it.
    fn lost(&self, method: usize, headers: &HeaderMap) -> Option<BoxFuture<'static, ()>> {
        (METHODS[method].2 != "unary" && needs_leader(headers)).then(|| (self.leader_lost)())
    }
}

fn needs_leader(headers: &HeaderMap) -> bool {
    headers.get(HAS_LEADER).is_some_and(|value| value.as_bytes() == b"true")
}

/// Counts every call of a method that etcd has; other paths pass untouched.
#[derive(Clone)]
pub struct GrpcLayer {
    grpc: Arc<Grpc>,
    guard: Guard,
}

impl GrpcLayer {
    pub fn new(grpc: Arc<Grpc>, guard: Guard) -> GrpcLayer {
        GrpcLayer { grpc, guard }
    }
}

impl<S> Layer<S> for GrpcLayer {
    type Service = GrpcService<S>;

    fn layer(&self, inner: S) -> GrpcService<S> {
        GrpcService { inner, grpc: self.grpc.clone(), guard: self.guard.clone() }
    }
}

#[derive(Clone)]
pub struct GrpcService<S> {
    inner: S,
    grpc: Arc<Grpc>,
    guard: Guard,
}

impl<S, B, R> Service<Request<B>> for GrpcService<S>
where
    S: Service<Request<Counted<B>>, Response = Response<R>>,
{
    type Response = Response<Counted<R>>;
    type Error = S::Error;
    type Future = GrpcFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(method) = self.grpc.by_path.get(request.uri().path()).copied() else {
            return GrpcFuture { inner: self.inner.call(request.map(Counted::uncounted)), call: None };
        };
        let call = Call::start(&self.grpc, method, request.headers(), self.guard.slow);
        let incoming = Direction::Received(self.grpc.clone(), method);
        let refusal = self.guard.refusal(method, request.headers());
        let lost = self.guard.lost(method, request.headers());
        let bytes_max = self.guard.message_bytes_max;
        let request = request.map(|body| Counted { refusal, lost, bytes_max, ..Counted::new(body, incoming) });
        GrpcFuture { inner: self.inner.call(request), call: Some(call) }
    }
}

pin_project! {
    pub struct GrpcFuture<F> {
        #[pin]
        inner: F,
        call: Option<Call>,
    }
}

impl<F, R, E> Future for GrpcFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<Counted<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.inner.poll(cx));
        let call = this.call.take();
        Poll::Ready(match (response, call) {
            (Ok(response), Some(mut call)) => {
                call.log_if_slow();
                // An error before the first message puts the status into the headers.
                call.finish_by(response.headers());
                Ok(response.map(|body| Counted::new(body, Direction::Sent(call))))
            }
            (Ok(response), None) => Ok(response.map(Counted::uncounted)),
            (Err(err), call) => {
                if let Some(mut call) = call {
                    call.finish(UNKNOWN);
                }
                Err(err)
            }
        })
    }
}

/// One call under way. Dropped before its status was seen, it counts as canceled.
struct Call {
    grpc: Arc<Grpc>,
    method: usize,
    started: Instant,
    slow: Duration,
    finished: bool,
}

impl Call {
    fn start(grpc: &Arc<Grpc>, method: usize, headers: &HeaderMap, slow: Duration) -> Call {
        let m = &grpc.methods[method];
        m.started.inc();
        let version = headers.get(CLIENT_API_VERSION).map_or(Ok("unknown"), |value| value.to_str());
        grpc.count_client(version.unwrap_or("unknown"), m.is_stream);
        Call { grpc: grpc.clone(), method, started: Instant::now(), slow, finished: false }
    }

    /// The handler has answered. Named as etcd names it, since people search their logs for it.
    fn log_if_slow(&self) {
        let took = self.started.elapsed();
        if took > self.slow && !self.grpc.methods[self.method].is_stream {
            let (service, method, _) = METHODS[self.method];
            let method = format!("/{service}/{method}");
            tracing::warn!("time spent" = ?took, "response type" = %method, expected = ?self.slow, "request stats");
        }
    }

    fn finish_by(&mut self, headers: &HeaderMap) {
        if let Some(status) = headers.get(Status::GRPC_STATUS) {
            let code = status.to_str().ok().and_then(|code| code.parse::<usize>().ok());
            self.finish(code.filter(|code| *code < CODES.len()).unwrap_or(UNKNOWN));
        }
    }

    fn finish(&mut self, code: usize) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        let method = &self.grpc.methods[self.method];
        method.handled[code].inc();
        if let Some(seconds) = &method.seconds {
            seconds.observe(self.started.elapsed().as_secs_f64());
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.finish(CANCELED);
    }
}

enum Direction {
    Uncounted,
    Received(Arc<Grpc>, usize),
    Sent(Call),
}

/// A body whose gRPC messages are counted as they pass.
pub struct Counted<B> {
    inner: B,
    direction: Direction,
    frames: FrameReader,
    /// Given to whoever reads the body, in place of it.
    refusal: Option<Status>,
    lost: Option<BoxFuture<'static, ()>>,
    bytes_max: usize,
    /// What there is to say about the end is said.
    ended: bool,
}

impl<B> Counted<B> {
    fn new(inner: B, direction: Direction) -> Counted<B> {
        Counted {
            inner,
            direction,
            frames: FrameReader::default(),
            refusal: None,
            lost: None,
            bytes_max: usize::MAX,
            ended: false,
        }
    }

    fn uncounted(inner: B) -> Counted<B> {
        Counted::new(inner, Direction::Uncounted)
    }

    /// What is wrong with a request that ends here.
    fn cut_short(&self) -> Option<Status> {
        match &self.direction {
            Direction::Received(_, method) if !self.ended => self.frames.cut_short(METHODS[*method].2),
            _ => None,
        }
    }

    fn count(&mut self, frame: &Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            let (messages, bytes) = self.frames.read(data);
            let (grpc, method, sent) = match &self.direction {
                Direction::Uncounted => return,
                Direction::Received(grpc, method) => (grpc, *method, false),
                Direction::Sent(call) => (&call.grpc, call.method, true),
            };
            let method = &grpc.methods[method];
            let (counter, total) =
                if sent { (&method.sent, &grpc.sent_bytes) } else { (&method.received, &grpc.received_bytes) };
            counter.inc_by(messages);
            total.inc_by(bytes);
        } else if let (Some(trailers), Direction::Sent(call)) = (frame.trailers_ref(), &mut self.direction) {
            call.finish_by(trailers);
        }
    }
}

impl<B> Body for Counted<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = self.get_mut();
        if let Some(status) = this.refusal.take() {
            return Poll::Ready(Some(Err(status.into())));
        }
        if let Some(lost) = &mut this.lost
            && lost.as_mut().poll(cx).is_ready()
        {
            this.lost = None;
            return Poll::Ready(Some(Err(status::no_leader().into())));
        }
        let frame = match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            None => {
                let cut_short = this.cut_short();
                this.ended = true;
                return Poll::Ready(cut_short.map(|status| Err(status.into())));
            }
            other => return Poll::Ready(other.map(|frame| frame.map_err(Into::into))),
        };
        this.count(&frame);
        match this.frames.largest {
            found if found > this.bytes_max => {
                Poll::Ready(Some(Err(status::message_too_large(found, this.bytes_max).into())))
            }
            _ => Poll::Ready(Some(Ok(frame))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.refusal.is_none() && self.inner.is_end_stream() && self.cut_short().is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Follows length-prefixed messages over any cutting into chunks.
#[derive(Debug, Default)]
struct FrameReader {
    /// Bytes of the header read so far: a flag and four bytes of length.
    header_bytes: u8,
    length: u32,
    /// Bytes of the message still to come.
    left: usize,
    /// The longest message announced.
    largest: usize,
    messages: u64,
}

impl FrameReader {
    /// Messages whose header ended in this chunk, and bytes of messages in it.
    fn read(&mut self, mut chunk: &[u8]) -> (u64, u64) {
        let (before, mut bytes) = (self.messages, 0);
        while !chunk.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(chunk.len());
                self.left -= taken;
                bytes += taken as u64;
                chunk = &chunk[taken..];
                continue;
            }
            if self.header_bytes > 0 {
                self.length = self.length << 8 | u32::from(chunk[0]);
            }
            self.header_bytes += 1;
            chunk = &chunk[1..];
            if self.header_bytes == 5 {
                self.messages += 1;
                self.left = self.length as usize;
                self.largest = self.largest.max(self.left);
                (self.header_bytes, self.length) = (0, 0);
            }
        }
        (self.messages - before, bytes)
    }

    /// What a request that ends here is answered with; codes and words are grpc-go's.
    fn cut_short(&self, kind: &str) -> Option<Status> {
        match kind {
            "unary" if self.left > 0 => Some(Status::unknown("unexpected EOF")),
            "unary" if self.messages == 0 => Some(Status::unknown("EOF")),
            _ if self.left > 0 => Some(Status::internal("unexpected EOF")),
            "server_stream" if self.messages == 0 => Some(Status::internal(
                "cardinality violation: received no request message from non-client-streaming RPC",
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_any_chunks() {
        let mut wire = Vec::new();
        for message in [&b"hello"[..], b"", &[7; 300]] {
            wire.push(0);
            wire.extend_from_slice(&(message.len() as u32).to_be_bytes());
            wire.extend_from_slice(message);
        }
        for size in [1, 2, 3, 5, 7, 100, wire.len()] {
            let mut reader = FrameReader::default();
            let total = wire.chunks(size).map(|chunk| reader.read(chunk)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            assert_eq!((total, reader.largest), ((3, 305), 300), "chunks of {size}");
        }
    }

    #[test]
    fn requests_that_end_early() {
        let complaint = |wire: &[u8], kind| {
            let mut reader = FrameReader::default();
            reader.read(wire);
            reader.cut_short(kind).map(|status| (status.code() as i32, status.message().to_owned()))
        };
        let (cut, half_header, whole) = (b"\0\0\0\0\x05ab", b"\0\0", b"\0\0\0\0\x02ab");
        assert_eq!(complaint(cut, "unary"), Some((2, "unexpected EOF".to_owned())));
        assert_eq!(complaint(cut, "bidi_stream"), Some((13, "unexpected EOF".to_owned())));
        assert_eq!(complaint(b"", "unary"), Some((2, "EOF".to_owned())));
        assert_eq!(complaint(half_header, "unary"), Some((2, "EOF".to_owned())));
        assert_eq!(complaint(b"", "bidi_stream"), None);
        assert_eq!(complaint(b"", "server_stream").map(|(code, _)| code), Some(13));
        for kind in ["unary", "server_stream", "bidi_stream"] {
            assert_eq!(complaint(whole, kind), None);
        }
    }
}
