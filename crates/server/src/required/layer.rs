//! The layer through which every gRPC call passes, where what is noted of it goes with its task. A call that requires nothing
//! and is nobody's costs a look at its headers.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context as TaskContext, Poll, ready as ready_or_return},
};

use futures_util::future::{BoxFuture, ready};
use http::{Request, Response};
use pin_project_lite::pin_project;
use tonic::Status;
use tower::Layer;
use tower_service::Service;

use super::{
    KEY, Kind, Required, Values,
    held::{AnswerBody, Held},
};
use crate::{
    call::{During, Noted, during},
    metrics::grpc::needs_leader,
    services::Context,
    status,
};

#[derive(Clone)]
pub(crate) struct RequireLayer(Context);

impl RequireLayer {
    pub(crate) fn new(context: Context) -> RequireLayer {
        RequireLayer(context)
    }
}

impl<S> Layer<S> for RequireLayer {
    type Service = RequireService<S>;

    fn layer(&self, inner: S) -> RequireService<S> {
        RequireService { inner, context: self.0.clone() }
    }
}

#[derive(Clone)]
pub(crate) struct RequireService<S> {
    inner: S,
    context: Context,
}

type Answer<R> = Result<Response<R>, Infallible>;

impl<S, B, R> Service<Request<B>> for RequireService<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
    R: AnswerBody,
{
    type Response = Response<R>;
    type Error = Infallible;
    type Future = RequireFuture<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let token = self.context.token_of(request.headers());
        let Some(echo) = Values::of(request.headers()) else {
            return match token {
                None => RequireFuture::Plain { work: self.inner.call(request) },
                token => {
                    let noted = Noted { required: None, token };
                    RequireFuture::Later { work: during(noted, self.inner.call(request)), call: None }
                }
            };
        };
        let call = Call { context: self.context.clone(), kind: Kind::of(request.uri().path()), echo };
        match Required::parse(&call.echo) {
            Err(status) => RequireFuture::First { answer: Box::pin(ready(Ok(echoed(status.into_http(), call.echo)))) },
            Ok(required) if call.kind.is_judged_first() => {
                // The one that is ready goes with the call.
                let fresh = self.inner.clone();
                let inner = std::mem::replace(&mut self.inner, fresh);
                let noted = Noted { required: None, token };
                RequireFuture::First { answer: Box::pin(during(noted, judge_first(inner, request, required, call))) }
            }
            Ok(required) => {
                let noted = Noted { required: Some(required), token };
                RequireFuture::Later { work: during(noted, self.inner.call(request)), call: Some(call) }
            }
        }
    }
}

pin_project! {
    #[project = Projected]
    pub enum RequireFuture<F, R> {
        Plain { #[pin] work: F },
        First { answer: BoxFuture<'static, Answer<R>> },
        Later { #[pin] work: During<F>, call: Option<Call> },
    }
}

impl<F, R> Future for RequireFuture<F, R>
where
    F: Future<Output = Answer<R>>,
    R: AnswerBody,
{
    type Output = Answer<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Answer<R>> {
        match self.project() {
            Projected::Plain { work } => work.poll(cx),
            Projected::First { answer } => answer.as_mut().poll(cx),
            Projected::Later { mut work, call } => {
                let Ok(response) = ready_or_return!(work.as_mut().poll(cx));
                let (required, call) = (work.required(), call.take());
                Poll::Ready(Ok(match call {
                    Some(call) => call.finish(required, response),
                    None => response,
                }))
            }
        }
    }
}

async fn judge_first<S, B, R>(mut inner: S, request: Request<B>, mut required: Required, call: Call) -> Answer<R>
where
    S: Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: AnswerBody,
{
    // As for any other call: who asks for a leader does not wait for one.
    let leaderless = needs_leader(request.headers()) && call.context.node.status().leader == 0;
    let judged = if leaderless { Err(status::no_leader()) } else { judge(&call.context, &mut required).await };
    match judged {
        Err(status) => Ok(echoed(status.into_http(), call.echo)),
        Ok(()) => {
            let noted = Noted { required: Some(required), ..crate::call::noted() };
            let response = during(noted, inner.call(request)).await?;
            Ok(call.finish(Some(required), response))
        }
    }
}

async fn judge(context: &Context, required: &mut Required) -> Result<(), Status> {
    // Who may not ask learns nothing of features.
    context.require_login().await?;
    // A learner has nobody to ask, and answers from what it has.
    if !context.node.is_learner() {
        context.linearize().await?;
    }
    required.judge(&context.node)
}

pub(crate) struct Call {
    context: Context,
    kind: Kind,
    echo: Values,
}

impl Call {
    fn finish<R: AnswerBody>(self, required: Option<Required>, response: Response<R>) -> Response<R> {
        let response = match required.filter(|_| self.kind.is_held()) {
            Some(required) => response.map(|body| Held::hold(body, self.context.node.clone(), required, self.kind)),
            None => response,
        };
        echoed(response, self.echo)
    }
}

fn echoed<R>(mut response: Response<R>, echo: Values) -> Response<R> {
    let headers = response.headers_mut();
    headers.insert(KEY, echo.first);
    echo.more.into_iter().for_each(|value| {
        headers.append(KEY, value);
    });
    response
}
