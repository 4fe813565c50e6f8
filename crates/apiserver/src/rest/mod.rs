//! Requests on objects, from the parsed call to the answer's JSON.

mod admit;
mod apply;
mod backlog;
mod changes;
mod create;
mod delete;
mod delete_options;
mod faults;
mod gate;
#[cfg(test)]
mod gate_tests;
mod hub;
mod intent;
mod kept;
mod list;
mod namespace;
mod options;
mod own;
mod police;
mod present;
mod printed;
mod read;
mod review;
mod scale;
mod shown;
#[cfg(test)]
mod shown_tests;
#[cfg(test)]
mod stale_tests;
mod strict;
mod update;
mod versions;
mod views;
mod watch;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::{Notify, watch as channel};

pub(crate) use self::{
    admit::{encode, stored},
    backlog::Limits,
    intent::Intent,
    own::patcher,
    printed::Printed,
    review::review,
};
use crate::{
    admission::Policies,
    builtin,
    catalog::Catalog,
    keeper, method, object,
    resource::{Resource, Role},
    route::Target,
    serve::{accept::Form, auth::User, metrics::Metrics, query::Query, style::Style},
    status::{Result, Status},
    store::{Guard, Seen, Store},
};

/// How often a write is tried again when others write the same object or its definition.
const ATTEMPTS_MAX: usize = 20;
const CATALOG_WAIT_MAX: Duration = Duration::from_secs(5);

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Api {
    pub store: Store,
    pub catalog: channel::Receiver<Arc<Catalog>>,
    /// The admission policies in force.
    pub policies: channel::Receiver<Arc<Policies>>,
    pub metrics: Metrics,
    /// Told when something is to be cleaned away.
    pub janitor: Arc<Notify>,
    /// Whether gates of definitions are heeded (`CRDFieldLevelVersioning`).
    pub field_gates: bool,
    /// How often a watch that asks for bookmarks gets one.
    pub bookmark_every: Duration,
    /// How far a watch may run ahead of its client.
    pub watch_limits: Limits,
    /// Events that watches have sent lately.
    pub printed: Arc<Printed>,
}

/// One request, read and parsed.
pub(crate) struct Call {
    pub user: User,
    pub query: Query,
    pub form: Form,
    pub style: Style,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Call {
    pub(crate) fn content_type(&self) -> &str {
        self.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("application/json")
    }
}

impl Api {
    /// What is served under this path right now.
    pub(crate) fn resource(&self, target: &Target) -> Result<Arc<Resource>> {
        let catalog = self.catalog.borrow().clone();
        let found = catalog.get(&target.group, &target.version, &target.plural).cloned();
        found.filter(|resource| !method::misplaced(resource, target)).ok_or_else(|| method::missing(&target.group))
    }

    /// Waits until what was written to a definition or a policy at `revision` is heeded here.
    pub(crate) async fn caught_up(&self, resource: &Resource, revision: i64) {
        let (mut catalog, mut policies) = (self.catalog.clone(), self.policies.clone());
        let waiting = async {
            match resource.role {
                Role::Definition => catalog.wait_for(|catalog| catalog.revision >= revision).await.is_ok(),
                Role::Policy | Role::Binding => policies.wait_for(|now| now.revision >= revision).await.is_ok(),
                _ => true,
            }
        };
        if tokio::time::timeout(CATALOG_WAIT_MAX, waiting).await.is_err() {
            tracing::warn!(revision, "what is served lags behind the store");
        }
    }

    /// Waits until this server has seen that a definition or the policies have changed.
    async fn guards_moved(&self, guards: &[Guard]) -> Result<()> {
        let (mut catalog, mut policies) = (self.catalog.clone(), self.policies.clone());
        let definitions = keeper::prefix();
        let changed = |catalog: &Arc<Catalog>| {
            let of = |key: &str| catalog.definitions.get(key).map_or(0, |now| now.revision);
            guards.iter().any(|guard| match guard {
                Guard::Same(seen) => of(&seen.key) != seen.revision,
                Guard::NothingAfter { prefix, revision } => *prefix == definitions && *revision < catalog.revision,
            })
        };
        let newer = |policies: &Arc<Policies>| {
            let now = policies.revision;
            let is_older = |prefix: &str, revision| prefix != definitions && revision < now;
            guards
                .iter()
                .any(|guard| matches!(guard, Guard::NothingAfter { prefix, revision } if is_older(prefix, *revision)))
        };
        let moved = async {
            tokio::select! {
                found = catalog.wait_for(changed) => found.is_ok(),
                found = policies.wait_for(newer) => found.is_ok(),
            }
        };
        match tokio::time::timeout(CATALOG_WAIT_MAX, moved).await {
            Ok(_) => Ok(()),
            Err(_) => {
                let why = "the definition or the policies have changed and this server has not seen how";
                Err(Status::server_timeout("write", why))
            }
        }
    }

    /// A namespace must be there, and not on its way out, for something new in it, and stay so until that is written: what came into
    /// one that is already found empty would be left behind by it.
    async fn check_namespace(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Option<Guard>> {
        let Some(namespace) = namespace else { return Ok(None) };
        let key = format!("{}{namespace}", crate::store::prefix("", "namespaces"));
        let names = crate::status::Name::new("", "namespaces");
        let Some(entry) = self.store.get(&key).await? else { return Err(Status::not_found(&names, namespace)) };
        let found = admit::stored(resource, &entry)?;
        if object::is_deleting(&found) {
            Err(Status::namespace_terminating(&resource.name(), name, namespace))
        } else {
            Ok(Some(Guard::Same(Seen { key, revision: entry.revision })))
        }
    }

    /// What a write relies on beside the object itself: that the definition and the policies are still as they were.
    fn guards(resource: &Resource, policed: Option<Guard>) -> Vec<Guard> {
        let seen = resource
            .custom()
            .map(|custom| Seen { key: custom.definition_key.clone(), revision: custom.definition_revision });
        seen.map(Guard::Same).into_iter().chain(policed).collect()
    }

    fn others(&self, except: &str) -> Vec<Arc<crate::catalog::Definition>> {
        let catalog = self.catalog.borrow().clone();
        catalog.definitions.values().filter(|definition| definition.name() != except).cloned().collect()
    }
}

pub(crate) fn is_kept_namespace(resource: &Resource, name: &str) -> bool {
    resource.role == crate::resource::Role::Namespace && builtin::NAMESPACES.contains(&name)
}
