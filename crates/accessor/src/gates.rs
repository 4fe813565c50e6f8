//! The handle, and what runs behind it: look, tell, wait for an event, look again.

use std::{sync::Arc, time::Duration};

use featureset::{
    ack::Ack,
    object::{ClusterVersion, FeatureGate},
};
use kubeapi::{ApiError, Cause, Kube, Place};
use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::{
    builder::{Acknowledge, Builder},
    cache::Cache,
    follow::{Change, Follower, NotReady, Observed},
    leave::{Decision, Leave, OnChange},
    metric,
    snapshot::{Snapshot, State},
};

const CONFIG: &str = "/apis/config.openshift.io/v1";
const COORDINATION: &str = "/apis/coordination.k8s.io/v1";
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// A look without a reason, should a watch be silently dead.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

type Known = Result<State, NotReady>;

/// A handle to the feature gates of this program's version. They are followed in the background as
/// long as the handle or a clone of it exists.
#[derive(Clone)]
pub struct Gates {
    known: watch::Receiver<Known>,
    _tasks: Arc<JoinSet<()>>,
}

impl Gates {
    /// Returns the settings for a program of this version, written as `ClusterVersion` has it.
    pub fn builder(version: &str) -> Builder {
        Builder::new(version)
    }

    /// Returns gates that never change, for tests and for the bootstrap of a cluster.
    pub fn fixed(snapshot: Snapshot) -> Gates {
        let state = State { snapshot: Arc::new(snapshot), stale: None };
        let (_, known) = watch::channel(Ok(state));
        Gates { known, _tasks: Arc::new(JoinSet::new()) }
    }

    /// Waits up to `wait_max` for the first snapshot. An error of the kind
    /// [`NotReady::UnknownGates`] is returned at once, because waiting would not help.
    pub async fn ready(&self, wait_max: Duration) -> Result<Arc<Snapshot>, NotReady> {
        let mut known = self.known.clone();
        let told = |known: &Known| matches!(known, Ok(_) | Err(NotReady::UnknownGates { .. }));
        let _ = tokio::time::timeout(wait_max, known.wait_for(told)).await;
        let known = self.known.borrow().clone();
        known.map(|state| state.snapshot)
    }

    /// The snapshot in force, or `None` before the first one.
    pub fn current(&self) -> Option<Arc<Snapshot>> {
        self.known.borrow().as_ref().ok().map(|state| state.snapshot.clone())
    }

    /// The snapshot in force as metrics in Prometheus' text format, such as
    /// `feature_enabled{name,version}`.
    pub fn metrics(&self) -> String {
        metric::lines(&self.known.borrow())
    }

    /// Returns a channel with the current state. It holds the newest state only, so a reader may
    /// miss states in between.
    pub fn subscribe(&self) -> watch::Receiver<Result<State, NotReady>> {
        self.known.clone()
    }

    pub(crate) fn start(kube: Kube, builder: Builder, follower: Follower) -> Gates {
        let kube = kube.named(featureset::manager::FOLLOWER);
        let (sender, known) = watch::channel(Err(NotReady::NotAsked));
        let changed = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        for plural in [FeatureGate::PLURAL, ClusterVersion::PLURAL] {
            // Only a development build looks at the version of the cluster.
            if plural == FeatureGate::PLURAL || follower.version.is_none() {
                tasks.spawn(kube.clone().notify_events(Place::cluster(CONFIG, plural), None, changed.clone()));
            }
        }
        let (gates, cache) = (builder.followed(), builder.open_cache());
        if let Some(acknowledge) = builder.acknowledge {
            tasks.spawn(renew(kube.clone(), acknowledge, gates, known.clone()));
        }
        let (on_change, leave) = (builder.on_change, builder.leave);
        tasks.spawn(Worker { kube, follower, cache, on_change, leave, sender, changed }.run());
        Gates { known, _tasks: Arc::new(tasks) }
    }
}

struct Worker {
    kube: Kube,
    follower: Follower,
    cache: Option<Cache>,
    on_change: OnChange,
    leave: Leave,
    sender: watch::Sender<Known>,
    changed: Arc<Notify>,
}

impl Worker {
    async fn run(mut self) {
        let mut wait = BACKOFF.0;
        self.read_cache();
        loop {
            match look(&self.kube, self.follower.version.is_none()).await {
                Ok((object, version)) => {
                    wait = BACKOFF.0;
                    let observed = self.follower.observe(object.as_ref(), version.as_ref());
                    self.tell(observed).await;
                    let _ = tokio::time::timeout(LOOK_AGAIN, self.changed.notified()).await;
                }
                Err(error) => {
                    let observed = self.follower.no_api(&error.to_string());
                    self.tell(observed).await;
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(BACKOFF.1);
                }
            }
        }
    }

    async fn tell(&mut self, observed: Observed) {
        match observed {
            Observed::Waiting(why) => self.set(Err(why)),
            Observed::First(snapshot) | Observed::Same(snapshot) => {
                self.keep(&snapshot);
                self.set(Ok(State { snapshot, stale: None }));
            }
            Observed::Stale(snapshot, why) => self.set(Ok(State { snapshot, stale: Some(why.to_string()) })),
            Observed::Changed(change) => {
                let (on, off) = (&change.turned_on, &change.turned_off);
                tracing::info!(turned_on = ?on, turned_off = ?off, "gates have changed");
                self.keep(&change.current);
                self.set(Ok(State { snapshot: change.current.clone(), stale: None }));
                self.react(&change).await;
            }
        }
    }

    async fn react(&mut self, change: &Change) {
        let leaves = match &mut self.on_change {
            OnChange::Leave => true,
            OnChange::Hook(hook) => hook(change) == Decision::Restart,
            OnChange::Notify => false,
        };
        if leaves {
            self.leave.leave().await;
        }
    }

    /// A file that cannot be used is as good as none, but should not go unnoticed.
    fn read_cache(&mut self) {
        match self.cache.as_ref().map(Cache::read) {
            Some(Ok(cached)) => self.follower.cached = cached,
            Some(Err(error)) => tracing::warn!(error = chain(&error), "starts without a cache of gates"),
            None => {}
        }
    }

    /// What holds does not depend on the disk.
    fn keep(&mut self, snapshot: &Arc<Snapshot>) {
        if let Some(Err(error)) = self.cache.as_mut().map(|cache| cache.keep(snapshot)) {
            tracing::warn!(error = chain(&error), "a start while the API is away will not know these gates");
        }
    }

    fn set(&self, known: Known) {
        self.sender.send_if_modified(|old| {
            let new = *old != known;
            *old = known;
            new
        });
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("an object cannot be read: {0}")]
    Object(#[from] serde_json::Error),
}

/// From the API's store, not from a cache: a program that left because of a change sees that change when it starts.
async fn look(kube: &Kube, dev_build: bool) -> Result<(Option<FeatureGate>, Option<ClusterVersion>), LookError> {
    let place = |plural| Place::cluster(CONFIG, plural);
    let object = kube.get(&place(FeatureGate::PLURAL), FeatureGate::NAME).await?;
    let version = if dev_build { kube.get(&place(ClusterVersion::PLURAL), ClusterVersion::NAME).await? } else { None };
    Ok((object.map(serde_json::from_value).transpose()?, version.map(serde_json::from_value).transpose()?))
}

/// Renews the acknowledgement three times in its life, and at once when the row changes.
async fn renew(
    kube: Kube,
    acknowledge: Acknowledge,
    gates: Option<std::collections::BTreeSet<String>>,
    mut known: watch::Receiver<Known>,
) {
    let place = Place::namespaced(COORDINATION, &acknowledge.namespace, "leases");
    loop {
        let state = known.borrow_and_update().clone();
        if let Ok(state) = state {
            let ack = Ack {
                component: acknowledge.component.clone(),
                instance: acknowledge.instance.clone(),
                version: state.snapshot.row.version.clone(),
                digest: state.snapshot.digest(),
                gates: gates.clone(),
                renewed: 0,
                duration_seconds: acknowledge.duration.as_secs().max(1) as i64,
            };
            if let Err(error) = write_ack(&kube, &place, &ack).await {
                tracing::warn!(%error, "cannot acknowledge the row");
            }
        }
        let _ = tokio::time::timeout(acknowledge.duration / 3, known.changed()).await;
    }
}

async fn write_ack(kube: &Kube, place: &Place, ack: &Ack) -> Result<(), ApiError> {
    let mut lease = ack.to_lease(place.namespace.as_deref().unwrap_or_default(), &kubeapi::micro_time());
    let result = match kube.get(place, &ack.name()).await? {
        Some(there) => {
            lease["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
            kube.update(place, &lease).await
        }
        None => kube.create(place, &lease).await,
    };
    match result.map(|_: Value| ()) {
        Err(error) if error.cause() == Cause::Conflict => Ok(()),
        other => other,
    }
}
