//! Cleans away what is to go: objects of definitions and namespaces on their way out, and old revisions of the store.
//!
//! Every server does it. Each step is a transaction on what it has seen, so two that do the same do it once.

use std::time::Duration;

use client::{Compare, Get, Put, Txn};
use serde_json::Value;

use crate::{
    builtin,
    catalog::{Catalog, Definition},
    crd, keeper, object,
    resource::{Resource, Role},
    rest::{Api, encode, stored},
    serve::auth::User,
    status::Result,
    store::{self, Change, Entry, Outcome, Seen},
};

const LOOK_EVERY: Duration = Duration::from_secs(5);
/// While something waits for others to let go of it.
const RETRY_EVERY: Duration = Duration::from_millis(200);
const COMPACT_EVERY: Duration = Duration::from_secs(300);
/// The key under which API servers agree who compacts; other servers on the store use the same.
const COMPACT_KEY: &str = "compact_rev_key";

pub(crate) async fn run(api: Api) {
    let mut pause = LOOK_EVERY;
    loop {
        tokio::select! {
            () = api.janitor.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
        pause = match clean(&api).await {
            Ok(true) => LOOK_EVERY,
            Ok(false) => RETRY_EVERY,
            Err(error) => {
                tracing::warn!(%error, "failed to clean away what is to go");
                LOOK_EVERY
            }
        };
    }
}

/// True if nothing is left that waits. What cannot end, as a policy keeps its content or an object cannot be read, does not keep
/// others from ending.
pub(crate) async fn clean(api: &Api) -> Result<bool> {
    let mut steps = Vec::new();
    let catalog = api.catalog.borrow().clone();
    for definition in catalog.definitions.values() {
        steps.push(if object::is_deleting(&definition.object) {
            end_definition(api, &definition.key).await
        } else {
            settle(api, definition, &catalog).await.map(|()| true)
        });
    }
    let namespaces = builtin_resource(Role::Namespace);
    for entry in api.store.list(&namespaces.prefix(), None, 0, 0).await?.entries {
        steps.push(match stored(&namespaces, &entry) {
            Ok(found) if object::is_deleting(&found) => end_namespace(api, &namespaces, &entry, found).await,
            found => found.map(|_| true),
        });
    }
    let all_of = |done: Result<bool>, step: Result<bool>| step.and_then(|ended| done.map(|done| done && ended));
    steps.into_iter().fold(Ok(true), all_of)
}

/// Who deletes the content of namespaces, by the name that it has in Kubernetes.
fn controller() -> User {
    let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system"].map(str::to_owned);
    User::new("system:serviceaccount:kube-system:namespace-controller".to_owned(), groups.into())
}

fn builtin_resource(role: Role) -> Resource {
    let mut resources = builtin::resources();
    let at = resources.iter().position(|resource| resource.role == role).unwrap_or_default();
    resources.swap_remove(at)
}

/// A definition that somebody else wrote may lack its status, or get names that have become free.
async fn settle(api: &Api, definition: &Definition, catalog: &Catalog) -> Result<()> {
    let mut object = definition.object.clone();
    let others: Vec<&Value> = catalog.definitions.values().map(|other| &other.object).collect();
    if object["spec"].is_object() && crd::decide_status(&mut object, &others) {
        let seen = Seen { key: definition.key.clone(), revision: definition.revision };
        api.store.write(&seen, &[], Change::Put(object.to_string().as_bytes())).await?;
    }
    Ok(())
}

/// Deletes all objects of a definition, then lets go of it.
async fn end_definition(api: &Api, key: &str) -> Result<bool> {
    let Some(entry) = api.store.get(key).await? else { return Ok(true) };
    let mut found = crd::parse(&entry.value).unwrap_or_default();
    let definition = Definition { key: key.to_owned(), revision: entry.revision, object: found.clone() };
    if let Some(resource) = &crd::stored_resource(&definition)
        && !empty(api, resource, &resource.prefix(), None).await?
    {
        return Ok(false);
    }
    let finalizers = object::list(&found, "finalizers").iter().filter(|name| *name != crd::FINALIZER);
    let finalizers: Vec<Value> = finalizers.cloned().collect();
    let seen = Seen { key: key.to_owned(), revision: entry.revision };
    if finalizers.is_empty() {
        api.store.write(&seen, &[], Change::Delete).await?;
        return Ok(true);
    }
    if finalizers.len() < object::list(&found, "finalizers").len() {
        object::set(&mut found, "finalizers", finalizers);
        api.store.write(&seen, &[], Change::Put(found.to_string().as_bytes())).await?;
    }
    Ok(true)
}

/// Deletes everything in a namespace, then the namespace, unless there are kinds that this server does not know of yet.
async fn end_namespace(api: &Api, namespaces: &Resource, entry: &Entry, mut found: Value) -> Result<bool> {
    let name = object::meta(&found, "name").to_owned();
    let catalog = api.catalog.borrow().clone();
    let mut done = true;
    for resource in catalog.namespaced() {
        done &= empty(api, &resource, &resource.prefix_in(Some(&name)), Some(&controller())).await?;
    }
    if !done {
        return Ok(false);
    }
    let seen = Seen { key: entry.key.clone(), revision: entry.revision };
    let all_known = [keeper::all_known(&catalog)];
    let kept = found["spec"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|name| *name != builtin::NAMESPACE_FINALIZER);
    let kept: Vec<Value> = kept.cloned().collect();
    let mut outcome = None;
    if kept.is_empty() && object::list(&found, "finalizers").is_empty() {
        outcome = Some(api.store.write(&seen, &all_known, Change::Delete).await?);
    } else if found["spec"]["finalizers"] != Value::from(kept.clone()) {
        found["spec"]["finalizers"] = kept.into();
        let bytes = encode(namespaces, &found).to_string();
        outcome = Some(api.store.write(&seen, &all_known, Change::Put(bytes.as_bytes())).await?);
    }
    Ok(outcome != Some(Outcome::GuardMoved))
}

/// Deletes all objects under a prefix; true if none is left. Who deletes a definition has deleted its objects, so policies are
/// asked for namespaces alone, as in Kubernetes.
async fn empty(api: &Api, resource: &Resource, prefix: &str, user: Option<&User>) -> Result<bool> {
    let mut failed = None;
    for entry in api.store.list(prefix, None, 0, 0).await?.entries {
        failed = api.purge(resource, &entry, user).await.err().or(failed);
    }
    if let Some(failed) = failed {
        return Err(failed);
    }
    Ok(api.store.list(prefix, None, 1, 0).await?.entries.is_empty())
}

/// Every five minutes one of the servers compacts the store up to what it was five minutes ago.
pub(crate) async fn compact(store: store::Store) {
    let (mut version, mut revision) = (0, 0);
    loop {
        tokio::time::sleep(COMPACT_EVERY).await;
        match compact_once(&store, version, revision).await {
            Ok((next_version, next_revision)) => (version, revision) = (next_version, next_revision),
            Err(error) => tracing::warn!(%error, "failed to compact the store"),
        }
    }
}

/// The one whose transaction finds the version it knows compacts; the others learn the new version.
async fn compact_once(
    store: &store::Store,
    version: i64,
    revision: i64,
) -> std::result::Result<(i64, i64), client::Error> {
    let txn = Txn::new()
        .when([Compare::version(COMPACT_KEY).eq(version)])
        .and_then([Put::new(COMPACT_KEY, revision.to_string()).into()])
        .or_else([Get::key(COMPACT_KEY).into()]);
    let response = store.client().txn(txn).await?;
    let now = response.header.map_or(0, |header| header.revision);
    if !response.succeeded {
        let found = match response.responses.into_iter().next().and_then(|response| response.response) {
            Some(client::pb::response_op::Response::ResponseRange(range)) => {
                range.kvs.first().map_or(0, |kv| kv.version)
            }
            _ => 0,
        };
        return Ok((found, now));
    }
    if revision > 0 {
        store.client().compact(revision, false).await?;
        tracing::info!(revision, "compacted the store");
    }
    Ok((version + 1, now))
}
