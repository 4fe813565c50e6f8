//! `plan`: what choosing another set would do to a cluster, before anyone does it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use featureset::{
    Registry, Set,
    config_map::NAMESPACE,
    object::{CustomLists, FeatureGateSpec},
    plan::{SetPlan, plan_set_change},
};

use crate::{output::Output, plan_source};

#[derive(clap::Args, Debug)]
pub(crate) struct Plan {
    /// The set to go to.
    #[arg(long)]
    to: Set,
    /// Gates to force on, with CustomNoUpgrade.
    #[arg(long, value_delimiter = ',')]
    enable: Vec<String>,
    /// Gates to force off, with CustomNoUpgrade.
    #[arg(long, value_delimiter = ',')]
    disable: Vec<String>,
    /// Plans for the cluster that kubectl would speak to, with what is there: choice, versions, who restarts, fields.
    #[arg(long)]
    cluster: bool,
    /// Plans for the cluster of this file.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Where registries, audit trail and leases of the cluster are.
    #[arg(long, default_value = NAMESPACE)]
    namespace: String,
    #[command(flatten)]
    files: Files,
    /// Needed where registries have several.
    #[arg(long)]
    profile: Option<String>,
}

/// What to plan with, where no cluster is asked.
#[derive(clap::Args, Debug)]
pub(crate) struct Files {
    /// The FeatureGate as it is now; Default unless given.
    #[arg(long, conflicts_with_all = ["cluster", "kubeconfig"])]
    pub manifest: Option<PathBuf>,
    /// Registries of the installed versions, as files or folders of ConfigMaps; gates.toml unless given.
    #[arg(long, conflicts_with_all = ["cluster", "kubeconfig"])]
    pub registry: Vec<PathBuf>,
    /// Definitions of resources whose field gates may follow, as files or folders.
    #[arg(long, conflicts_with_all = ["cluster", "kubeconfig"])]
    pub crd: Vec<PathBuf>,
    /// The version whose row field gates follow; needed where there are several registries.
    #[arg(long, conflicts_with_all = ["cluster", "kubeconfig"])]
    pub desired_version: Option<String>,
}

impl Plan {
    pub(crate) fn run(self, path: &Path) -> Result<Output> {
        let known = if self.cluster || self.kubeconfig.is_some() {
            plan_source::of_cluster(self.kubeconfig.as_deref(), &self.namespace)?
        } else {
            plan_source::of_files(&self.files, path)?
        };
        let profile = self.profile(&known.registries)?;
        let plan = plan_set_change(&known, &self.spec(), &profile)?;
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
            (None, 0) => bail!("there is no registry to plan with"),
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
    text += &describe_fields(plan);
    if !plan.unknown_gates.is_empty() {
        text += &format!("no version knows {}\n", names(&plan.unknown_gates));
    }
    if plan.one_way {
        text += &format!("{} is for ever: there is no way back\n", plan.to);
    }
    if plan.blocks_upgrades {
        text += &format!("the cluster cannot be upgraded any more: {} says Upgradeable=False\n", plan.to);
    }
    if plan.already_blocked {
        text += &format!("the cluster cannot be upgraded now either: {} says Upgradeable=False\n", plan.from);
    }
    if let Some(version) = plan.under_way.as_ref().filter(|_| plan.blocks_upgrades) {
        text += &format!("{version} is under way; it can be completed, others of another minor release cannot begin\n");
    }
    for restart in &plan.restarts {
        text += &format!("restarts: {} {} ({})\n", restart.component, restart.instance, restart.version);
    }
    text
}

/// Gates of fields, those that flip first.
fn describe_fields(plan: &SetPlan) -> String {
    let state = |on: bool| if on { "on" } else { "off" };
    let mut lines: Vec<(bool, String)> = Vec::new();
    for field in &plan.fields {
        let how = if field.before == field.after {
            format!("stays {}", state(field.after))
        } else {
            format!("{} -> {}", state(field.before), state(field.after))
        };
        let at = format!("{} {} ({})", field.definition, field.gate, field.fields.join(", "));
        lines.push((field.before == field.after, format!("  {at}: {how}\n")));
    }
    lines.sort();
    let mut text = String::new();
    if let Some(first) = plan.fields.first() {
        text += &format!("fields, which follow the row of {}:\n", first.version);
    }
    text += &lines.into_iter().map(|(_, line)| line).collect::<String>();
    text + &plan.unfollowing.iter().map(|why| format!("does not follow: {why}\n")).collect::<String>()
}
