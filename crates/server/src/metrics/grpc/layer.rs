//! The layer around all services.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower::Layer;
use tower_service::Service;

use super::{
    Grpc, Guard,
    body::{Counted, Direction},
    call::Call,
    deadline::{Deadline, exceeded},
    unpack::Packing,
    words::reword,
};
use crate::metrics::methods::UNKNOWN;

/// Counts every call of a method that etcd has; other paths pass untouched.
#[derive(Clone)]
pub struct GrpcLayer {
    grpc: Arc<Grpc>,
    guard: Arc<Guard>,
}

impl GrpcLayer {
    pub fn new(grpc: Arc<Grpc>, guard: Guard) -> GrpcLayer {
        GrpcLayer { grpc, guard: Arc::new(guard) }
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
    guard: Arc<Guard>,
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

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let Some(method) = self.grpc.by_path.get(request.uri().path()).copied() else {
            let inner = self.inner.call(request.map(Counted::uncounted));
            return GrpcFuture { inner, call: None, deadline: None };
        };
        let call = Call::start(&self.grpc, method, request.headers(), self.guard.slow);
        let incoming = Direction::Received(self.grpc.clone(), method);
        let packing = Packing::take(request.headers_mut());
        let (packing, refusal) = match packing {
            Ok(packing) => (packing, self.guard.refusal(method, request.headers())),
            Err(refusal) => (Packing::None, Some(refusal)),
        };
        let (deadline, refusal) = match Deadline::of(request.headers(), call.started) {
            Ok(deadline) => (deadline, refusal),
            Err(malformed) => (None, Some(malformed)),
        };
        let lost = self.guard.lost(method, request.headers());
        let bytes_max = self.guard.message_bytes_max;
        let request =
            request.map(|body| Counted::new(body, incoming).judged(refusal, lost, bytes_max).unpacked(packing));
        GrpcFuture { inner: self.inner.call(request), call: Some(call), deadline }
    }
}

pin_project! {
    pub struct GrpcFuture<F> {
        #[pin]
        inner: F,
        call: Option<Call>,
        deadline: Option<Deadline>,
    }
}

impl<F, R, E> Future for GrpcFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<Counted<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = match (this.inner.poll(cx), this.deadline.as_mut()) {
            (Poll::Ready(response), _) => response,
            (Poll::Pending, None) => return Poll::Pending,
            (Poll::Pending, Some(deadline)) => {
                ready!(deadline.poll(cx));
                let response = exceeded().into_http::<()>();
                if let Some(mut call) = this.call.take() {
                    call.finish_by(response.headers());
                }
                return Poll::Ready(Ok(response.map(|()| Counted::empty())));
            }
        };
        let (call, deadline) = (this.call.take(), this.deadline.take());
        Poll::Ready(match (response, call) {
            (Ok(mut response), Some(mut call)) => {
                call.log_if_slow();
                reword(response.headers_mut(), call.method);
                // An error before the first message puts the status into the headers.
                call.finish_by(response.headers());
                Ok(response.map(|body| Counted::new(body, Direction::Sent(call)).until(deadline)))
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
