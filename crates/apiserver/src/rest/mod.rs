//! Requests on objects, from the parsed call to the answer's JSON.

mod admit;
mod apply;
mod create;
mod delete;
mod list;
mod options;
mod own;
mod present;
mod printed;
mod read;
mod scale;
#[cfg(test)]
mod stale_tests;
mod update;
mod versions;
mod watch;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::{Notify, watch as channel};

pub use self::{
    admit::{encode, stored},
    printed::Printed,
    update::Intent,
};
use crate::{
    builtin,
    catalog::Catalog,
    object,
    resource::{Custom, Resource},
    route::Target,
    serve::{accept::Form, metrics::Metrics, query::Query},
    status::{Result, Status},
    store::{Seen, Store},
};

/// How often a write is tried again when others write the same object or its definition.
const ATTEMPTS_MAX: usize = 20;
const CATALOG_WAIT_MAX: Duration = Duration::from_secs(5);

/// What all requests share.
#[derive(Clone)]
pub struct Api {
    pub store: Store,
    pub catalog: channel::Receiver<Arc<Catalog>>,
    pub metrics: Metrics,
    /// Told when something is to be cleaned away.
    pub janitor: Arc<Notify>,
    /// Whether gates of definitions are heeded (`CRDFieldLevelVersioning`).
    pub field_gates: bool,
    /// How often a watch that asks for bookmarks gets one.
    pub bookmark_every: Duration,
    /// Events that watches have sent lately.
    pub printed: Arc<Printed>,
}

/// One request, read and parsed.
pub struct Call {
    pub query: Query,
    pub form: Form,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Call {
    pub fn content_type(&self) -> &str {
        self.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("application/json")
    }
}

impl Api {
    /// What is served under this path right now.
    pub fn resource(&self, target: &Target) -> Result<Arc<Resource>> {
        let catalog = self.catalog.borrow().clone();
        let found = catalog.get(&target.group, &target.version, &target.plural).cloned();
        let resource = found.ok_or_else(Status::unknown_resource)?;
        let misplaced = target.namespace.is_some() && !resource.namespaced
            || target.namespace.is_none() && resource.namespaced && target.name.is_some();
        if misplaced { Err(Status::unknown_resource()) } else { Ok(resource) }
    }

    /// Waits until what was written to a definition at `revision` is served here.
    pub async fn caught_up(&self, revision: i64) {
        let mut catalog = self.catalog.clone();
        let waiting = catalog.wait_for(|catalog| catalog.revision >= revision);
        if tokio::time::timeout(CATALOG_WAIT_MAX, waiting).await.is_err() {
            tracing::warn!(revision, "what is served lags behind the store");
        }
    }

    /// Waits until this server has seen that the definition has changed.
    async fn definition_moved(&self, custom: &Custom) -> Result<()> {
        let mut catalog = self.catalog.clone();
        let moved = catalog.wait_for(|catalog| {
            catalog.definitions.get(&custom.definition_key).is_none_or(|now| now.revision != custom.definition_revision)
        });
        match tokio::time::timeout(CATALOG_WAIT_MAX, moved).await {
            Ok(_) => Ok(()),
            Err(_) => {
                Err(Status::server_timeout("write", "the definition has changed and this server has not seen how"))
            }
        }
    }

    /// A namespace must be there, and not on its way out, for something new in it.
    async fn check_namespace(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<()> {
        let Some(namespace) = namespace else { return Ok(()) };
        let key = format!("{}{namespace}", crate::store::prefix("", "namespaces"));
        let names = crate::status::Name::new("", "namespaces");
        let Some(entry) = self.store.get(&key).await? else { return Err(Status::not_found(&names, namespace)) };
        let found = admit::stored(resource, &entry)?;
        match object::is_deleting(&found) {
            true => Err(Status::namespace_terminating(&resource.name(), name, namespace)),
            false => Ok(()),
        }
    }

    /// What a write relies on beside the object itself: that the definition is still as it was.
    fn guards(resource: &Resource) -> Vec<Seen> {
        let custom = resource.custom();
        let guard = |custom: &Custom| Seen { key: custom.definition_key.clone(), revision: custom.definition_revision };
        custom.map(guard).into_iter().collect()
    }

    fn others(&self, except: &str) -> Vec<Arc<crate::catalog::Definition>> {
        let catalog = self.catalog.borrow().clone();
        catalog.definitions.values().filter(|definition| definition.name() != except).cloned().collect()
    }
}

pub fn is_kept_namespace(resource: &Resource, name: &str) -> bool {
    resource.role == crate::resource::Role::Namespace && builtin::NAMESPACES.contains(&name)
}
