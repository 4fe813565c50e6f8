//! Where a request on a client port goes: gRPC to the services, all else to the pages.
//!
//! gRPC passes by what guards pages (origins, host names), as in etcd: no browser can call it. Calls of KV, which are most,
//! pass by the router too, which puts every step of its way into a box.

use std::convert::Infallible;

use axum::Router;
use futures_util::future::Either;
use http::{Request, Response, Version, header};
use http_body_util::Either as EitherBody;
use hyper::body::Incoming;
use proto::etcdserverpb::kv_server::KvServer;
use tower::util::{Oneshot, ServiceExt};
use tower_service::Service;

use crate::{
    metrics::grpc::{Counted, GrpcService},
    required::RequireService,
    services::{Known, KvService, hot::HotKv},
};

pub(crate) type Kv = GrpcService<RequireService<Known<HotKv<KvServer<KvService>>>>>;

/// What serves a port. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Front {
    grpc: Option<Grpc>,
    pages: Router,
}

#[derive(Clone)]
struct Grpc {
    kv: Kv,
    rest: Router,
}

impl Front {
    /// A port of pages alone.
    pub(crate) fn pages(pages: Router) -> Front {
        Front { grpc: None, pages }
    }

    /// `rest` has all services, for whoever speaks gRPC; `pages` is for all others.
    pub(crate) fn new(kv: Kv, rest: Router, pages: Router) -> Front {
        Front { grpc: Some(Grpc { kv, rest }), pages }
    }
}

type Body = EitherBody<Counted<tonic::body::Body>, axum::body::Body>;
type KvFuture = <Kv as Service<Request<Incoming>>>::Future;
type RouterFuture = Oneshot<Router, Request<Incoming>>;

impl hyper::service::Service<Request<Incoming>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = FrontFuture;

    fn call(&self, request: Request<Incoming>) -> FrontFuture {
        let inner = match self.grpc.as_ref().filter(|_| is_grpc(&request)) {
            // Always ready.
            Some(grpc) if request.uri().path().starts_with("/etcdserverpb.KV/") => {
                Either::Left(grpc.kv.clone().call(request))
            }
            Some(grpc) => Either::Right(grpc.rest.clone().oneshot(request)),
            None => Either::Right(self.pages.clone().oneshot(request)),
        };
        FrontFuture { inner }
    }
}

fn is_grpc(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    request.version() == Version::HTTP_2 && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

pin_project_lite::pin_project! {
    pub struct FrontFuture {
        #[pin]
        inner: Either<KvFuture, RouterFuture>,
    }
}

impl Future for FrontFuture {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        match self.project().inner.as_pin_mut() {
            Either::Left(kv) => kv.poll(cx).map_ok(|response| response.map(EitherBody::Left)),
            Either::Right(router) => router.poll(cx).map_ok(|response| response.map(EitherBody::Right)),
        }
    }
}
