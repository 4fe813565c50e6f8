//! A plan of a change of the set, before it is made: what flips, who restarts, what cannot be undone, what blocks upgrades.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    ack::Ack,
    object::FeatureGateSpec,
    registry::{Registry, RegistryError},
    resolve::{Choice, ChoiceError, Row, resolve},
    set::{Set, UnknownSet},
    transition::{check_lists, check_transition},
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetPlan {
    pub from: String,
    pub to: String,
    /// Why the API would refuse it.
    pub refused: Option<String>,
    pub rows: Vec<RowPlan>,
    /// There is no way back from the new set, and there was one before.
    pub one_way: bool,
    /// The cluster could be upgraded before, and cannot be with the new set.
    pub blocks_upgrades: bool,
    pub restarts: Vec<Restart>,
    /// Names in the custom lists that no version knows.
    pub unknown_gates: BTreeSet<String>,
    /// Versions whose row cannot be told, with the reason.
    pub unreadable: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RowPlan {
    pub version: String,
    pub turned_on: BTreeSet<String>,
    pub turned_off: BTreeSet<String>,
    /// Gates among those turned on of which the owner says that turning them off does not undo what they did.
    pub irreversible: BTreeSet<String>,
    /// Gates that will be on, with what they depend on and what will be off.
    pub unmet: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Restart {
    pub component: String,
    pub instance: String,
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("what is chosen now: {0}")]
    Now(#[source] ChoiceError),
    #[error(transparent)]
    New(ChoiceError),
    #[error("there is no registry to plan with")]
    NoRegistry,
}

pub fn plan_set_change(
    now: &FeatureGateSpec,
    new: &FeatureGateSpec,
    registries: &[Registry],
    profile: &str,
    acks: &[Ack],
) -> Result<SetPlan, PlanError> {
    let old_choice = Choice::of_spec(now).map_err(PlanError::Now)?;
    let new_choice = Choice::of_spec(new).map_err(PlanError::New)?;
    if registries.is_empty() {
        return Err(PlanError::NoRegistry);
    }
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    for registry in registries {
        match row_plan(registry, profile, &old_choice, &new_choice) {
            Ok(row) => rows.push(row),
            Err(error) => unreadable.push(format!("{}: {error}", registry.version)),
        }
    }
    let known = |name: &&String| registries.iter().any(|registry| registry.gates.contains_key(*name));
    Ok(SetPlan {
        from: old_choice.set.name().to_owned(),
        to: new_choice.set.name().to_owned(),
        refused: refusal(now, new),
        one_way: new_choice.set.is_one_way() && !old_choice.set.is_one_way(),
        blocks_upgrades: !new_choice.set.allows_upgrades() && old_choice.set.allows_upgrades(),
        restarts: restarts(&rows, acks),
        unknown_gates: new_choice.names().filter(|name| !known(name)).cloned().collect(),
        rows,
        unreadable,
    })
}

fn refusal(now: &FeatureGateSpec, new: &FeatureGateSpec) -> Option<String> {
    let set = |spec: &FeatureGateSpec| spec.feature_set.as_deref().map(str::parse::<Set>).transpose();
    let judged = |now, new| check_transition(now, new).map_err(|error| error.to_string());
    let result = set(now).and_then(|now| set(new).map(|new| (now, new)));
    let result = result.map_err(|error: UnknownSet| error.to_string()).and_then(|(now, new)| judged(now, new));
    result.and_then(|()| check_lists(new).map_err(|error| error.to_string())).err()
}

fn row_plan(registry: &Registry, profile: &str, old: &Choice, new: &Choice) -> Result<RowPlan, RegistryError> {
    let before = resolve(registry, profile, old)?.row;
    let after = resolve(registry, profile, new)?;
    let (turned_on, turned_off) = difference(&before, &after.row);
    let lasting = |name: &&String| registry.gates.get(*name).is_some_and(|gate| !gate.reversible);
    let irreversible = turned_on.iter().filter(lasting).cloned().collect();
    Ok(RowPlan { version: registry.version.clone(), turned_on, turned_off, irreversible, unmet: after.unmet })
}

/// What is on only afterwards, and what was on only before.
pub fn difference(before: &Row, after: &Row) -> (BTreeSet<String>, BTreeSet<String>) {
    let on = after.enabled.difference(&before.enabled).cloned().collect();
    let off = before.enabled.difference(&after.enabled).cloned().collect();
    (on, off)
}

fn restarts(rows: &[RowPlan], acks: &[Ack]) -> Vec<Restart> {
    let restarts = |ack: &&Ack| {
        let row = rows.iter().find(|row| row.version == ack.version);
        row.is_some_and(|row| ack.follows(row.turned_on.iter().chain(&row.turned_off)))
    };
    let mut all: Vec<Restart> = acks
        .iter()
        .filter(restarts)
        .map(|ack| Restart {
            component: ack.component.clone(),
            instance: ack.instance.clone(),
            version: ack.version.clone(),
        })
        .collect();
    all.sort();
    all
}
