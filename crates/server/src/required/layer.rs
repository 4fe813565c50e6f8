//! The layer through which every gRPC call passes. One without the key costs a look at its headers.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context as TaskContext, Poll},
};

use axum::body::Body;
use futures_util::future::{BoxFuture, Either};
use http::{HeaderValue, Request, Response};
use tonic::Status;
use tower::Layer;
use tower_service::Service;

use super::{KEY, Kind, Required, during, held::Held};
use crate::services::Context;

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
        if !request.headers().contains_key(KEY) {
            return Either::Left(self.inner.call(request));
        }
        // The one that is ready goes with the call.
        let fresh = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, fresh);
        Either::Right(Box::pin(answer(self.context.clone(), inner, request)))
    }
}

async fn answer<S, B>(context: Arc<Context>, inner: S, request: Request<B>) -> Answer
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    let echo: Vec<HeaderValue> = request.headers().get_all(KEY).iter().cloned().collect();
    let mut response = match serve(&context, inner, request).await {
        Ok(answer) => answer?,
        Err(status) => status.into_http(),
    };
    for value in echo {
        response.headers_mut().append(KEY, value);
    }
    Ok(response)
}

async fn serve<S, B>(context: &Context, mut inner: S, request: Request<B>) -> Result<Answer, Status>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    let required = Required::parse(request.headers())?;
    let kind = Kind::of(request.uri().path());
    if kind.is_judged_first() {
        // A learner has nobody to ask, and answers from what it has.
        if !context.node.is_learner() {
            context.linearize().await?;
        }
        required.judge(&context.node)?;
    }
    let answer = during(required.clone(), inner.call(request)).await;
    if !kind.is_held() {
        return Ok(answer);
    }
    let hold = |body| Held::hold(body, context.node.clone(), required, kind);
    Ok(answer.map(|response| response.map(hold)))
}
