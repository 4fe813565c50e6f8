//! Texts made from the registry: the options in `--help`, and a table for the documentation.

use crate::{ALL_ALPHA, ALL_BETA, Feature, Level, Registry, Stage, Version};

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
            let Some(row) = Cells::of(feature, version) else { continue };
            text.push_str(&format!(
                "| `{}` | {} | {} | {} | {} | {} | {} | {} |\n",
                row.name, feature.level, row.stage, row.default, row.since, row.owner, row.writes, row.reason
            ));
        }
        text
    }

    /// The features of one level that exist at `version`, for their users: without who answers for them.
    pub fn markdown_of(&self, level: Level, version: Version) -> String {
        let mut text = String::from(
            "| feature | stage | default | since | what it does | data it leaves |\n|---|---|---|---|---|---|\n",
        );
        for row in self.level(level).filter_map(|feature| Cells::of(feature, version)) {
            let Cells { name, stage, default, since, reason, writes, .. } = row;
            text.push_str(&format!("| `{name}` | {stage} | {default} | {since} | {reason} | {writes} |\n"));
        }
        text
    }
}

/// What the cells of a feature's row say.
struct Cells {
    name: &'static str,
    stage: &'static str,
    default: String,
    since: Version,
    owner: String,
    writes: String,
    reason: String,
}

impl Cells {
    fn of(feature: &Feature, version: Version) -> Option<Cells> {
        let (spec, since) = (feature.spec_at(version)?, feature.since()?);
        let lock = if spec.locked { ", locked" } else { "" };
        Some(Cells {
            name: feature.name,
            stage: spec.stage.word(),
            default: format!("{}{lock}", if spec.default { "on" } else { "off" }),
            since,
            owner: cell(feature.owner),
            writes: if feature.writes.is_empty() { "–".to_owned() } else { cell(feature.writes) },
            reason: cell(feature.reason),
        })
    }
}

/// A `|` would end the cell, a line break the row.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
