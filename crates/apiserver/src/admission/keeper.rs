//! Keeps what is in force in step with the store, whoever writes policies.

use std::{pin::pin, sync::Arc};

use client::mvccpb::event::EventType;
use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::watch;

use super::{BINDINGS, GROUP, POLICIES, Policies};
use crate::{
    past, protobuf,
    status::Result,
    store::{self, Entry, Store},
};

/// Policies and bindings lie under names that begin alike, and nothing else does.
pub(crate) fn prefix() -> String {
    let (policies, bindings) = (store::prefix(GROUP, POLICIES), store::prefix(GROUP, BINDINGS));
    let shared = policies.bytes().zip(bindings.bytes()).take_while(|(a, b)| a == b).count();
    policies[..shared].to_owned()
}

fn object(entry: &Entry) -> Option<Value> {
    let parsed = if entry.value.starts_with(protobuf::MAGIC) {
        protobuf::decode(&entry.value)
    } else {
        serde_json::from_slice(&entry.value).ok()
    };
    if parsed.is_none() {
        tracing::error!(key = entry.key, "a policy or binding that cannot be read is not in force");
    }
    parsed
}

/// What is in force now.
pub(crate) async fn load(store: &Store) -> Result<Policies> {
    let page = store.list(&prefix(), None, 0, 0).await?;
    let empty = Policies::new(page.revision);
    Ok(page.entries.iter().fold(empty, |policies, entry| policies.with(page.revision, &entry.key, object(entry))))
}

/// Follows the store for ever: changes as they come, all anew when they cannot be had.
pub(crate) async fn run(store: Store, policies: watch::Sender<Arc<Policies>>) {
    let mut losses = store.losses();
    loop {
        follow(&store, &policies, &mut losses).await;
        let loaded = past::read_at_last(&mut losses, "policies", || load(&store)).await;
        policies.send_replace(Arc::new(loaded));
    }
}

async fn follow(store: &Store, policies: &watch::Sender<Arc<Policies>>, losses: &mut watch::Receiver<u64>) {
    let revision = policies.borrow().revision;
    let mut changes = pin!(store.watch(&prefix(), revision).take_until(losses.changed()));
    while let Some(next) = changes.next().await {
        let response = match next {
            Ok(response) => response,
            Err(error) => return tracing::warn!(%error, "the watch of policies ended"),
        };
        for event in response.events {
            let Some(kv) = event.kv else { continue };
            let entry = store::entry(kv);
            if entry.revision <= revision {
                continue; // known from the list
            }
            let changed = if event.r#type == EventType::Delete as i32 { None } else { object(&entry) };
            let next = policies.borrow().with(entry.revision, &entry.key, changed);
            policies.send_replace(Arc::new(next));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_prefix_is_for_both() {
        assert_eq!(super::prefix(), "/registry/validatingadmissionpolic");
    }
}
