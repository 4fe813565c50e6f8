//! Counts what is stored, for those who watch the growth of a store.

use std::{collections::BTreeSet, time::Duration};

use crate::rest::Api;

const EVERY: Duration = Duration::from_secs(60);

/// Counts for ever. The store is asked for numbers alone, one resource after the other.
pub(crate) async fn run(api: Api) {
    let mut told = BTreeSet::new();
    loop {
        let counted = count(&api).await;
        for (group, resource) in told.difference(&counted) {
            let _ = api.metrics.objects.remove_label_values(&[group, resource]);
            let _ = api.metrics.stored.remove_label_values(&[&name(group, resource)]);
        }
        told = counted;
        tokio::time::sleep(EVERY).await;
    }
}

async fn count(api: &Api) -> BTreeSet<(String, String)> {
    let catalog = api.catalog.borrow().clone();
    let kinds = catalog.resources().map(|resource| (resource.group.clone(), resource.plural.clone()));
    let kinds: BTreeSet<(String, String)> = kinds.collect();
    for (group, resource) in &kinds {
        let count = api.store.count(&crate::store::prefix(group, resource)).await.unwrap_or(-1);
        api.metrics.objects.with_label_values(&[group, resource]).set(count);
        api.metrics.stored.with_label_values(&[&name(group, resource)]).set(count);
    }
    kinds
}

fn name(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
