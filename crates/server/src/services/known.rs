//! Turns away calls of methods that a service does not have, in etcd's words.

use std::{
    collections::HashSet,
    convert::Infallible,
    future::{Ready, ready},
    sync::Arc,
    task::{Context as TaskContext, Poll},
};

use futures_util::future::Either;
use tonic::{body::Body, codegen::Service, server::NamedService};

use crate::status;

/// A service, and the paths of the methods its messages' descriptors name.
#[derive(Clone)]
pub(crate) struct Known<S> {
    service: S,
    paths: Arc<HashSet<String>>,
}

impl<S: NamedService> Known<S> {
    pub(crate) fn new(service: S) -> Known<S> {
        let found = proto::pool().get_service_by_name(S::NAME);
        let methods = found.iter().flat_map(|s| s.methods().collect::<Vec<_>>());
        let paths = methods.map(|m| format!("/{}/{}", S::NAME, m.name())).collect();
        Known { service, paths: Arc::new(paths) }
    }
}

impl<S, B> Service<http::Request<B>> for Known<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>, Error = Infallible>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<http::Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if self.paths.contains(request.uri().path()) {
            Either::Left(self.service.call(request))
        } else {
            Either::Right(ready(Ok(status::unknown_method(request.uri().path()))))
        }
    }
}

impl<S: NamedService> NamedService for Known<S> {
    const NAME: &'static str = S::NAME;
}
