//! What the cluster says, as of one moment.

use std::collections::BTreeMap;

use featureset::{
    Registry, Row,
    object::{ClusterVersion, FeatureGate},
    registry::GateInfo,
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    pub rows: Vec<Row>,
    pub feature_set: String,
    /// The version of callers that do not say theirs.
    pub desired: Option<String>,
    /// Who owns which gate, by version.
    pub registries: BTreeMap<String, Registry>,
}

impl View {
    pub fn new(
        object: Option<&FeatureGate>,
        cluster_version: Option<&ClusterVersion>,
        registries: BTreeMap<String, Registry>,
    ) -> View {
        let rows = object.map(|object| object.status.feature_gates.iter().map(|row| row.to_row()).collect());
        View {
            rows: rows.unwrap_or_default(),
            feature_set: object.and_then(|object| object.spec.feature_set.clone()).unwrap_or_default(),
            desired: cluster_version.and_then(ClusterVersion::latest).map(str::to_owned),
            registries,
        }
    }

    pub fn row(&self, version: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.version == version)
    }

    pub fn info(&self, version: &str, gate: &str) -> Option<&GateInfo> {
        self.registries.get(version)?.gates.get(gate)
    }

    pub fn versions(&self) -> Vec<&str> {
        self.rows.iter().map(|row| row.version.as_str()).collect()
    }
}
