//! Keeps the part of the view that feature sets are: looks when something changed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use featureset::{
    config_map::{LABEL, LABEL_VALUE, of_config_map},
    object::{ClusterVersion, FeatureGate},
};
use kubeapi::{ApiError, Kube, Place};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::view::{Sets, Source, View};

const CONFIG: &str = "/apis/config.openshift.io/v1";
const LOOK_AGAIN: Duration = Duration::from_secs(300);
const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("an object cannot be read: {0}")]
    Object(#[from] serde_json::Error),
}

/// Never returns. While the API is away the last answer stays, marked stale.
pub async fn follow(kube: Kube, namespace: String, views: watch::Sender<Arc<View>>) {
    let changed = Arc::new(Notify::new());
    let records = Place::namespaced("/api/v1", &namespace, "configmaps");
    let mut watches = JoinSet::new();
    let place = |plural| Place::cluster(CONFIG, plural);
    watches.spawn(kube.clone().notify_events(place(FeatureGate::PLURAL), None, changed.clone()));
    watches.spawn(kube.clone().notify_events(place(ClusterVersion::PLURAL), None, changed.clone()));
    watches.spawn(kube.clone().notify_events(records.clone(), Some(LABEL), changed.clone()));
    loop {
        match look(&kube, &records).await {
            Ok(sets) => {
                publish(&views, |view| view.sets = Source::known(sets));
                let _ = tokio::time::timeout(LOOK_AGAIN, changed.notified()).await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot look at the cluster; it is tried again");
                publish(&views, |view| view.sets = view.sets.lost(&error.to_string()));
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Only what is new is told.
pub(crate) fn publish(views: &watch::Sender<Arc<View>>, change: impl FnOnce(&mut View)) {
    views.send_if_modified(|old| {
        let mut view = View::clone(old);
        change(&mut view);
        let new = **old != view;
        *old = Arc::new(view);
        new
    });
}

async fn look(kube: &Kube, records: &Place) -> Result<Sets, FollowError> {
    let object = kube.get(&Place::cluster(CONFIG, FeatureGate::PLURAL), FeatureGate::NAME).await?;
    let version = kube.get(&Place::cluster(CONFIG, ClusterVersion::PLURAL), ClusterVersion::NAME).await?;
    let registries = kube.list(records, Some(&format!("{LABEL}={LABEL_VALUE}"))).await?;
    // A registry only adds what is known of gates; one that cannot be read adds nothing.
    let registries: BTreeMap<_, _> = registries
        .iter()
        .filter_map(|object| of_config_map(object).ok())
        .map(|registry| (registry.version.clone(), registry))
        .collect();
    let object: Option<FeatureGate> = object.map(serde_json::from_value).transpose()?;
    let version: Option<ClusterVersion> = version.map(serde_json::from_value).transpose()?;
    Ok(Sets::new(object.as_ref(), version.as_ref(), registries))
}
