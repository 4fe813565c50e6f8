//! The features of this member: server-level ones from `--feature-gates`, and what it proposes to the cluster, from
//! `--cluster-feature-gates`. Both flags are read at start and never again.

use std::{collections::BTreeMap, sync::Arc};

use featuregate::{Gates, Level, MetricRow, Notice, Registry, SetErrors, Settings};
use membership::{features, registry_version};
use node::{FeatureFlags, OwnFeatures};
use proto::Version;

use crate::config::Config;

#[derive(Debug, thiserror::Error)]
pub enum FeatureError {
    #[error("the table of features is wrong: {0}")]
    Table(String),
    #[error("{flag}: {text}{}", hints.as_deref().map(|h| format!("; {h}")).unwrap_or_default())]
    Flag { flag: &'static str, text: String, hints: Option<String> },
}

/// What is on in this member, and what it wants for the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Features {
    gates: Gates,
    registry: Arc<Registry>,
    cluster: Settings,
}

impl Features {
    pub(crate) fn from_flags(config: &Config) -> Result<Features, FeatureError> {
        let registry = features::registry().map_err(|e| FeatureError::Table(e.to_string()))?;
        let resolved = registry
            .parse(Level::Server, features::VERSION, &config.feature_gates)
            .map_err(|errors| refused(Level::Server, &errors))?;
        resolved.notices.iter().for_each(warn);
        if resolved.gates.enabled("LeaseCheckpointPersist") {
            tracing::warn!(
                "feature gate LeaseCheckpointPersist=true has no effect: checkpoints are always kept on disk"
            );
        }
        let cluster: Settings = config
            .cluster_feature_gates
            .parse()
            .map_err(|error: featuregate::ParseError| refused(Level::Cluster, &SetErrors(vec![error.into()])))?;
        let features = Features { gates: resolved.gates, registry: Arc::new(registry), cluster };
        // A new data dir has no cluster version; an existing one is judged by what it holds, before it is changed.
        if !node::DataDir::new(&config.data_dir, config.wal_dir.clone()).db().exists() {
            features.check_cluster_flags(None)?;
        }
        Ok(features)
    }

    pub(crate) fn enabled(&self, name: &str) -> bool {
        self.gates.enabled(name)
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn metric_rows(&self) -> impl Iterator<Item = MetricRow> + '_ {
        self.gates.metric_rows()
    }

    /// What the node needs to know of the cluster flags.
    pub(crate) fn cluster_flags(&self) -> FeatureFlags {
        let (own, judge) = (self.clone(), self.clone());
        let own: OwnFeatures = Arc::new(move |version| own.proposal(version));
        let check = move |version| judge.check_cluster_flags(version).map_err(|error| error.to_string());
        FeatureFlags { own, check: Arc::new(check) }
    }

    /// Judges the cluster flags as of the cluster version in the data dir, if it has one.
    fn check_cluster_flags(&self, version: Option<Version>) -> Result<(), FeatureError> {
        let version = version.map(registry_version);
        let notices = self.registry.check_start(&self.cluster, features::VERSION, version);
        notices.map_err(|errors| refused(Level::Cluster, &errors))?.iter().for_each(warn);
        Ok(())
    }

    /// This member's value for every cluster feature that it knows at the version.
    fn proposal(&self, version: Version) -> BTreeMap<String, bool> {
        let resolved = self.registry.proposal(registry_version(version), &self.cluster);
        resolved.gates.iter().map(|gate| (gate.name.to_owned(), gate.enabled)).collect()
    }
}

fn refused(level: Level, errors: &SetErrors) -> FeatureError {
    let hints = errors.0.iter().find_map(|e| e.hint());
    FeatureError::Flag { flag: level.flag(), text: errors.to_string(), hints }
}

fn warn(notice: &Notice) {
    tracing::warn!("{notice}");
}
