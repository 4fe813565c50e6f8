//! Texts made from the registry: the options in `--help`, and a table for the documentation.

use crate::{ALL_ALPHA, ALL_BETA, Level, Registry, Stage, Version};

impl Registry {
    /// The options of a level's flag, one a line, in the form etcd and Kubernetes print:
    /// `LeaseCheckpoint=true|false (ALPHA - default=false)`. GA and deprecated ones are left out, as there: nobody
    /// should begin to set them.
    pub fn help(&self, level: Level, version: Version) -> Vec<String> {
        let option = |name: &str, stage: Stage, default: bool| {
            format!("{name}=true|false ({} - default={default})", stage.label())
        };
        let mut lines = vec![option(ALL_ALPHA, Stage::Alpha, false), option(ALL_BETA, Stage::Beta, false)];
        let specs = self.level(level).filter_map(|feature| Some((feature.name, feature.spec_at(version)?)));
        let open = specs.filter(|(_, spec)| matches!(spec.stage, Stage::Alpha | Stage::Beta));
        lines.extend(open.map(|(name, spec)| option(name, spec.stage, spec.default)));
        lines.sort_unstable();
        lines
    }

    /// All features that exist at `version` as a Markdown table, by name.
    pub fn markdown(&self, version: Version) -> String {
        let mut text = String::from(
            "| feature | level | stage | default | since | owner | writes | what it does |\n|---|---|---|---|---|---|---|---|\n",
        );
        for feature in self.features() {
            let (Some(spec), Some(since)) = (feature.spec_at(version), feature.since()) else { continue };
            let lock = if spec.locked { ", locked" } else { "" };
            text.push_str(&format!(
                "| `{}` | {} | {} | {}{lock} | {since} | {} | {} | {} |\n",
                feature.name,
                feature.level,
                spec.stage.word(),
                if spec.default { "on" } else { "off" },
                cell(feature.owner),
                if feature.writes.is_empty() { "–".to_owned() } else { cell(feature.writes) },
                cell(feature.reason),
            ));
        }
        text
    }
}

/// A `|` would end the cell, a line break the row.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
