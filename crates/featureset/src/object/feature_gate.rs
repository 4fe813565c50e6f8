//! FeatureGate `cluster`: which set was chosen, and the rows of all versions.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{API_VERSION, Condition, Extra, FeatureGateSpec, Meta, null_is_empty};
use crate::resolve::Row;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeatureGate {
    #[serde(default = "api_version")]
    pub api_version: String,
    #[serde(default = "kind")]
    pub kind: String,
    #[serde(default)]
    pub metadata: Meta,
    #[serde(default = "FeatureGateSpec::missing", deserialize_with = "null_is_empty")]
    pub spec: FeatureGateSpec,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "FeatureGateStatus::is_empty")]
    pub status: FeatureGateStatus,
    #[serde(flatten)]
    pub extra: Extra,
}

fn api_version() -> String {
    API_VERSION.to_owned()
}

fn kind() -> String {
    FeatureGate::KIND.to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeatureGateStatus {
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub feature_gates: Vec<StatusRow>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// One version's row as the API has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusRow {
    #[serde(default)]
    pub version: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub enabled: Vec<GateName>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub disabled: Vec<GateName>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateName {
    pub name: String,
    #[serde(flatten)]
    pub extra: Extra,
}

impl FeatureGate {
    pub const KIND: &str = "FeatureGate";
    pub const PLURAL: &str = "featuregates";
    /// The only name it may have.
    pub const NAME: &str = "cluster";

    pub fn new(spec: FeatureGateSpec) -> FeatureGate {
        FeatureGate {
            api_version: api_version(),
            kind: kind(),
            metadata: Meta::named(FeatureGate::NAME),
            spec,
            status: FeatureGateStatus::default(),
            extra: Extra::new(),
        }
    }

    /// The row of a version, if there is one; names that stand in both lists count as off.
    pub fn row(&self, version: &str) -> Option<Row> {
        self.status.feature_gates.iter().find(|row| row.version == version).map(StatusRow::to_row)
    }

    pub fn versions(&self) -> Vec<&str> {
        self.status.feature_gates.iter().map(|row| row.version.as_str()).collect()
    }
}

impl FeatureGateStatus {
    fn is_empty(&self) -> bool {
        self.conditions.is_empty() && self.feature_gates.is_empty() && self.extra.is_empty()
    }
}

impl StatusRow {
    pub fn of_row(row: &Row) -> StatusRow {
        let names = |names: &BTreeSet<String>| {
            names.iter().map(|name| GateName { name: name.clone(), extra: Extra::new() }).collect()
        };
        StatusRow {
            version: row.version.clone(),
            enabled: names(&row.enabled),
            disabled: names(&row.disabled),
            extra: Extra::new(),
        }
    }

    pub fn to_row(&self) -> Row {
        let names = |names: &[GateName]| names.iter().map(|gate| gate.name.clone()).collect::<BTreeSet<String>>();
        let disabled = names(&self.disabled);
        let enabled = names(&self.enabled).difference(&disabled).cloned().collect();
        Row { version: self.version.clone(), enabled, disabled }
    }
}
