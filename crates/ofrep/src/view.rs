//! What the cluster and the store say, as of one moment.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use client::pb::{Feature, FeatureGateStatusResponse};
use featureset::{
    Registry, Row,
    canonical::digest_of_bytes,
    object::{ClusterVersion, FeatureGate},
    registry::GateInfo,
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Gates of feature sets, `NAME`.
    pub sets: Source<Sets>,
    /// Cluster features of a store, `store.NAME`.
    pub store: Source<Store>,
}

impl View {
    /// The same for views that answer alike, also those of another process.
    pub fn id(&self) -> String {
        let sets = match &self.sets {
            Source::Known { value, stale } => format!("{} {}", value.id(), stale.is_some()),
            other => format!("{other:?}"),
        };
        let store = match &self.store {
            Source::Known { value, stale } => format!("{value:?} {}", stale.is_some()),
            other => format!("{other:?}"),
        };
        digest_of_bytes(format!("{sets}\n{store}").as_bytes())
    }
}

/// One of the two, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Source<T> {
    /// Nobody asked to follow it.
    #[default]
    NotFollowed,
    /// It has not answered yet: why.
    Unknown(String),
    /// What it said last; `stale` says why that is not confirmed.
    Known { value: Arc<T>, stale: Option<String> },
}

impl<T> Source<T> {
    pub fn known(value: T) -> Source<T> {
        Source::Known { value: Arc::new(value), stale: None }
    }

    /// It does not answer. What is known stays in force, with the first reason: those that follow are news to nobody.
    #[must_use]
    pub fn lost(&self, why: &str) -> Source<T> {
        match self {
            Source::Known { value, stale } => {
                Source::Known { value: value.clone(), stale: stale.clone().or_else(|| Some(why.to_owned())) }
            }
            Source::NotFollowed | Source::Unknown(_) => Source::Unknown(why.to_owned()),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sets {
    pub rows: Vec<Row>,
    /// By version, the set that its row is made from.
    pub feature_sets: BTreeMap<String, String>,
    /// The version of callers that do not say theirs.
    pub desired: Option<String>,
    /// Who owns which gate, by version.
    pub registries: BTreeMap<String, Registry>,
}

impl Sets {
    pub fn new(
        object: Option<&FeatureGate>,
        cluster_version: Option<&ClusterVersion>,
        registries: BTreeMap<String, Registry>,
    ) -> Sets {
        let rows = object.map(|object| object.status.feature_gates.iter().map(|row| row.to_row()).collect());
        Sets {
            rows: rows.unwrap_or_default(),
            feature_sets: object.map(feature_sets).unwrap_or_default(),
            desired: cluster_version.and_then(ClusterVersion::latest).map(str::to_owned),
            registries,
        }
    }

    fn id(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(Row::digest).collect();
        let registries: Vec<&String> = self.registries.values().map(|registry| &registry.digest).collect();
        format!("{rows:?} {:?} {:?} {registries:?}", self.feature_sets, self.desired)
    }

    pub fn row(&self, version: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.version == version)
    }

    pub fn feature_set(&self, version: &str) -> &str {
        self.feature_sets.get(version).map(String::as_str).unwrap_or_default()
    }

    pub fn info(&self, version: &str, gate: &str) -> Option<&GateInfo> {
        self.registries.get(version)?.gates.get(gate)
    }

    pub fn versions(&self) -> Vec<&str> {
        self.rows.iter().map(|row| row.version.as_str()).collect()
    }
}

fn feature_sets(object: &FeatureGate) -> BTreeMap<String, String> {
    object.versions().into_iter().map(|version| (version.to_owned(), object.set_of_row(version))).collect()
}

/// What matters to callers of a store's status: indices, which move with every entry, do not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    /// X.Y.0; empty while it is not decided.
    pub cluster_version: String,
    pub features: BTreeMap<String, StoreFeature>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreFeature {
    pub enabled: bool,
    /// Empty if the member that answered does not know the feature.
    pub stage: String,
    pub default_enabled: bool,
    pub locked: bool,
    pub held_off_by: BTreeSet<String>,
}

impl Store {
    pub fn new(status: FeatureGateStatusResponse) -> Store {
        let features = status.features.into_iter().map(|feature| (feature.name.clone(), StoreFeature::new(feature)));
        Store { cluster_version: status.cluster_version, features: features.collect() }
    }

    pub fn names(&self) -> Vec<&str> {
        self.features.keys().map(String::as_str).collect()
    }
}

impl StoreFeature {
    fn new(feature: Feature) -> StoreFeature {
        StoreFeature {
            enabled: feature.enabled,
            stage: feature.stage,
            default_enabled: feature.default_enabled,
            locked: feature.locked,
            // Members are named in no order: another one is no change.
            held_off_by: feature.held_off_by.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_stays_in_force_with_the_first_reason() {
        let never = Source::<Store>::Unknown("not asked yet".to_owned()).lost("refused");
        assert_eq!(never, Source::Unknown("refused".to_owned()));
        let lost = Source::known(Store::default()).lost("refused").lost("too late");
        assert_eq!(lost, Source::Known { value: Arc::new(Store::default()), stale: Some("refused".to_owned()) });
    }
}
