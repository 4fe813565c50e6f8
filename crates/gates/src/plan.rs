//! `plan`: what choosing another set would do to a cluster, before anyone does it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use featureset::{
    Registry, Set,
    object::{CustomLists, FeatureGateSpec},
    plan::{SetPlan, plan_set_change},
};

use crate::{
    disk::{self, Source},
    output::Output,
    render::read_manifest,
};

#[derive(clap::Args, Debug)]
pub struct Plan {
    /// The set to go to.
    #[arg(long)]
    to: Set,
    /// Gates to force on, with CustomNoUpgrade.
    #[arg(long, value_delimiter = ',')]
    enable: Vec<String>,
    /// Gates to force off, with CustomNoUpgrade.
    #[arg(long, value_delimiter = ',')]
    disable: Vec<String>,
    /// The FeatureGate as it is now; Default unless given.
    #[arg(long)]
    manifest: Option<PathBuf>,
    /// Registries of the installed versions, as files or folders of ConfigMaps; gates.toml unless given.
    #[arg(long)]
    registry: Vec<PathBuf>,
    #[arg(long)]
    profile: Option<String>,
}

impl Plan {
    pub fn run(self, path: &Path) -> Result<Output> {
        let registries = match self.registry.is_empty() {
            true => {
                let source = Source::read(path)?;
                vec![Registry::of_file(&source.file, &source.file.version)?]
            }
            false => disk::registries(&self.registry)?,
        };
        let profile = self.profile(&registries)?;
        let now = self.manifest.as_deref().map(read_manifest).transpose()?.map(|object| object.spec);
        let plan = plan_set_change(&now.unwrap_or_default(), &self.spec(), &registries, &profile, &[])?;
        Ok(Output { text: describe(&plan), json: serde_json::to_value(&plan)?, good: plan.refused.is_none() })
    }

    fn spec(&self) -> FeatureGateSpec {
        let lists = CustomLists { enabled: self.enable.clone(), disabled: self.disable.clone(), ..Default::default() };
        let custom = !self.enable.is_empty() || !self.disable.is_empty();
        FeatureGateSpec {
            feature_set: Some(self.to.wire().to_owned()),
            custom_no_upgrade: custom.then_some(lists),
            ..Default::default()
        }
    }

    fn profile(&self, registries: &[Registry]) -> Result<String> {
        let known: std::collections::BTreeSet<&String> = registries.iter().flat_map(|r| &r.profiles).collect();
        let names = || known.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        match (&self.profile, known.len()) {
            (Some(profile), _) if known.contains(profile) => Ok(profile.clone()),
            (Some(profile), _) => bail!("unknown profile {profile:?}; known are {}", names()),
            (None, 1) => Ok(names()),
            (None, _) => bail!("choose one of the profiles {} with --profile", names()),
        }
    }
}

fn describe(plan: &SetPlan) -> String {
    let mut text = format!("{} -> {}\n", plan.from, plan.to);
    if let Some(why) = &plan.refused {
        text += &format!("the API refuses this: {why}\n");
    }
    let names = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    for row in &plan.rows {
        text += &format!("version {}:\n", row.version);
        let lines =
            [("turned on", &row.turned_on), ("turned off", &row.turned_off), ("cannot be undone", &row.irreversible)];
        for (what, gates) in lines.into_iter().filter(|(_, gates)| !gates.is_empty()) {
            text += &format!("  {what}: {}\n", names(gates));
        }
        for (gate, dependency) in &row.unmet {
            text += &format!("  {gate} will be on without {dependency}, which it depends on\n");
        }
        if row.turned_on.is_empty() && row.turned_off.is_empty() {
            text += "  nothing changes\n";
        }
    }
    for why in &plan.unreadable {
        text += &format!("cannot be told for {why}\n");
    }
    if !plan.unknown_gates.is_empty() {
        text += &format!("no version knows {}\n", names(&plan.unknown_gates));
    }
    if plan.one_way {
        text += &format!("{} is for ever: there is no way back\n", plan.to);
    }
    if plan.blocks_upgrades {
        text += &format!("the cluster cannot be upgraded any more: {} says Upgradeable=False\n", plan.to);
    }
    for restart in &plan.restarts {
        text += &format!("restarts: {} {} ({})\n", restart.component, restart.instance, restart.version);
    }
    text
}
