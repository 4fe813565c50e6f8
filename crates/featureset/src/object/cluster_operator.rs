//! ClusterOperator: how the controller says how it is.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{API_VERSION, Condition, Extra, Meta, null_is_empty};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOperator {
    #[serde(default = "api_version")]
    pub api_version: String,
    #[serde(default = "kind")]
    pub kind: String,
    #[serde(default)]
    pub metadata: Meta,
    /// Empty by its definition, and whatever a definition lets in that somebody has loosened.
    #[serde(default)]
    pub spec: Value,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub status: ClusterOperatorStatus,
    #[serde(flatten)]
    pub extra: Extra,
}

fn api_version() -> String {
    API_VERSION.to_owned()
}

fn kind() -> String {
    ClusterOperator::KIND.to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterOperatorStatus {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub conditions: Vec<Condition>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub versions: Vec<OperandVersion>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperandVersion {
    pub name: String,
    pub version: String,
    #[serde(flatten)]
    pub extra: Extra,
}

impl ClusterOperator {
    pub const KIND: &str = "ClusterOperator";
    pub const PLURAL: &str = "clusteroperators";
    /// The name under which OpenShift's own controller reports.
    pub const NAME: &str = "config-operator";

    pub fn new(name: &str) -> ClusterOperator {
        ClusterOperator {
            api_version: api_version(),
            kind: kind(),
            metadata: Meta::named(name),
            spec: Value::Object(Extra::new()),
            status: ClusterOperatorStatus::default(),
            extra: Extra::new(),
        }
    }

    pub fn version(&self, name: &str) -> Option<&str> {
        self.status.versions.iter().find(|operand| operand.name == name).map(|operand| operand.version.as_str())
    }

    pub fn set_version(&mut self, name: &str, version: &str) {
        match self.status.versions.iter_mut().find(|operand| operand.name == name) {
            Some(operand) => operand.version = version.to_owned(),
            None => self.status.versions.push(OperandVersion {
                name: name.to_owned(),
                version: version.to_owned(),
                extra: Extra::new(),
            }),
        }
    }
}
