//! What is on and off, as of one moment: it never changes, so that one piece of work sees one answer.

use std::sync::Arc;

use featureset::{Row, object::FeatureGate, yaml};

use crate::asked::Asked;

/// Where a snapshot comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The row in the cluster.
    Cluster,
    /// The same as it was when the API answered last, from the disk.
    Cache,
    /// Defaults that the program brought, until there is a row.
    Defaults,
    Manifest,
    /// Made by hand, for tests.
    Fixed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub row: Row,
    /// The set that the row is made from, as `spec.featureSet` would have it: Default is empty. While the cluster keeps the rows of
    /// a one-way set that was left, the object shows another.
    pub feature_set: String,
    pub source: Source,
    /// What was asked of it, and of those before it.
    pub asked: Asked,
}

/// What holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub snapshot: Arc<Snapshot>,
    /// Why the snapshot is no longer confirmed; it stays in force.
    pub stale: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error(transparent)]
    Yaml(#[from] yaml::YamlError),
    #[error("there are {0} FeatureGates, and one is needed")]
    Count(usize),
    #[error("the FeatureGate cannot be read: {0}")]
    Object(String),
    #[error("there is no row for version {version:?}; there are rows for {rows:?}")]
    NoRow { version: String, rows: Vec<String> },
}

impl Snapshot {
    pub(crate) fn new(row: Row, feature_set: String, source: Source) -> Snapshot {
        Snapshot { row, feature_set, source, asked: Asked::default() }
    }

    /// `None` if this version does not know the gate. Questions are counted ([`crate::Gates::metrics`]).
    pub fn get(&self, gate: impl AsRef<str>) -> Option<bool> {
        self.asked.count(gate.as_ref());
        self.row.get(gate.as_ref())
    }

    /// A gate that this version does not know is off. Name gates with [`crate::Builder::need`] to find that out at start.
    pub fn is_enabled(&self, gate: impl AsRef<str>) -> bool {
        self.get(gate).unwrap_or(false)
    }

    pub fn digest(&self) -> String {
        self.row.digest()
    }

    pub fn fixed<'a>(on: impl IntoIterator<Item = &'a str>, off: impl IntoIterator<Item = &'a str>) -> Snapshot {
        let names = |names: &mut dyn Iterator<Item = &'a str>| names.map(str::to_owned).collect();
        let row = Row {
            version: "fixed".to_owned(),
            enabled: names(&mut on.into_iter()),
            disabled: names(&mut off.into_iter()),
        };
        Snapshot::new(row, String::new(), Source::Fixed)
    }

    /// For bootstrap, before there is an API: a manifest as `lockgate gates render` writes it.
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
