//! The layer through which every gRPC call passes. One without the key costs a look at its headers.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context as TaskContext, Poll},
};

use axum::body::Body;
use futures_util::future::{BoxFuture, Either, ready};
use http::{Request, Response};
use tonic::Status;
use tower::Layer;
use tower_service::Service;

use super::{KEY, Kind, Required, Values, during, held::Held};
use crate::{metrics::grpc::needs_leader, services::Context, status};

#[derive(Clone)]
pub struct RequireLayer(Arc<Context>);

impl RequireLayer {
    pub fn new(context: Context) -> RequireLayer {
        RequireLayer(Arc::new(context))
    }
}

impl<S> Layer<S> for RequireLayer {
    type Service = RequireService<S>;

    fn layer(&self, inner: S) -> RequireService<S> {
        RequireService { inner, context: self.0.clone() }
    }
}

#[derive(Clone)]
pub struct RequireService<S> {
    inner: S,
    context: Arc<Context>,
}

type Answer = Result<Response<Body>, Infallible>;

impl<S, B> Service<Request<B>> for RequireService<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, BoxFuture<'static, Answer>>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(echo) = Values::of(request.headers()) else {
            return Either::Left(self.inner.call(request));
        };
        let (context, kind) = (self.context.clone(), Kind::of(request.uri().path()));
        Either::Right(match Required::parse(&echo) {
            Err(status) => Box::pin(ready(Ok(echoed(status.into_http(), echo)))),
            Ok(required) if kind.is_judged_first() => {
                // The one that is ready goes with the call.
                let fresh = self.inner.clone();
                let inner = std::mem::replace(&mut self.inner, fresh);
                Box::pin(judge_first(context, inner, request, Call { required, kind, echo }))
            }
            Ok(required) => {
                let work = during(required.clone(), self.inner.call(request));
                let call = Call { required, kind, echo };
                Box::pin(async move { work.await.map(|response| call.finish(&context, response)) })
            }
        })
    }
}

async fn judge_first<S, B>(context: Arc<Context>, mut inner: S, request: Request<B>, call: Call) -> Answer
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    // As for any other call: who asks for a leader does not wait for one.
    let leaderless = needs_leader(request.headers()) && context.node.status().leader == 0;
    let judged = if leaderless { Err(status::no_leader()) } else { judge(&context, &call.required).await };
    match judged {
        Err(status) => Ok(echoed(status.into_http(), call.echo)),
        Ok(()) => {
            let response = during(call.required.clone(), inner.call(request)).await?;
            Ok(call.finish(&context, response))
        }
    }
}

async fn judge(context: &Context, required: &Required) -> Result<(), Status> {
    // A learner has nobody to ask, and answers from what it has.
    if !context.node.is_learner() {
        context.linearize().await?;
    }
    required.judge(&context.node)
}

struct Call {
    required: Required,
    kind: Kind,
    echo: Values,
}

impl Call {
    fn finish(self, context: &Context, response: Response<Body>) -> Response<Body> {
        let response = if self.kind.is_held() {
            response.map(|body| Held::hold(body, context.node.clone(), self.required, self.kind))
        } else {
            response
        };
        echoed(response, self.echo)
    }
}

fn echoed(mut response: Response<Body>, echo: Values) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(KEY, echo.first);
    echo.more.into_iter().for_each(|value| {
        headers.append(KEY, value);
    });
    response
}
