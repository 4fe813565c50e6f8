//! HTTP around the answers: single, bulk with its tag, and a stream that says when to ask again.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Path, Request, State, rejection::BytesRejection},
    http::{HeaderMap, Response, StatusCode, header},
    middleware::{self, Next},
    response::{
        IntoResponse,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use futures_util::{Stream, StreamExt};
use tokio::{net::TcpListener, sync::watch};
use tokio_stream::wrappers::WatchStream;

use crate::{
    evaluate::{Answer, bulk, single},
    tls::{Tls, TlsListener},
    token::Tokens,
    view::View,
};

pub const EVENTS: &str = "/ofrep/v1/events";
/// Contexts are small.
const BODY_BYTES_MAX: usize = 256 * 1024;

type Views = watch::Receiver<Arc<View>>;

/// With tokens, only for those who have one.
pub fn router(views: Views, tokens: Option<Tokens>) -> Router {
    let router = Router::new()
        .route("/ofrep/v1/evaluate/flags/{*key}", post(evaluate_one))
        .route("/ofrep/v1/evaluate/flags", post(evaluate_all))
        .route(EVENTS, get(events))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(views);
    match tokens {
        Some(tokens) => router.layer(middleware::from_fn_with_state(Arc::new(tokens), authenticate)),
        None => router,
    }
}

/// Serves until it fails.
pub async fn serve(listener: TcpListener, router: Router) -> io::Result<()> {
    axum::serve(listener, router).await
}

pub async fn serve_tls(listener: TcpListener, tls: Tls, router: Router) -> io::Result<()> {
    axum::serve(TlsListener::start(listener, tls)?, router).await
}

async fn authenticate(State(tokens): State<Arc<Tokens>>, request: Request, next: Next) -> Response<Body> {
    if tokens.allow(request.headers()) {
        return next.run(request).await;
    }
    let details = "a bearer token or X-API-Key that is good here is needed";
    let mut response = respond(Answer::new(401, serde_json::json!({"errorDetails": details})));
    response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    response
}

type Read = Result<Bytes, BytesRejection>;

async fn evaluate_one(State(views): State<Views>, Path(key): Path<String>, body: Read) -> Response<Body> {
    let view = views.borrow().clone();
    respond(body.map_or_else(|error| not_read(&error), |body| single(&view, &key, &body)))
}

async fn evaluate_all(State(views): State<Views>, headers: HeaderMap, body: Read) -> Response<Body> {
    let view = views.borrow().clone();
    let tags: Vec<&str> = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|tag| tag.to_str().ok()).collect();
    let tags = (!tags.is_empty()).then(|| tags.join(","));
    respond(body.map_or_else(|error| not_read(&error), |body| bulk(&view, &body, tags.as_deref())))
}

fn not_read(error: &BytesRejection) -> Answer {
    let details = format!("the body was not read ({}); it may have {BODY_BYTES_MAX} bytes", error.body_text());
    Answer::new(error.status().as_u16(), serde_json::json!({"errorDetails": details}))
}

/// One event for each change after the stream began; it says nothing but that there is something to ask for. Who comes back and
/// names the last one it saw gets one at once if there was another since, here or at a server before this one.
async fn events(
    State(mut views): State<Views>,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    // What is there already is no change.
    let now = views.borrow_and_update().id();
    let missed = headers.get("last-event-id").is_some_and(|seen| seen.as_bytes() != now.as_bytes());
    let missed = futures_util::stream::iter(missed.then(|| Ok(refetch(&now))));
    let changes = WatchStream::from_changes(views).map(|view| Ok(refetch(&view.id())));
    // The head of the answer goes out with the first bytes: without any, clients would take the stream for one that does not open.
    let opened = futures_util::stream::once(async { Ok(Event::default().id(now).comment("open")) });
    Sse::new(opened.chain(missed).chain(changes)).keep_alive(KeepAlive::new().interval(Duration::from_secs(30)))
}

fn refetch(id: &str) -> Event {
    Event::default().event("message").id(id).data(r#"{"type":"refetchEvaluation"}"#)
}

fn respond(Answer { status, body, etag }: Answer) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match body {
        Some(body) => ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response(),
        None => ().into_response(),
    };
    *response.status_mut() = status;
    if let Some(etag) = etag.and_then(|etag| etag.parse().ok()) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response
}
