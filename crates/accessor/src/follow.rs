//! What a look at the cluster means: decided without I/O. Only what is on and off counts; orders of lists, other versions'
//! rows and looking again mean nothing.

use std::{collections::BTreeSet, sync::Arc};

use featureset::{
    Row,
    object::{ClusterVersion, FeatureGate},
    plan::difference,
};

use crate::{
    asked::Asked,
    snapshot::{Snapshot, Source},
};

/// Why the row of the program's version is not known, or no longer confirmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// The API was not queried yet.
    #[error("the cluster was not looked at yet")]
    NotAsked,
    /// The query of the API failed. Holds the error's text.
    #[error("the API does not answer: {0}")]
    NoApi(String),
    /// The object `FeatureGate` named `cluster` does not exist.
    #[error("there is no FeatureGate cluster")]
    NoFeatureGate,
    /// A development build needs the version of the cluster, and no `ClusterVersion` states one.
    #[error("this is a development build, and there is no ClusterVersion with a version to take the row of")]
    NoClusterVersion,
    /// The `FeatureGate` has no row for the version.
    #[error("there is no row for version {version:?}; there are rows for {rows:?}")]
    NoRow {
        /// The version whose row is missing.
        version: String,
        /// The versions that have a row.
        rows: Vec<String>,
    },
    /// The row lacks gates that the program needs ([`crate::Builder::need`]). Waiting does not
    /// help: the program and the cluster's registry do not match.
    #[error("version {version:?} does not know the gates {gates:?}, which this program asks for")]
    UnknownGates {
        /// The version of the row.
        version: String,
        /// The missing gates, sorted by name.
        gates: Vec<String>,
    },
}

/// A difference between two rows that concerns at least one followed gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The snapshot before the change.
    pub previous: Arc<Snapshot>,
    /// The snapshot after the change.
    pub current: Arc<Snapshot>,
    /// All gates that were off or absent and are on, also those that are not followed.
    pub turned_on: BTreeSet<String>,
    /// All gates that were on and are off or absent, also those that are not followed.
    pub turned_off: BTreeSet<String>,
}

/// The result of one look at the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// There is no snapshot yet, for this reason.
    Waiting(NotReady),
    /// The first snapshot.
    First(Arc<Snapshot>),
    /// The snapshot in force. Nothing changed, or no gate that the program follows.
    Same(Arc<Snapshot>),
    /// Followed gates have changed.
    Changed(Change),
    /// The row can no longer be read, for this reason. The snapshot stays in force.
    Stale(Arc<Snapshot>, NotReady),
}

/// The decisions of a program that follows its gates, without I/O: feed it what the API returns.
/// [`Gates`](crate::Gates) runs one in the background.
#[derive(Clone, Debug)]
pub struct Follower {
    /// The version whose row to take. `None` for a development build: the cluster's newest.
    pub version: Option<String>,
    /// The gates that the row must contain.
    pub needed: BTreeSet<String>,
    /// The gates whose changes count. `None` for all.
    pub followed: Option<BTreeSet<String>>,
    /// The row to use until the cluster has one.
    pub defaults: Option<Row>,
    /// The snapshot of the last run, to use while the API does not respond at all.
    pub cached: Option<Snapshot>,
    current: Option<Arc<Snapshot>>,
    asked: Asked,
}

impl Follower {
    /// A follower of all gates of the row for `version`, without defaults or cache.
    pub fn new(version: Option<String>) -> Follower {
        Follower {
            version,
            needed: BTreeSet::new(),
            followed: None,
            defaults: None,
            cached: None,
            current: None,
            asked: Asked::default(),
        }
    }

    /// Evaluates the objects that the API returned; `None` for an object that does not exist.
    /// `cluster_version` matters to a development build only.
    pub fn observe(&mut self, object: Option<&FeatureGate>, cluster_version: Option<&ClusterVersion>) -> Observed {
        let looked = self.look(object, cluster_version);
        match (looked, self.current.clone()) {
            (Ok(new), None) => Observed::First(self.hold(new)),
            (Ok(new), Some(old)) => self.compare(old, new),
            (Err(why), Some(old)) => Observed::Stale(old, why),
            (Err(why @ NotReady::UnknownGates { .. }), None) => Observed::Waiting(why),
            (Err(why), None) => match self.defaults.clone() {
                Some(row) => Observed::First(self.hold(Snapshot::new(row, String::new(), Source::Defaults))),
                None => Observed::Waiting(why),
            },
        }
    }

    /// Evaluates a failed query: the snapshot in force stays, else the cached one becomes stale.
    pub fn no_api(&mut self, error: &str) -> Observed {
        let why = NotReady::NoApi(error.to_owned());
        let knows = |cached: &Snapshot| self.needed.iter().all(|gate| cached.row.get(gate).is_some());
        match (self.current.clone(), self.cached.take_if(|cached| knows(cached))) {
            (Some(current), _) => Observed::Stale(current, why),
            (None, Some(cached)) => Observed::Stale(self.hold(cached), why),
            (None, None) => Observed::Waiting(why),
        }
    }

    fn look(
        &self,
        object: Option<&FeatureGate>,
        cluster_version: Option<&ClusterVersion>,
    ) -> Result<Snapshot, NotReady> {
        let object = object.ok_or(NotReady::NoFeatureGate)?;
        let latest = || cluster_version.and_then(ClusterVersion::latest).ok_or(NotReady::NoClusterVersion);
        let version = self.version.as_deref().map_or_else(latest, Ok)?;
        let snapshot = Snapshot::of_object(object, version, Source::Cluster).ok_or_else(|| NotReady::NoRow {
            version: version.to_owned(),
            rows: object.versions().into_iter().map(str::to_owned).collect(),
        })?;
        let unknown: Vec<String> =
            self.needed.iter().filter(|gate| snapshot.row.get(gate).is_none()).cloned().collect();
        if unknown.is_empty() {
            Ok(snapshot)
        } else {
            Err(NotReady::UnknownGates { version: version.to_owned(), gates: unknown })
        }
    }

    /// What was asked is counted over all snapshots.
    fn hold(&mut self, snapshot: Snapshot) -> Arc<Snapshot> {
        let snapshot = Arc::new(Snapshot { asked: self.asked.clone(), ..snapshot });
        self.current = Some(snapshot.clone());
        snapshot
    }

    fn compare(&mut self, old: Arc<Snapshot>, new: Snapshot) -> Observed {
        if *old == new {
            return Observed::Same(old);
        }
        let (turned_on, turned_off) = difference(&old.row, &new.row);
        let follows = |gate: &&String| self.followed.as_ref().is_none_or(|gates| gates.contains(*gate));
        let matters = turned_on.iter().chain(&turned_off).any(|gate| follows(&gate));
        let current = self.hold(new);
        if matters {
            Observed::Changed(Change { previous: old, current, turned_on, turned_off })
        } else {
            Observed::Same(current)
        }
    }
}
