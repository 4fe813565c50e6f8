//! The one resolver: what the cluster chose and a version's registry in, that version's row out. Controller, render,
//! command line and tests all call it, so they cannot disagree.

use std::collections::BTreeSet;

use serde_json::json;

use crate::{
    canonical::digest_of,
    object::FeatureGateSpec,
    registry::{Registry, RegistryError},
    set::{Set, UnknownSet},
};

/// What `spec` of the FeatureGate says, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub set: Set,
    /// Both are empty unless the set is Custom.
    pub enabled: BTreeSet<String>,
    pub disabled: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    #[error(transparent)]
    UnknownSet(#[from] UnknownSet),
    #[error("trying to enable and disable {0:?}: take it out of one of spec.customNoUpgrade.enabled and .disabled")]
    Both(String),
    #[error("spec of the FeatureGate cannot be read: {0}")]
    Unreadable(String),
}

impl Choice {
    pub fn of_set(set: Set) -> Choice {
        Choice { set, enabled: BTreeSet::new(), disabled: BTreeSet::new() }
    }

    /// Lists beside another set than Custom are left out, as they mean nothing there.
    pub fn of_spec(spec: &FeatureGateSpec) -> Result<Choice, ChoiceError> {
        if let Some(unreadable) = &spec.unreadable {
            return Err(ChoiceError::Unreadable(unreadable.why.clone()));
        }
        let set: Set = spec.feature_set.as_deref().unwrap_or_default().parse()?;
        let mut choice = Choice::of_set(set);
        if let (Set::Custom, Some(custom)) = (set, &spec.custom_no_upgrade) {
            choice.enabled = custom.enabled.iter().cloned().collect();
            choice.disabled = custom.disabled.iter().cloned().collect();
        }
        match choice.enabled.intersection(&choice.disabled).next() {
            Some(name) => Err(ChoiceError::Both(name.clone())),
            None => Ok(choice),
        }
    }

    /// All names that the custom lists have.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.enabled.iter().chain(&self.disabled)
    }
}

/// What is on and what is off in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub version: String,
    pub enabled: BTreeSet<String>,
    pub disabled: BTreeSet<String>,
}

impl Row {
    /// Equal for equal lists, in whatever order they were written.
    pub fn digest(&self) -> String {
        digest_of(&json!({"version": self.version, "enabled": self.enabled, "disabled": self.disabled}))
    }

    /// `None` if the version does not know the gate.
    pub fn get(&self, gate: &str) -> Option<bool> {
        self.enabled.contains(gate).then_some(true).or_else(|| self.disabled.contains(gate).then_some(false))
    }
}

/// A row, and what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub row: Row,
    /// Names in the custom lists that this version does not know.
    pub unknown: BTreeSet<String>,
    /// Gates that are on, each with a gate that it depends on and that is off; only custom lists can bring that about.
    pub unmet: Vec<(String, String)>,
}

pub fn resolve(registry: &Registry, profile: &str, choice: &Choice) -> Result<Resolved, RegistryError> {
    let base = if choice.set == Set::Custom { Set::Default } else { choice.set };
    let lists = registry.lists(profile, base)?;
    let (mut enabled, mut disabled) = (lists.enabled.clone(), lists.disabled.clone());
    let unknown = choice.names().filter(|name| !registry.gates.contains_key(*name)).cloned().collect();
    move_names(&choice.enabled, &mut disabled, &mut enabled);
    move_names(&choice.disabled, &mut enabled, &mut disabled);
    let unmet = unmet(registry, &enabled);
    let row = Row { version: registry.version.clone(), enabled, disabled };
    Ok(Resolved { row, unknown, unmet })
}

/// A name that is in neither list is not known to the version and stays out.
fn move_names(names: &BTreeSet<String>, from: &mut BTreeSet<String>, to: &mut BTreeSet<String>) {
    for name in names {
        to.extend(from.take(name));
    }
}

fn unmet(registry: &Registry, enabled: &BTreeSet<String>) -> Vec<(String, String)> {
    let gates = enabled.iter().filter_map(|name| registry.gates.get(name));
    gates
        .flat_map(|gate| gate.depends_on.iter().map(move |dependency| (&gate.name, dependency)))
        .filter(|(_, dependency)| !enabled.contains(*dependency))
        .map(|(gate, dependency)| (gate.clone(), dependency.clone()))
        .collect()
}
