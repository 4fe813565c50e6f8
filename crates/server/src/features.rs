//! The server-level features of this member, from `--feature-gates`.

use featuregate::{Gates, Level, MetricRow, Notice};
use membership::features;

use crate::config::Config;

#[derive(Debug, thiserror::Error)]
pub enum FeatureError {
    #[error("the table of features is wrong: {0}")]
    Table(String),
    #[error("--feature-gates: {text}{}", hints.as_deref().map(|h| format!("; {h}")).unwrap_or_default())]
    Flag { text: String, hints: Option<String> },
}

/// What is on in this member.
#[derive(Debug, Clone)]
pub struct Features {
    gates: Gates,
}

impl Features {
    pub fn from_flags(config: &Config) -> Result<Features, FeatureError> {
        let registry = features::registry().map_err(|e| FeatureError::Table(e.to_string()))?;
        let resolved = registry.parse(Level::Server, features::VERSION, &config.feature_gates).map_err(|errors| {
            let hints = errors.0.iter().find_map(|e| e.hint());
            FeatureError::Flag { text: errors.to_string(), hints }
        })?;
        for notice in &resolved.notices {
            warn(notice);
        }
        Ok(Features { gates: resolved.gates })
    }

    pub fn enabled(&self, name: &str) -> bool {
        self.gates.enabled(name)
    }

    pub fn metric_rows(&self) -> impl Iterator<Item = MetricRow> + '_ {
        self.gates.metric_rows()
    }
}

fn warn(notice: &Notice) {
    tracing::warn!("{notice}");
}
