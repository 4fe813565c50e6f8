//! The objects of `config.openshift.io/v1`, as far as feature sets go. What is not known here is kept as it is, so that
//! an object that is read and written loses nothing.

mod cluster_operator;
mod cluster_version;
mod condition;
mod feature_gate;
mod in_force;
mod spec;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use cluster_operator::{ClusterOperator, ClusterOperatorStatus, OperandVersion};
pub use cluster_version::{ClusterVersion, ClusterVersionStatus, HISTORY_MAX, Release, Update, UpdateState};
pub use condition::{Condition, ConditionStatus, find_condition, set_condition};
pub use feature_gate::{FeatureGate, FeatureGateStatus, GateName, StatusRow};
pub use in_force::{FEATURE_SET_IN_FORCE, InForce, UNKNOWN};
pub use spec::{CustomLists, FeatureGateSpec, Unreadable};

pub const GROUP: &str = "config.openshift.io";
pub const API_VERSION: &str = "config.openshift.io/v1";

/// Everything that has no field of its own.
pub type Extra = Map<String, Value>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    #[serde(default)]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(flatten)]
    pub extra: Extra,
}

impl Meta {
    pub fn named(name: &str) -> Meta {
        Meta { name: name.to_owned(), ..Meta::default() }
    }
}

/// Go writes `null` for lists and maps that are empty.
pub(crate) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
