//! ClusterVersion `version`: which versions are installed or being installed, newest first.

use serde::{Deserialize, Serialize};

use super::{API_VERSION, Condition, Extra, Meta, null_is_empty};

/// As many entries as a history keeps.
pub const HISTORY_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersion {
    #[serde(default = "api_version")]
    pub api_version: String,
    #[serde(default = "kind")]
    pub kind: String,
    #[serde(default)]
    pub metadata: Meta,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub spec: Extra,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub status: ClusterVersionStatus,
    #[serde(flatten)]
    pub extra: Extra,
}

fn api_version() -> String {
    API_VERSION.to_owned()
}

fn kind() -> String {
    ClusterVersion::KIND.to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersionStatus {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub desired: Release,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub history: Vec<Update>,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Release {
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub image: String,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdateState {
    Completed,
    Partial,
    /// The API takes any text. A slip of the pen there must not take all rows away from the controller's sight.
    #[serde(untagged)]
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Update {
    pub state: UpdateState,
    #[serde(default)]
    pub started_time: Option<String>,
    /// Written as `null` while it is not done: the field must be there.
    #[serde(default)]
    pub completion_time: Option<String>,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub image: String,
    #[serde(default)]
    pub verified: bool,
    #[serde(flatten)]
    pub extra: Extra,
}

impl ClusterVersion {
    pub const KIND: &str = "ClusterVersion";
    pub const PLURAL: &str = "clusterversions";
    pub const NAME: &str = "version";

    /// Versions of the history, newest first, each once; entries without a version say nothing.
    pub fn versions(&self) -> Vec<&str> {
        let mut versions: Vec<&str> = Vec::new();
        for update in &self.status.history {
            if !update.version.is_empty() && !versions.contains(&update.version.as_str()) {
                versions.push(&update.version);
            }
        }
        versions
    }

    /// Versions that parts of the cluster may run with: all since the last one that was completed.
    pub fn running(&self) -> Vec<&str> {
        let is_done = |update: &Update| update.state == UpdateState::Completed && !update.version.is_empty();
        let done = self.status.history.iter().position(is_done);
        let since = self.status.history.iter().take(done.map_or(usize::MAX, |done| done + 1));
        let desired = std::iter::once(self.status.desired.version.as_str());
        let all: std::collections::BTreeSet<&str> =
            desired.chain(since.map(|update| update.version.as_str())).collect();
        all.into_iter().filter(|version| !version.is_empty()).collect()
    }

    /// What the cluster is to run; a history without it starts with what it runs.
    pub fn latest(&self) -> Option<&str> {
        let desired = Some(self.status.desired.version.as_str()).filter(|version| !version.is_empty());
        desired.or_else(|| self.versions().first().copied())
    }
}
