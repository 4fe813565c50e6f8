//! One request from first byte to last: who, what, may they, do it, count it.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::{
    discovery, events, method, name,
    openapi::{self, Document},
    patch::{self, Patch},
    resource::Resource,
    rest::{self, Api, Call, Intent},
    reviews::Review,
    route::{self, OpenApi, Route, Target},
    serve::{
        accept::{self, Place},
        answer::{self, Body, Warnings},
        auth::{self, Peer, Tokens},
        body, compress, deadline, health,
        labels::Labels,
        metrics::Inflight,
        query::Query,
        style::Style,
    },
    status::{Result, Status},
};

/// The Kubernetes whose API this is, for clients that choose their ways by it, and the oldest whose rules of definitions it takes.
const MINOR: &str = "36";
const PATCH: &str = "3";
const MINOR_COMPATIBLE: &str = "35";

pub(crate) struct App {
    pub api: Api,
    pub tokens: Tokens,
    pub address: String,
}

impl App {
    pub(crate) async fn handle(self: Arc<Self>, peer: Peer, request: Request<Incoming>) -> Response<Body> {
        let began = Instant::now();
        let (parts, mut body) = request.into_parts();
        let request = Request::from_parts(parts, ());
        let version = request.version();
        let mut route = route::parse(&crate::serve::query::decode_path(request.uri().path()));
        let mut query = Query::parse(request.uri().query().unwrap_or_default());
        if let Route::Resource(target) = &mut route
            && target.watch
            && let Some(name) = target.name.take()
        {
            query.select("metadata.name", &name);
        }
        let verb = method::verb(request.method(), &route, &query);
        let query = query.for_verb(verb);
        let is_apply = verb == "patch" && patch::is_apply(patch::media(request.headers()));
        let is_dry = query.all("dryRun").any(|value| value == "All");
        let labels = Labels::new(request.method(), &route, verb, is_apply, is_dry);
        let labels = if self.is_known(&route) { labels } else { labels.of_nothing() };
        let inflight = self.inflight(verb);
        let style = Style::of_refusal(request.headers(), &query);
        let mut warnings = Warnings::default();
        let answered = self.answer(peer, request, &mut body, &route, query, verb, &mut warnings).await;
        let mut response = answered.unwrap_or_else(|status| answer::refusal(&status, style));
        body::pass_over(&mut body, version, &mut response).await;
        warnings.write(&mut response);
        if let Ok(id) = HeaderValue::from_str(&name::uid()) {
            response.headers_mut().insert("audit-id", id);
        }
        drop(inflight);
        self.count(labels, &response, began);
        response
    }

    /// Counted as under way for as long as it lives, also if the client goes away.
    fn inflight(&self, verb: &str) -> Option<Inflight> {
        let kind = match verb {
            "watch" => return None,
            "get" | "list" => "readOnly",
            _ => "mutating",
        };
        Some(Inflight::new(self.api.metrics.inflight.with_label_values(&[kind])))
    }

    fn count(&self, labels: Labels, response: &Response<Body>, began: Instant) {
        let (metrics, values) = (&self.api.metrics, labels.values());
        let code = response.status();
        let with_code: Vec<&str> = values.into_iter().chain([code.as_str()]).collect();
        metrics.requests.with_label_values(&with_code).inc();
        if labels.verb != "WATCH" {
            metrics.seconds.with_label_values(&values).observe(began.elapsed().as_secs_f64());
        }
    }

    /// Whether a path is of something that is served, whoever asks.
    fn is_known(&self, route: &Route) -> bool {
        let Route::Resource(target) = route else { return true };
        let part = target.subresource.as_deref().is_none_or(|part| ["status", "scale", "finalize"].contains(&part));
        part && (Review::of(target).is_some() || self.api.resource(target).is_ok())
    }

    #[expect(clippy::too_many_arguments, reason = "all that is known of one request")]
    async fn answer(
        &self,
        peer: Peer,
        request: Request<()>,
        body: &mut Incoming,
        route: &Route,
        query: Query,
        verb: &'static str,
        warnings: &mut Warnings,
    ) -> Result<Response<Body>> {
        deadline::check(&query, verb)?;
        let user = self.tokens.authenticate(peer.standing(), request.headers())?;
        let user = auth::impersonate(user, request.headers()).map_err(Status::at_door)?;
        auth::authorize(&user, request.method(), request.uri().path(), route, verb).map_err(Status::at_door)?;
        let target = match route {
            Route::Resource(target) => target,
            _ => {
                let answer = self.other(route, &request, &query).await;
                // What is not there is told first.
                return match answer {
                    Err(status) if status.code == 404 => Err(status),
                    answer => method::check_other(request.method(), route, request.headers()).and(answer),
                };
            }
        };
        if events::is_list(target, verb) {
            let style = Style::of(accept::negotiate(request.headers(), Place::Objects)?, request.headers(), &query);
            return Ok(answer::styled(200, answer::print(&events::none(self.api.store.revision().await?)), style));
        }
        let review = Review::of(target);
        match review {
            Some(review) => method::check_review(review, target, verb, request.headers())?,
            None => method::check(&*self.api.resource(target)?, target, verb, request.headers())?,
        }
        let place = if review.is_some() { Place::Questions } else { Place::Objects };
        let accepted = accept::negotiate(request.headers(), place)?;
        let (form, style) = (accepted.form, Style::of(accepted, request.headers(), &query));
        let body = body::collect_in_time(body).await?;
        let call = Call { user, query, form, style, headers: request.into_parts().0.headers, body };
        if let Some(review) = review {
            let answered = rest::review(review, &call, &self.api.metrics, warnings)?;
            return Ok(answer::styled(201, answer::print(&answered), call.style));
        }
        if let Some(text) = self.api.resource(target).ok().and_then(|resource| resource.deprecation.clone()) {
            warnings.add(text);
        }
        let mut said = Warnings::default();
        let answer = self.object(target, verb, &call, &mut said).await;
        said.texts().iter().for_each(|text| warnings.add(text));
        answer
    }

    async fn object(&self, target: &Target, verb: &str, call: &Call, said: &mut Warnings) -> Result<Response<Body>> {
        let api = &self.api;
        let resource = api.resource(target)?;
        // It may have become another while the body was on its way.
        method::check(&resource, target, verb, &call.headers)?;
        let (code, done) = match verb {
            "get" => (200, api.get(target, call).await?),
            "list" => (200, api.list(target, call).await?),
            "watch" if call.style == Style::Yaml => return Err(accept::no_stream()),
            "watch" => return Ok(answer::stream(api.watch(target, call).await?)),
            _ => self.write(&resource, target, verb, call, said).await?,
        };
        Ok(compress::json(code, done, &call.headers, call.style).await)
    }

    /// The code and the bytes of the answer to a write.
    async fn write(
        &self,
        resource: &Resource,
        target: &Target,
        verb: &str,
        call: &Call,
        said: &mut Warnings,
    ) -> Result<(u16, Bytes)> {
        let api = &self.api;
        let made = |(made, object): (bool, Value)| (if made { 201 } else { 200 }, object);
        let (code, object) = match verb {
            "create" => (201, api.create(target, call, said).await?),
            "update" => made(api.replace(target, call, said).await?),
            "patch" if patch::is_apply(call.content_type()) => made(api.apply(target, call, said).await?),
            "patch" => {
                // All that is wrong with options is told at once.
                rest::patcher(call)?;
                let patch =
                    Patch::parse(call.content_type(), &call.body, resource.strategic, call.query.field_validation()?)?;
                (200, api.update(target, &Intent::Patch(patch), call, said).await?)
            }
            "delete" => (200, api.delete(target, call, said).await?),
            "deletecollection" => (200, api.delete_collection(target, call, said).await?),
            _ => return Err(Status::method_not_allowed(&resource.name(), verb)),
        };
        Ok((code, answer::print(&object)))
    }

    async fn other(&self, route: &Route, request: &Request<()>, query: &Query) -> Result<Response<Body>> {
        let catalog = self.api.catalog.borrow().clone();
        let headers = request.headers();
        match route {
            Route::Index => Ok(answer::styled(200, answer::print(&discovery::paths(&catalog)), Style::Indented)),
            Route::Version => Ok(answer::styled(200, answer::print(&version()), Style::Indented)),
            Route::Health(path) => self.health(path, query).await,
            Route::Metrics => Ok(answer::text(200, self.api.metrics.text())),
            Route::Discovery(asked @ (route::Discovery::Core | route::Discovery::Groups))
                if accept::aggregated(headers) =>
            {
                let all = discovery::aggregated(&catalog, *asked == route::Discovery::Core);
                let mut response = document(&Document::of(all.to_string().into(), discovery::AGGREGATED), request);
                response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
                response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
                Ok(response)
            }
            Route::Discovery(asked) => {
                let found = discovery::legacy(&catalog, asked, &self.address)?;
                let accepted = accept::negotiate(headers, Place::Plain)?;
                Ok(answer::styled(200, answer::print(&found), Style::of(accepted, headers, query)))
            }
            Route::OpenApi(OpenApi::V2) => {
                let documents = catalog.documents();
                if accept::names(headers, &openapi::PROTOBUF_MEDIA) {
                    return Ok(document(&documents.v2_protobuf, request));
                }
                if accept::takes_json(headers) { Ok(document(&documents.v2, request)) } else { Ok(answer::empty(406)) }
            }
            Route::OpenApi(OpenApi::V3Index) => Ok(document(&catalog.documents().index, request)),
            Route::OpenApi(OpenApi::V3(path)) => {
                let documents = catalog.documents();
                let Some(found) = documents.v3.get(path) else { return Ok(answer::empty(404)) };
                match query.get("hash") {
                    Some(hash) if hash != found.hash => Ok(moved(path, &found.hash)),
                    _ => Ok(document(found, request)),
                }
            }
            // What begins like a path of a built-in kind is known to be none.
            _ if ["/api/", "/version/"].iter().any(|start| request.uri().path().starts_with(start)) => {
                Err(Status::unknown_resource())
            }
            _ => Err(Status::no_page()),
        }
    }

    async fn health(&self, path: &str, query: &Query) -> Result<Response<Body>> {
        let Some(asked) = health::parse(path, query) else { return Err(Status::no_page()) };
        let store = if asked.asks_store() { self.api.store.reached_in(health::STORE_WAIT_MAX).await } else { Ok(()) };
        Ok(asked.answer(store))
    }
}

/// A document, or word that the client has it already.
fn document(document: &Document, request: &Request<()>) -> Response<Body> {
    let tag = format!("\"{}\"", document.hash);
    let known = request.headers().get(header::IF_NONE_MATCH).is_some_and(|value| value == tag.as_str());
    let mut response = if known {
        answer::bytes_of(304, document.media, Bytes::new())
    } else {
        answer::bytes_of(200, document.media, document.bytes.clone())
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
        "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.{PATCH}+lockgate-{}", env!("CARGO_PKG_VERSION")),
        "emulationMajor": "1", "emulationMinor": MINOR, "minCompatibilityMajor": "1", "minCompatibilityMinor": MINOR_COMPATIBLE,
        "gitCommit": option_env!("LOCKGATE_GIT_SHA").unwrap_or_default(), "gitTreeState": "clean", "buildDate": "",
        "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
