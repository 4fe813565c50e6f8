//! What is on and off, as of one moment: it never changes, so that one piece of work sees one answer.

use std::sync::Arc;

use featureset::{Row, object::FeatureGate, yaml};

use crate::asked::Asked;

/// The origin of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The row in the cluster's `FeatureGate`.
    Cluster,
    /// The row that was read from the cluster in an earlier run, from [`crate::Builder::cache`].
    Cache,
    /// The program's own registry, until the cluster has a row; see [`crate::Builder::defaults`].
    Defaults,
    /// A manifest; see [`Snapshot::of_manifest`].
    Manifest,
    /// Fixed values for tests; see [`Snapshot::fixed`].
    Fixed,
}

/// The values of all gates of one version at one time. It never changes, so that one task sees
/// consistent values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The gates that are on and those that are off.
    pub row: Row,
    /// The set that the row is made from, written as in `spec.featureSet`: empty for `Default`. It
    /// differs from the object's field while the cluster keeps the rows of a one-way set that was
    /// left. Always empty for [`Source::Defaults`] and [`Source::Fixed`].
    pub feature_set: String,
    /// The origin of the row.
    pub source: Source,
    /// Counts the queries of this snapshot and of those before it.
    pub asked: Asked,
}

/// The snapshot in force, and whether it is confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The snapshot in force.
    pub snapshot: Arc<Snapshot>,
    /// Why the cluster no longer confirms the snapshot, which stays in force. `None` if it is
    /// confirmed.
    pub stale: Option<String>,
}

/// Why [`Snapshot::of_manifest`] failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The text is not valid YAML.
    #[error(transparent)]
    Yaml(#[from] yaml::YamlError),
    /// The text does not have exactly one `FeatureGate`.
    #[error("there are {0} FeatureGates, and one is needed")]
    Count(usize),
    /// The `FeatureGate` does not have the expected fields. Holds the details.
    #[error("the FeatureGate cannot be read: {0}")]
    Object(String),
    /// The `FeatureGate` has no row for the version.
    #[error("there is no row for version {version:?}; there are rows for {rows:?}")]
    NoRow {
        /// The version whose row is missing.
        version: String,
        /// The versions that have a row.
        rows: Vec<String>,
    },
}

impl Snapshot {
    pub(crate) fn new(row: Row, feature_set: String, source: Source) -> Snapshot {
        Snapshot { row, feature_set, source, asked: Asked::default() }
    }

    /// Returns whether the gate is on, or `None` if this version does not have it. Counts as a
    /// query in [`crate::Gates::metrics`].
    pub fn get(&self, gate: impl AsRef<str>) -> Option<bool> {
        self.asked.count(gate.as_ref());
        self.row.get(gate.as_ref())
    }

    /// Whether the gate is on. False also if this version does not have it; name gates with
    /// [`crate::Builder::need`] to detect that at start. Counts as a query in
    /// [`crate::Gates::metrics`].
    pub fn is_enabled(&self, gate: impl AsRef<str>) -> bool {
        self.get(gate).unwrap_or(false)
    }

    /// The digest of the row, which is equal for rows with equal version and values. See
    /// [`Row::digest`].
    pub fn digest(&self) -> String {
        self.row.digest()
    }

    /// Returns a snapshot with these gates on and off, for tests. Its version is `fixed`.
    pub fn fixed<'a>(on: impl IntoIterator<Item = &'a str>, off: impl IntoIterator<Item = &'a str>) -> Snapshot {
        let names = |names: &mut dyn Iterator<Item = &'a str>| names.map(str::to_owned).collect();
        let row = Row {
            version: "fixed".to_owned(),
            enabled: names(&mut on.into_iter()),
            disabled: names(&mut off.into_iter()),
        };
        Snapshot::new(row, String::new(), Source::Fixed)
    }

    /// Reads the row of `version` from a manifest as `lockgate gates render` writes it, for the
    /// bootstrap of a cluster without an API.
    pub fn of_manifest(text: &str, version: &str) -> Result<Snapshot, ManifestError> {
        let objects = yaml::objects(text)?;
        let mut found: Vec<_> = objects.into_iter().filter(|object| object["kind"] == FeatureGate::KIND).collect();
        let (Some(object), true) = (found.pop(), found.is_empty()) else {
            return Err(ManifestError::Count(found.len()));
        };
        let object: FeatureGate =
            serde_json::from_value(object).map_err(|error| ManifestError::Object(error.to_string()))?;
        Snapshot::of_object(&object, version, Source::Manifest).ok_or_else(|| ManifestError::NoRow {
            version: version.to_owned(),
            rows: object.versions().into_iter().map(str::to_owned).collect(),
        })
    }

    pub(crate) fn of_object(object: &FeatureGate, version: &str, source: Source) -> Option<Snapshot> {
        object.row(version).map(|row| Snapshot::new(row, object.set_of_row(version), source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_is_the_one_that_the_row_is_made_from() {
        let text = r#"{"kind": "FeatureGate", "spec": {"featureSet": ""}, "status": {
            "conditions": [{"type": "FeatureSetInForce", "status": "True", "reason": "DevPreviewNoUpgrade"}],
            "featureGates": [{"version": "1.4.0", "enabled": [], "disabled": []}]}}"#;
        assert_eq!(Snapshot::of_manifest(text, "1.4.0").unwrap().feature_set, "DevPreviewNoUpgrade");
        let bare = text.replace("FeatureSetInForce", "Other").replace("\"\"", "\"OKD\"");
        assert_eq!(Snapshot::of_manifest(&bare, "1.4.0").unwrap().feature_set, "OKD");
    }
}
