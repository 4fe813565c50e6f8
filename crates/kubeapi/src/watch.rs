//! Watches. One that ends, for whatever reason, is for the caller to begin again, after a fresh look.

use futures_util::{StreamExt, future::BoxFuture, stream::BoxStream};
use http::Method;
use kube::core::WatchEvent;
use serde_json::Value;

use crate::{ApiError, Kube, Place};

/// After this the API ends a watch by itself, so that a connection that died unnoticed is noticed.
const WATCH_SECONDS: u32 = 240;

/// Objects that were added, changed or deleted (`true`).
pub type Events = BoxStream<'static, Result<(Value, bool), ApiError>>;

impl Kube {
    /// Every object that is added, changed or deleted (`true`) after `from`, or from some state of now on.
    pub fn watch<'a>(
        &'a self,
        place: &'a Place,
        label: Option<&'a str>,
        from: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Events, ApiError>> {
        Box::pin(self.watch_unboxed(place, label, from))
    }

    async fn watch_unboxed(&self, place: &Place, label: Option<&str>, from: Option<&str>) -> Result<Events, ApiError> {
        let path = place.watch(label, from, WATCH_SECONDS);
        let attempted = format!("watching {path}");
        let request = self
            .request(Method::GET, &path, place.accept(false))
            .body(Vec::new())
            .map_err(|error| ApiError::request(&attempted, error))?;
        let refused = move |error| ApiError::Refused { attempted: attempted.clone(), cause: Box::new(error) };
        let events = self.client.request_events::<Value>(request).await.map_err(refused.clone())?;
        Ok(Box::pin(events.filter_map(move |event| {
            let event = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => Some(Ok((object, false))),
                Ok(WatchEvent::Deleted(object)) => Some(Ok((object, true))),
                Ok(WatchEvent::Bookmark(_)) => None,
                Ok(WatchEvent::Error(status)) => Some(Err(refused(kube::Error::Api(status)))),
                Err(error) => Some(Err(refused(error))),
            };
            std::future::ready(event)
        })))
    }
}
