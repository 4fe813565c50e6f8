//! The calls whose answers are sent without being decoded, ranges and watches, and puts, which are as frequent. All other
//! calls go to the generated services.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context as TaskContext, Poll},
    time::Instant,
};

use mvcc::{RangeResult, check};
use prost::Message;
use proto::etcdserverpb::{PutRequest, PutResponse, RangeRequest, ResponseHeader, WatchRequest};
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    codec::EncodeBuf,
    codegen::Service,
    server::{Grpc, NamedService, StreamingService, UnaryService},
};

use super::{
    Context, WatchService,
    watch::{WatchReply, WatchSession},
};
use crate::{
    codec::{Wire, WireCodec},
    metrics::server::Op,
    status,
    users::Permit,
};

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

/// As the generated services are configured.
fn grpc<E: Wire, D: Message + Default + Send + 'static>(context: &Context) -> Grpc<WireCodec<E, D>> {
    Grpc::new(WireCodec::default()).apply_max_message_size_config(Some(context.message_bytes_max()), None)
}

/// `KV.Range` and `KV.Put`, in front of the generated KV service.
#[derive(Clone)]
pub(crate) struct HotKv<S> {
    pub context: Context,
    pub rest: S,
}

impl<S, B> Service<http::Request<B>> for HotKv<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Error: Into<axum::BoxError> + Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.rest.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Answer {
        let context = self.context.clone();
        match request.uri().path() {
            "/etcdserverpb.KV/Range" => Box::pin(async move {
                let mut grpc = grpc::<RangeReply, RangeRequest>(&context);
                Ok(grpc.unary(Range(context), request).await)
            }),
            "/etcdserverpb.KV/Put" => Box::pin(async move {
                let mut grpc = grpc::<PutResponse, PutRequest>(&context);
                Ok(grpc.unary(Put(context), request).await)
            }),
            _ => Box::pin(self.rest.call(request)),
        }
    }
}

impl<S> NamedService for HotKv<S> {
    const NAME: &'static str = "etcdserverpb.KV";
}

struct RangeReply {
    result: RangeResult,
    header: ResponseHeader,
}

impl Wire for RangeReply {
    fn write(self, out: &mut EncodeBuf<'_>) {
        self.result.encode(Some(&self.header), out);
    }
}

struct Range(Context);

impl UnaryService<RangeRequest> for Range {
    type Response = RangeReply;
    type Future = Pin<Box<dyn Future<Output = Result<Response<RangeReply>, Status>> + Send>>;

    fn call(&mut self, request: Request<RangeRequest>) -> Self::Future {
        let context = self.0.clone();
        Box::pin(async move {
            let result = context.range(request.get_ref()).await?;
            let header = context.header_at(result.revision);
            Ok(Response::new(RangeReply { result, header }))
        })
    }
}

struct Put(Context);

impl UnaryService<PutRequest> for Put {
    type Response = PutResponse;
    type Future = Pin<Box<dyn Future<Output = Result<Response<PutResponse>, Status>> + Send>>;

    fn call(&mut self, request: Request<PutRequest>) -> Self::Future {
        let context = self.0.clone();
        Box::pin(async move { context.put(request.into_inner()).await.map(Response::new) })
    }
}

impl Wire for PutResponse {
    fn write(self, out: &mut EncodeBuf<'_>) {
        proto::codec::encode(&self, out);
    }
}

impl Context {
    pub(crate) async fn range(&self, request: &RangeRequest) -> Result<RangeResult, Status> {
        check::range(request).map_err(|e| status::from_check(&e))?;
        let begin = Instant::now();
        let result = self.read_range(request).await;
        self.metrics.server.request_duration.observe(Op::Range, result.is_ok(), begin.elapsed().as_secs_f64());
        result
    }

    async fn read_range(&self, request: &RangeRequest) -> Result<RangeResult, Status> {
        self.settle_range(request).await?;
        let permit = if self.node.users().enabled() {
            self.permit(|users, who| users.may_read(who, &request.key, &request.range_end)).await?
        } else {
            Permit::Off
        };
        let result = self.range_settled(request).await;
        self.check_still(permit)?;
        result
    }

    /// Whether this member can read, for its own ends: whoever it is.
    pub(crate) async fn probe(&self, request: &RangeRequest) -> Result<RangeResult, Status> {
        self.settle_range(request).await?;
        self.range_settled(request).await
    }

    async fn settle_range(&self, request: &RangeRequest) -> Result<(), Status> {
        if !request.serializable && self.node.is_learner() {
            return Err(status::not_supported_for_learner());
        }
        self.settle(!request.serializable).await
    }

    async fn range_settled(&self, request: &RangeRequest) -> Result<RangeResult, Status> {
        if !is_large(request) {
            return self.range_now(request);
        }
        let (context, request) = (self.clone(), request.clone());
        let read = self.pool.spawn(async move { context.range_now(&request) });
        read.await.map_err(|e| status::unknown(e.to_string()))?
    }

    /// Reads what this member has.
    pub(super) fn range_now(&self, request: &RangeRequest) -> Result<RangeResult, Status> {
        let begin = Instant::now();
        let result = self.node.store().range(request);
        self.metrics.server.observe_range(result.is_ok(), begin.elapsed().as_secs_f64());
        result.map_err(|e| status::from_mvcc(&e))
    }
}

/// Ranges of more keys than this are read on the shared pool.
const SMALL_RANGE_KEYS: i64 = 100;

fn is_large(request: &RangeRequest) -> bool {
    !request.range_end.is_empty() && (request.limit == 0 || request.limit > SMALL_RANGE_KEYS)
}

/// `Watch.Watch`.
#[derive(Clone)]
pub(crate) struct HotWatch(pub WatchService);

impl Service<http::Request<Body>> for HotWatch {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let service = self.0.clone();
        Box::pin(async move {
            let mut grpc = grpc::<WatchReply, WatchRequest>(&service.0);
            Ok(grpc.streaming(Watch(service), request).await)
        })
    }
}

impl NamedService for HotWatch {
    const NAME: &'static str = "etcdserverpb.Watch";
}

struct Watch(WatchService);

impl StreamingService<WatchRequest> for Watch {
    type Response = WatchReply;
    type ResponseStream = WatchSession;
    type Future = std::future::Ready<Result<Response<WatchSession>, Status>>;

    fn call(&mut self, request: Request<Streaming<WatchRequest>>) -> Self::Future {
        std::future::ready(self.0.watch(request))
    }
}
