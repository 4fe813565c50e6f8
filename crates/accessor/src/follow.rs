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

/// Why there is no answer yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("the cluster was not looked at yet")]
    NotAsked,
    #[error("the API does not answer: {0}")]
    NoApi(String),
    #[error("there is no FeatureGate cluster")]
    NoFeatureGate,
    #[error("this is a development build, and there is no ClusterVersion with a version to take the row of")]
    NoClusterVersion,
    #[error("there is no row for version {version:?}; there are rows for {rows:?}")]
    NoRow { version: String, rows: Vec<String> },
    #[error("version {version:?} does not know the gates {gates:?}, which this program asks for")]
    UnknownGates { version: String, gates: Vec<String> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub previous: Arc<Snapshot>,
    pub current: Arc<Snapshot>,
    pub turned_on: BTreeSet<String>,
    pub turned_off: BTreeSet<String>,
}

/// What follows from a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    Waiting(NotReady),
    First(Arc<Snapshot>),
    /// Nothing, or nothing that this program follows.
    Same(Arc<Snapshot>),
    Changed(Change),
    /// The row is gone or broken; the last snapshot stays in force.
    Stale(Arc<Snapshot>, NotReady),
}

#[derive(Clone, Debug)]
pub struct Follower {
    /// `None` for a development build: the cluster's newest.
    pub version: Option<String>,
    /// Gates that must be known.
    pub needed: BTreeSet<String>,
    /// Gates a change of which matters; `None` is any.
    pub followed: Option<BTreeSet<String>>,
    /// What holds until there is a row.
    pub defaults: Option<Row>,
    /// What held when the API answered last, for as long as it does not answer at all.
    pub cached: Option<Snapshot>,
    current: Option<Arc<Snapshot>>,
    asked: Asked,
}

impl Follower {
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

    /// The API does not answer: what is known stays, else what is cached holds.
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
