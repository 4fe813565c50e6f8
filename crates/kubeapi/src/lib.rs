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

use http::{Method, Request};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;

pub use error::{ApiError, Cause, ConnectError};
pub use place::Place;
pub use time::{micro_time, now, seconds_of, to_text};

/// A call that is not answered within this has failed.
const ANSWER_MAX: Duration = Duration::from_secs(15);

#[derive(Clone)]
pub struct Kube {
    client: Client,
}

/// Over any way to an API, such as one that a test has made up.
impl From<Client> for Kube {
    fn from(client: Client) -> Kube {
        Kube { client }
    }
}

impl Kube {
    /// By the file, else as kubectl would: `KUBECONFIG`, the file at home, or the service account of a pod.
    pub async fn connect(kubeconfig: Option<&Path>) -> Result<Kube, ConnectError> {
        let config = match kubeconfig {
            Some(path) => {
                let named = |source| ConnectError::Kubeconfig { path: path.to_owned(), source };
                let file = Kubeconfig::read_from(path).map_err(named)?;
                Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(named)?
            }
            None => Config::infer().await.map_err(ConnectError::Infer)?,
        };
        Ok(Kube { client: Client::try_from(config).map_err(ConnectError::Client)? })
    }

    /// The newest there is: the API asks its store, not a cache.
    pub async fn get(&self, place: &Place, name: &str) -> Result<Option<Value>, ApiError> {
        match self.call(Method::GET, &place.object(name), None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.cause() == Cause::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects with the label, which is `key=value`. Lists of one answer: what is listed here is few.
    pub async fn list(&self, place: &Place, label: Option<&str>) -> Result<Vec<Value>, ApiError> {
        let mut list = self.call(Method::GET, &place.list(label), None).await?;
        let (kind, version) = (list["kind"].clone(), list["apiVersion"].clone());
        let Value::Array(mut items) = list["items"].take() else { return Ok(Vec::new()) };
        // Items of a list may leave out what the list says.
        let kind = kind.as_str().and_then(|kind| kind.strip_suffix("List")).unwrap_or_default().to_owned();
        for item in items.iter_mut().filter(|item| item.get("kind").is_none()) {
            item["kind"] = kind.clone().into();
            item["apiVersion"] = version.clone();
        }
        Ok(items)
    }

    pub async fn create(&self, place: &Place, object: &Value) -> Result<Value, ApiError> {
        self.call(Method::POST, &place.all(), Some(object)).await
    }

    /// Refused as a conflict if the object has moved on since it was read.
    pub async fn update(&self, place: &Place, object: &Value) -> Result<Value, ApiError> {
        self.call(Method::PUT, &place.object(name_of(object)), Some(object)).await
    }

    pub async fn update_status(&self, place: &Place, object: &Value) -> Result<Value, ApiError> {
        self.call(Method::PUT, &format!("{}/status", place.object(name_of(object))), Some(object)).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        let attempted = format!("{method} {path}");
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json").body(body);
        let request = request.map_err(|error| ApiError::request(&attempted, error))?;
        match tokio::time::timeout(ANSWER_MAX, self.client.request::<Value>(request)).await {
            Ok(answer) => answer.map_err(|source| ApiError::Refused { attempted, source: Box::new(source) }),
            Err(_) => Err(ApiError::TooLate { attempted, seconds: ANSWER_MAX.as_secs() }),
        }
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
