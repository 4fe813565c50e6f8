//! A server that knows one user and little else, and remembers who asked with which token.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State as Shared,
    http::{HeaderMap, HeaderValue, Request, Response},
};
use client::{Kind, pb};
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use tonic::Code;

type Frame = Result<http_body::Frame<Bytes>, Infallible>;

pub(super) struct Fake {
    pub address: String,
    state: Arc<Mutex<State>>,
}

pub(super) struct State {
    /// What `Authenticate` takes; with `None` authentication is off.
    pub password: Option<&'static str>,
    /// What every other call is answered with, whatever its token.
    pub refusal: Option<Kind>,
    /// Of all logins that went well, the last one's token holds.
    pub logins: usize,
    pub refused_logins: usize,
    pub holds: bool,
    /// Path and token of every other call.
    pub calls: Vec<(String, Option<String>)>,
}

impl Fake {
    pub(super) async fn start(password: Option<&'static str>) -> Fake {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = State { password, refusal: None, logins: 0, refused_logins: 0, holds: false, calls: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Fake { address, state }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn logins(&self) -> usize {
        self.state().logins
    }

    pub(super) fn refused_logins(&self) -> usize {
        self.state().refused_logins
    }

    pub(super) fn tokens(&self) -> Vec<Option<String>> {
        self.state().calls.iter().map(|call| call.1.clone()).collect()
    }
}

async fn answer(Shared(state): Shared<Arc<Mutex<State>>>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let token = request.headers().get("token").map(|token| token.to_str().unwrap().to_owned());
    if path.ends_with("/Authenticate") {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let request = pb::AuthenticateRequest::decode(&body[5..]).unwrap();
        return state.lock().unwrap().authenticate(&request);
    }
    let refusal = state.lock().unwrap().judge(&path, token);
    match (path.rsplit('/').next().unwrap(), refusal) {
        ("Watch", refusal) => watch(refusal),
        (_, Some(refusal)) => refuse(refusal.code(), refusal.message()),
        ("LeaseKeepAlive", None) => endless(&pb::LeaseKeepAliveResponse { id: 7, ttl: 60, ..Default::default() }),
        (_, None) => reply(&pb::RangeResponse::default()),
    }
}

impl State {
    fn authenticate(&mut self, request: &pb::AuthenticateRequest) -> Response<Body> {
        let refusal = match self.password {
            None => Kind::AuthNotEnabled,
            Some(password) if password != request.password => Kind::AuthFailed,
            Some(_) => {
                self.logins += 1;
                self.holds = true;
                let token = format!("token.{}", self.logins);
                return reply(&pb::AuthenticateResponse { token, ..Default::default() });
            }
        };
        self.refused_logins += 1;
        refuse(refusal.code(), refusal.message())
    }

    fn judge(&mut self, path: &str, token: Option<String>) -> Option<Kind> {
        self.calls.push((path.to_owned(), token.clone()));
        let good = format!("token.{}", self.logins);
        match token {
            _ if self.refusal.is_some() => self.refusal,
            _ if self.password.is_none() => None,
            None => Some(Kind::UserEmpty),
            Some(token) if self.holds && token == good => None,
            Some(_) => Some(Kind::InvalidAuthToken),
        }
    }
}

/// etcd refuses a watch in an answer that names no watch.
fn watch(refusal: Option<Kind>) -> Response<Body> {
    let header = Some(pb::ResponseHeader { revision: 5, ..Default::default() });
    let created = pb::WatchResponse { header, created: true, watch_id: 1, ..Default::default() };
    let Some(kind) = refusal else { return endless(&created) };
    let cancel_reason = format!("rpc error: code = {:?} desc = {}", kind.code(), kind.message());
    endless(&pb::WatchResponse { watch_id: -1, canceled: true, cancel_reason, ..created })
}

fn refuse(code: Code, message: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    response.headers_mut().extend(status(code, message));
    grpc(response)
}

fn reply(message: &impl Message) -> Response<Body> {
    let frames: Vec<Frame> = vec![data(message), Ok(http_body::Frame::trailers(status(Code::Ok, "")))];
    grpc(Response::new(Body::new(StreamBody::new(stream::iter(frames)))))
}

fn endless(message: &impl Message) -> Response<Body> {
    let frames = stream::iter([data(message)]).chain(stream::pending());
    grpc(Response::new(Body::new(StreamBody::new(frames))))
}

fn data(message: &impl Message) -> Frame {
    let bytes = message.encode_to_vec();
    let prefix = (bytes.len() as u32).to_be_bytes();
    Ok(http_body::Frame::data([&[0], &prefix[..], &bytes].concat().into()))
}

fn status(code: Code, message: &str) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert("grpc-status", (code as i32).into());
    map.insert("grpc-message", message.parse().unwrap());
    map
}

fn grpc(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}
