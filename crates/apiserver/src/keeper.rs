//! Keeps the catalog in step with the definitions in the store, whoever writes them.

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use client::mvccpb::event::EventType;
use futures_util::StreamExt;
use tokio::sync::watch;

use crate::{
    builtin,
    catalog::{Catalog, Definition},
    crd, past,
    serve::metrics::Metrics,
    status::Result,
    store::{self, Entry, Guard, Store},
};

/// That no definition was written after those that are in a catalog.
pub(crate) fn all_known(catalog: &Catalog) -> Guard {
    Guard::NothingAfter { prefix: prefix(), revision: catalog.revision }
}

pub(crate) fn prefix() -> String {
    store::prefix(builtin::DEFINITIONS.0, builtin::DEFINITIONS.2)
}

fn definition(entry: &Entry) -> Option<Definition> {
    match crd::parse(&entry.value) {
        Ok(object) => Some(Definition { key: entry.key.clone(), revision: entry.revision, object }),
        Err(error) => {
            tracing::warn!(key = entry.key, %error, "a definition that is not JSON is not served");
            None
        }
    }
}

/// The catalog of what is stored now.
pub(crate) async fn load(store: &Store, field_gates: bool) -> Result<Catalog> {
    let page = store.list(&prefix(), None, 0, 0).await?;
    let definitions = page.entries.iter().filter_map(definition);
    let definitions: BTreeMap<String, Arc<Definition>> =
        definitions.map(|definition| (definition.key.clone(), Arc::new(definition))).collect();
    Ok(Catalog::new(page.revision, definitions, field_gates))
}

/// Follows the store for ever: changes as they come, all anew when they cannot be had.
pub(crate) async fn run(store: Store, catalog: watch::Sender<Arc<Catalog>>, metrics: Metrics, field_gates: bool) {
    let mut losses = store.losses();
    loop {
        follow(&store, &catalog, &metrics, &mut losses).await;
        let loaded = past::read_at_last(&mut losses, "definitions", || load(&store, field_gates)).await;
        publish(&catalog, loaded, &metrics);
    }
}

async fn follow(
    store: &Store,
    catalog: &watch::Sender<Arc<Catalog>>,
    metrics: &Metrics,
    losses: &mut watch::Receiver<u64>,
) {
    let revision = catalog.borrow().revision;
    count_gates(&catalog.borrow(), metrics);
    let mut changes = pin!(store.watch(&prefix(), revision).take_until(losses.changed()));
    while let Some(next) = changes.next().await {
        let response = match next {
            Ok(response) => response,
            Err(error) => return tracing::warn!(%error, "the watch of definitions ended"),
        };
        for event in response.events {
            let Some(kv) = event.kv else { continue };
            let entry = store::entry(kv);
            if entry.revision <= revision {
                continue; // known from the list; see `rest::watch` for why it comes again
            }
            let changed = if event.r#type == EventType::Delete as i32 { None } else { definition(&entry) };
            let next = catalog.borrow().with(entry.revision, &entry.key, changed);
            publish(catalog, next, metrics);
        }
    }
}

fn publish(catalog: &watch::Sender<Arc<Catalog>>, next: Catalog, metrics: &Metrics) {
    count_gates(&next, metrics);
    catalog.send_replace(Arc::new(next));
}

fn count_gates(catalog: &Catalog, metrics: &Metrics) {
    metrics.gates.reset();
    // A server that does not heed gates cannot say that one is off.
    for definition in catalog.definitions.values().filter(|_| catalog.field_gates) {
        for gate in &crd::gates(&definition.object).gates {
            let labels = [definition.name(), gate.name.as_str(), gate.pre_release.as_str()];
            metrics.gates.with_label_values(&labels).set(i64::from(gate.is_on()));
        }
    }
}
