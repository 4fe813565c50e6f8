//! One request from first byte to last: who, what, may they, do it, count it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::{
    discovery, method, name,
    openapi::{self, Document},
    patch::{self, Patch},
    rest::{self, Api, Call, Intent},
    reviews::Review,
    route::{self, OpenApi, Route, Target},
    serve::{
        accept,
        answer::{self, Body, Warnings},
        auth::{self, Peer, Tokens},
        compress,
        query::Query,
    },
    status::{Result, Status},
};

const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
const BODY_WAIT_MAX: Duration = Duration::from_secs(60);
const BODY_BYTES_READ_MAX: usize = 10 * BODY_BYTES_MAX;
/// The Kubernetes whose API this is, for clients that choose their ways by it.
const MINOR: &str = "33";

/// What health is made of, and can be asked about alone.
const HEALTH_PARTS: [&str; 2] = ["etcd", "ping"];

pub struct App {
    pub api: Api,
    pub tokens: Tokens,
    pub address: String,
}

impl App {
    pub async fn handle(self: Arc<Self>, peer: Peer, request: Request<Incoming>) -> Response<Body> {
        let began = Instant::now();
        let route = route::parse(&crate::serve::query::decode_path(request.uri().path()));
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let verb = method::verb(request.method(), &route, &query);
        let query = query.for_verb(verb);
        let labels = match &route {
            Route::Resource(target) => (target.group.clone(), target.plural.clone()),
            _ => Default::default(),
        };
        let mut warnings = Warnings::default();
        let answered = self.answer(peer, request, &route, query, verb, &mut warnings).await;
        let mut response = answered.unwrap_or_else(|status| answer::refusal(&status));
        warnings.write(&mut response);
        if let Ok(id) = HeaderValue::from_str(&name::uid()) {
            response.headers_mut().insert("audit-id", id);
        }
        self.count(verb, &labels, &response, began);
        response
    }

    fn count(&self, verb: &str, (group, resource): &(String, String), response: &Response<Body>, began: Instant) {
        // What nobody serves is counted as one, or strangers could fill the memory with names.
        let known = response.status() != 404 || resource.is_empty();
        let resource = if known { resource.as_str() } else { "unknown" };
        let group = if known { group.as_str() } else { "" };
        let metrics = &self.api.metrics;
        metrics.requests.with_label_values(&[verb, group, resource, response.status().as_str()]).inc();
        if verb != "watch" {
            metrics.seconds.with_label_values(&[verb, group, resource]).observe(began.elapsed().as_secs_f64());
        }
    }

    async fn answer(
        &self,
        peer: Peer,
        request: Request<Incoming>,
        route: &Route,
        query: Query,
        verb: &'static str,
        warnings: &mut Warnings,
    ) -> Result<Response<Body>> {
        let user = auth::impersonate(self.tokens.authenticate(peer.standing(), request.headers())?, request.headers())?;
        auth::authorize(&user, request.method(), request.uri().path(), route, verb)?;
        let target = match route {
            Route::Resource(target) => target,
            _ => {
                let answer = self.other(route, &request, &query).await?;
                return method::check_other(request.method(), route).map(|()| answer);
            }
        };
        let review = Review::of(target);
        match review {
            Some(review) => method::check_review(review, target, verb)?,
            None => method::check(&*self.api.resource(target)?, target, verb)?,
        }
        let form = accept::form(request.headers())?;
        let (parts, body) = request.into_parts();
        let call = Call { user, query, form, headers: parts.headers, body: collect_in_time(body).await? };
        if let Some(review) = review {
            return Ok(answer::json(201, &review.answer(&call.user, rest::document(&call, &review.form())?)?));
        }
        if let Some(text) = self.api.resource(target).ok().and_then(|resource| resource.deprecation.clone()) {
            warnings.add(text);
        }
        self.object(target, verb, &call, warnings).await
    }

    async fn object(
        &self,
        target: &Target,
        verb: &str,
        call: &Call,
        warnings: &mut Warnings,
    ) -> Result<Response<Body>> {
        let api = &self.api;
        let resource = api.resource(target)?;
        method::check(&resource, target, verb)?;
        let mut said = Warnings::default();
        let mut created = verb == "create";
        let done = match verb {
            "get" => api.get(target, call).await?,
            "list" => api.list(target, call).await?,
            "watch" => return Ok(answer::stream(api.watch(target, call).await?)),
            "create" => answer::print(&api.create(target, call, &mut said).await?),
            "update" => {
                answer::print(&api.update(target, &Intent::replace(&resource, target, call)?, call, &mut said).await?)
            }
            "patch" if patch::is_apply(call.content_type()) => {
                let (made, object) = api.apply(target, call, &mut said).await?;
                created = made;
                answer::print(&object)
            }
            "patch" => {
                let patch =
                    Patch::parse(call.content_type(), &call.body, resource.strategic, call.query.field_validation()?)?;
                answer::print(&api.update(target, &Intent::Patch(patch), call, &mut said).await?)
            }
            "delete" => answer::print(&api.delete(target, call, &mut said).await?),
            "deletecollection" => answer::print(&api.delete_collection(target, call, &mut said).await?),
            _ => return Err(Status::method_not_allowed(&resource.name(), verb)),
        };
        said.texts().iter().for_each(|text| warnings.add(text));
        Ok(compress::json(if created { 201 } else { 200 }, done, &call.headers).await)
    }

    async fn other(&self, route: &Route, request: &Request<Incoming>, query: &Query) -> Result<Response<Body>> {
        let catalog = self.api.catalog.borrow().clone();
        let headers = request.headers();
        match route {
            Route::Version => Ok(answer::json(200, &version())),
            Route::Health(path) => self.health(path, query).await,
            Route::Metrics => Ok(answer::text(200, self.api.metrics.text())),
            Route::Discovery(asked @ (route::Discovery::Core | route::Discovery::Groups))
                if accept::aggregated(headers) =>
            {
                let all = discovery::aggregated(&catalog, *asked == route::Discovery::Core);
                let mut response = answer::bytes_of(200, discovery::AGGREGATED, all.to_string().into());
                response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
                Ok(response)
            }
            Route::Discovery(asked) => Ok(answer::json(200, &discovery::legacy(&catalog, asked, &self.address)?)),
            Route::OpenApi(OpenApi::V2) => {
                let documents = catalog.documents();
                if accept::names(headers, &openapi::PROTOBUF_MEDIA) {
                    return Ok(document(&documents.v2_protobuf, request));
                }
                accept::form(headers)?;
                Ok(document(&documents.v2, request))
            }
            Route::OpenApi(OpenApi::V3Index) => Ok(document(&catalog.documents().index, request)),
            Route::OpenApi(OpenApi::V3(path)) => {
                let found = catalog.documents().v3.get(path).ok_or_else(Status::no_page)?;
                match query.get("hash") {
                    Some(hash) if hash != found.hash => Ok(moved(path, &found.hash)),
                    _ => Ok(document(found, request)),
                }
            }
            // What begins like a path of a built-in kind is known to be none.
            _ if request.uri().path().starts_with("/api/") => Err(Status::unknown_resource()),
            _ => Err(Status::no_page()),
        }
    }

    async fn health(&self, path: &str, query: &Query) -> Result<Response<Body>> {
        let (kind, part) = path.split_once('/').unwrap_or((path, ""));
        if path.contains('/') && !HEALTH_PARTS.contains(&part) {
            return Err(Status::no_page());
        }
        let store = match kind {
            // Alive is who answers; ready is who reaches the store.
            "livez" => Ok(0),
            _ => self.api.store.revision().await,
        };
        let mark = |good: bool| if good { "[+]" } else { "[-]" };
        let detail = format!(
            "[+]ping ok\n{}etcd {}\n",
            mark(store.is_ok()),
            if store.is_ok() { "ok" } else { "failed: reason withheld" }
        );
        Ok(match (store.is_ok(), query.choice("verbose").is_some()) {
            (true, false) => answer::text(200, "ok"),
            (true, true) => answer::text(200, format!("{detail}{kind} check passed\n")),
            (false, _) => answer::text(500, format!("{detail}{kind} check failed\n")),
        })
    }
}

/// A client that does not send what it announced does not hold the server up for ever.
async fn collect_in_time(body: Incoming) -> Result<Bytes> {
    match tokio::time::timeout(BODY_WAIT_MAX, collect(body)).await {
        Ok(collected) => collected,
        Err(_) => Err(Status::timeout("the body of the request did not come in time")),
    }
}

/// The body, if it is not too large. What is beyond is read and thrown away for a while: over HTTP/2 an answer that comes before
/// the end of the request is lost on many clients.
async fn collect(mut body: Incoming) -> Result<Bytes> {
    let (mut bytes, mut length) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Status::bad_request(format!("failed to read the body: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length <= BODY_BYTES_MAX {
            bytes.extend_from_slice(&data);
        } else if length > BODY_BYTES_READ_MAX {
            break;
        }
    }
    if length > BODY_BYTES_MAX {
        Err(Status::too_large(format!("limit is {BODY_BYTES_MAX}")))
    } else {
        Ok(bytes.freeze())
    }
}

/// A document, or word that the client has it already.
fn document(document: &Document, request: &Request<Incoming>) -> Response<Body> {
    let tag = format!("\"{}\"", document.hash);
    let known = request.headers().get(header::IF_NONE_MATCH).is_some_and(|value| value == tag.as_str());
    let mut response = match known {
        true => answer::bytes_of(304, document.media, Bytes::new()),
        false => answer::bytes_of(200, document.media, document.bytes.clone()),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    if request.uri().query().is_some_and(|query| query.contains("hash=")) {
        // The address has the hash of the content, so what is under it never changes.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    }
    response
}

fn moved(path: &str, hash: &str) -> Response<Body> {
    let mut response = answer::text(301, "");
    if let Ok(place) = HeaderValue::from_str(&format!("/openapi/v3/{path}?hash={hash}")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.0+lockgate-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": option_env!("LOCKGATE_GIT_SHA").unwrap_or_default(), "gitTreeState": "clean", "buildDate": "",
        "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
