//! Objects from one version to another by a webhook that the definition names.

mod endpoint;
mod post;
mod review;
mod trust;

use std::{sync::Arc, time::Duration};

use rustls::ClientConfig;
use serde_json::Value;

pub(crate) use self::{endpoint::Endpoint, trust::roots};

/// How long a webhook may take for one review, with the connection to it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A webhook, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Converter {
    endpoint: Endpoint,
    tls: Arc<ClientConfig>,
    timeout: Duration,
    /// The first of the review versions of the definition that is known here.
    review: &'static str,
}

/// Versions of ConversionReview, which differ in name and in what Kubernetes checks.
pub(crate) const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

impl Converter {
    /// The webhook of a definition's `spec.conversion`, or why it cannot be asked.
    pub(crate) fn new(conversion: &Value) -> Result<Converter, String> {
        let config = &conversion["webhook"]["clientConfig"];
        let endpoint = match &config["service"] {
            service @ Value::Object(_) => Endpoint::service(service),
            _ => Endpoint::parse(config["url"].as_str().unwrap_or_default())?,
        };
        let tls = trust::tls(config["caBundle"].as_str().unwrap_or_default())?;
        let wanted = conversion["webhook"]["conversionReviewVersions"].as_array().into_iter().flatten();
        let known = wanted.filter_map(|version| REVIEWS.into_iter().find(|known| version == known)).next();
        Ok(Converter { endpoint, tls: Arc::new(tls), timeout: TIMEOUT, review: known.unwrap_or(REVIEWS[0]) })
    }

    /// All objects in the version `desired`, in one call. Objects that are in it already must not be among them.
    pub(crate) async fn convert(&self, objects: Vec<Value>, desired: &str) -> Result<Vec<Value>, String> {
        let Some(first) = objects.first() else { return Ok(objects) };
        let (version, kind) = (first["apiVersion"].as_str(), first["kind"].as_str());
        let name = format!("conversion webhook for {}, Kind={}", version.unwrap_or_default(), kind.unwrap_or_default());
        let uid = crate::name::uid();
        let request = review::request(self.review, &uid, desired, &objects);
        let sent = tokio::time::timeout(self.timeout, post::post(&self.endpoint, self.tls.clone(), &request)).await;
        let answer = match sent {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => return Err(format!("{name} failed: {why}")),
            Err(_) => {
                let seconds = self.timeout.as_secs();
                return Err(format!("{name} failed: Post \"{}\": no answer within {seconds} s", self.endpoint));
            }
        };
        review::converted(&answer, self.review, &uid, desired, &objects).map_err(|why| format!("{name} {why}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_webhook_without_an_answer_times_out() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", silent.local_addr().unwrap());
        let mut converter = Converter::new(&json!({"webhook": {"clientConfig": {"url": url}}})).unwrap();
        converter.timeout = Duration::from_secs(1);
        let failed = converter.convert(vec![json!({"apiVersion": "g/v1", "kind": "K"})], "g/v2").await.unwrap_err();
        let expected =
            format!("conversion webhook for g/v1, Kind=K failed: Post \"{url}?timeout=30s\": no answer within 1 s");
        assert_eq!(failed, expected);
    }
}
