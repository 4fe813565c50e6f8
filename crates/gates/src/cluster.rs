//! A cluster that is spoken to.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use featureset::{
    ack::{self, Ack},
    config_map::{LABEL, NAMESPACE},
};
use kubeapi::{Kube, Place};
use serde::de::DeserializeOwned;

pub(crate) const CONFIG: &str = "/apis/config.openshift.io/v1";
pub(crate) const NO_GATE: &str = "there is no FeatureGate cluster";
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(300);

#[derive(clap::Args, Debug)]
pub(crate) struct Reach {
    /// How to reach the API; as kubectl would unless given.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Where registries, audit trail and leases are.
    #[arg(long, default_value = NAMESPACE)]
    pub namespace: String,
    /// How many seconds to wait, where there is something to wait for.
    #[arg(long, default_value_t = 600)]
    pub wait_seconds: u64,
}

impl Reach {
    /// For commands that wait for nothing.
    pub(crate) fn new(kubeconfig: Option<&Path>, namespace: &str) -> Reach {
        Reach { kubeconfig: kubeconfig.map(Path::to_owned), namespace: namespace.to_owned(), wait_seconds: 0 }
    }
}

/// A cluster that is spoken to.
pub(crate) struct Cluster {
    pub kube: Kube,
    pub reach: Reach,
}

pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

impl Cluster {
    pub(crate) async fn connect(reach: Reach) -> Result<Cluster> {
        Ok(Cluster {
            kube: Kube::connect(reach.kubeconfig.as_deref()).await?.named(featureset::manager::COMMAND),
            reach,
        })
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, plural: &'static str, name: &str) -> Result<Option<T>> {
        let object = self.kube.get(&Place::cluster(CONFIG, plural), name).await?;
        object.map(serde_json::from_value).transpose().with_context(|| format!("{plural}/{name} cannot be read"))
    }

    pub(crate) async fn acks(&self) -> Result<Vec<Ack>> {
        let place = Place::namespaced("/apis/coordination.k8s.io/v1", &self.reach.namespace, "leases");
        let leases = self.kube.list(&place, Some(&format!("{LABEL}={}", ack::LABEL_VALUE))).await?;
        let now = kubeapi::now().0;
        let mut acks: Vec<Ack> = leases.iter().filter_map(|lease| Ack::of_lease(lease, kubeapi::seconds_of)).collect();
        acks.retain(|ack| ack.is_alive(now));
        acks.sort();
        Ok(acks)
    }
}
