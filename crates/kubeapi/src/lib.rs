//! Objects of any Kubernetes-style API as JSON values.
//!
//! Feature sets read and write a handful of objects, some of kinds that no library has types for, and must keep what they
//! do not know. So this is a thin layer over the `kube` client, which knows kubeconfigs, certificates and tokens.

mod error;
mod place;
mod time;
mod trigger;
mod watch;

use std::{path::Path, time::Duration};

use futures_util::future::BoxFuture;
use http::{Method, Request};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

pub use error::{ApiError, Cause, ConnectError};
pub use place::Place;
pub use time::{micro_time, now, seconds_of, to_text};
pub use watch::Events;

/// A call that is not answered within this has failed.
const ANSWER_MAX: Duration = Duration::from_secs(15);

#[derive(Clone)]
pub struct Kube {
    client: Client,
    /// Who asks; see [`Kube::named`].
    name: Option<&'static str>,
}

/// Over any way to an API, such as one that a test has made up.
impl From<Client> for Kube {
    fn from(client: Client) -> Kube {
        Kube { client, name: None }
    }
}

impl Kube {
    /// By the file, else as kubectl would: `KUBECONFIG`, the file at home, or the service account of a pod.
    pub fn connect(kubeconfig: Option<&Path>) -> BoxFuture<'_, Result<Kube, ConnectError>> {
        // Boxed, as are all calls: the code of the client is generated here once, and not in each crate that awaits it.
        Box::pin(Kube::connect_unboxed(kubeconfig))
    }

    async fn connect_unboxed(kubeconfig: Option<&Path>) -> Result<Kube, ConnectError> {
        let config = match kubeconfig {
            Some(path) => {
                let named = |source| ConnectError::Kubeconfig { path: path.to_owned(), source };
                let file = Kubeconfig::read_from(path).map_err(named)?;
                Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(named)?
            }
            None => Config::infer().await.map_err(ConnectError::Infer)?,
        };
        Ok(Kube::from(Client::try_from(config).map_err(ConnectError::Client)?))
    }

    /// The same under a name: all that is written has it as its field manager, so that `managedFields` tell who it was, and
    /// every request has it as its user agent, so that logs of the API do. Without one the API writes `unknown`.
    #[must_use]
    pub fn named(self, name: &'static str) -> Kube {
        Kube { name: Some(name), ..self }
    }

    /// The newest there is: the API asks its store, not a cache.
    pub async fn get(&self, place: &Place, name: &str) -> Result<Option<Value>, ApiError> {
        match self.call(Method::GET, &place.object(name), place.accept(false), Body::None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.cause() == Cause::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects with the label, which is `key=value`. Lists of one answer: what is listed here is few.
    pub async fn list(&self, place: &Place, label: Option<&str>) -> Result<Vec<Value>, ApiError> {
        let path = place.list(label);
        let mut list = self.call(Method::GET, &path, place.accept(true), Body::None).await?;
        let (kind, version) = (list["kind"].clone(), list["apiVersion"].clone());
        let kind = kind.as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
        let items = list.get_mut("items").map(Value::take).unwrap_or_default();
        let (mut items, kind) = match (items, kind) {
            (Value::Array(items), kind) => (items, kind.unwrap_or_default()),
            // Go writes a list of nothing so.
            (Value::Null, Some(_)) => return Ok(Vec::new()),
            // Whatever it is, it must not pass for a list of nothing: records would seem to be gone.
            _ => return Err(ApiError::NotAList { attempted: format!("GET {path}") }),
        };
        // Items of a list may leave out what the list says.
        for item in items.iter_mut().filter(|item| item.is_object() && item.get("kind").is_none()) {
            item["kind"] = kind.clone().into();
            item["apiVersion"] = version.clone();
        }
        Ok(items)
    }

    pub async fn create(&self, place: &Place, object: &Value) -> Result<Value, ApiError> {
        self.call(Method::POST, &place::managed(place.all(), self.name), JSON, Body::Json(object)).await
    }

    /// Refused as a conflict if the object has moved on since it was read.
    pub async fn update(&self, place: &Place, object: &Value) -> Result<Value, ApiError> {
        let path = place::managed(place.object(name_of(object)), self.name);
        self.call(Method::PUT, &path, JSON, Body::Json(object)).await
    }

    /// Somebody's definition may have no such subresource; then the status is a part of the object, and whoever may write that may
    /// write it. An object that is gone is not found once more.
    pub async fn update_status(&self, place: &Place, object: &Value) -> Result<Value, ApiError> {
        let path = place::managed(format!("{}/status", place.object(name_of(object))), self.name);
        match self.call(Method::PUT, &path, JSON, Body::Json(object)).await {
            Err(error) if error.cause() == Cause::NotFound => self.update(place, object).await,
            other => other,
        }
    }

    /// Server-side apply under the name of a manager. Refused as a conflict if a field is someone else's, unless `force`, and
    /// if the configuration names a uid or a resourceVersion that is not the one there is.
    pub async fn apply(&self, place: &Place, config: &Value, manager: &str, force: bool) -> Result<Value, ApiError> {
        let path = place.apply(name_of(config), manager, force);
        self.call(Method::PATCH, &path, JSON, Body::Apply(config)).await
    }

    /// Refused as a conflict if it is not this very object any more.
    pub async fn delete(&self, place: &Place, name: &str, uid: &str, version: &str) -> Result<Value, ApiError> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid, "resourceVersion": version},
        });
        self.call(Method::DELETE, &place.object(name), JSON, Body::Json(&options)).await
    }

    fn call<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        accept: &'a str,
        body: Body<'a>,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(self.call_unboxed(method, path, accept, body))
    }

    async fn call_unboxed(&self, method: Method, path: &str, accept: &str, body: Body<'_>) -> Result<Value, ApiError> {
        let attempted = format!("{method} {path}");
        let (kind, body) = match body {
            Body::None => (JSON, Vec::new()),
            Body::Json(value) => (JSON, value.to_string().into_bytes()),
            // JSON is YAML.
            Body::Apply(value) => ("application/apply-patch+yaml", value.to_string().into_bytes()),
        };
        let request = self.request(method, path, accept).header("content-type", kind);
        let request = request.body(body).map_err(|error| ApiError::request(&attempted, error))?;
        match tokio::time::timeout(ANSWER_MAX, self.client.request::<Value>(request)).await {
            Ok(answer) => answer.map_err(|error| ApiError::Refused { attempted, cause: Box::new(error) }),
            Err(_) => Err(ApiError::TooLate { attempted, seconds: ANSWER_MAX.as_secs() }),
        }
    }

    fn request(&self, method: Method, path: &str, accept: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(path).header("accept", accept);
        match self.name {
            Some(name) => request.header("user-agent", format!("{name}/{}", env!("CARGO_PKG_VERSION"))),
            None => request,
        }
    }
}

const JSON: &str = "application/json";

enum Body<'a> {
    None,
    Json(&'a Value),
    Apply(&'a Value),
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
