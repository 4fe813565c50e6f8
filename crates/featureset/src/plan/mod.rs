//! A plan of a change of the set, before it is made: what flips, who restarts, what cannot be undone, what blocks upgrades.
//!
//! Rows come from the resolver of the controller, and a one-way set on record counts as it does there.

mod fields;

use std::collections::BTreeSet;

pub use fields::FieldPlan;
use serde::Serialize;
use serde_json::Value;

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
    /// It could not be upgraded before either.
    pub already_blocked: bool,
    /// A version that is on its way while the set is changed.
    pub under_way: Option<String>,
    pub restarts: Vec<Restart>,
    /// Names in the custom lists that no version knows.
    pub unknown_gates: BTreeSet<String>,
    /// Versions whose row cannot be told, with the reason.
    pub unreadable: Vec<String>,
    /// Gates of fields that follow.
    pub fields: Vec<FieldPlan>,
    /// Definitions that are to follow and cannot, with the reason.
    pub unfollowing: Vec<String>,
}

/// What is known of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub spec: FeatureGateSpec,
    /// The one-way set that is on record.
    pub recorded: Option<Choice>,
    /// Of all versions that have a row, or are to have one.
    pub registries: Vec<Registry>,
    /// Versions without a readable registry, with the reason.
    pub missing: Vec<String>,
    /// Of those that are alive.
    pub acks: Vec<Ack>,
    /// The version that the cluster is to run.
    pub desired: Option<String>,
    pub under_way: Option<String>,
    /// Definitions of resources.
    pub definitions: Vec<Value>,
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

pub fn plan_set_change(known: &Known, new: &FeatureGateSpec, profile: &str) -> Result<SetPlan, PlanError> {
    let shown = Choice::of_spec(&known.spec).map_err(PlanError::Now)?;
    let wanted = Choice::of_spec(new).map_err(PlanError::New)?;
    if known.registries.is_empty() {
        return Err(PlanError::NoRegistry);
    }
    let (before, after) = (known.followed(&shown), known.followed(&wanted));
    let (mut rows, mut unreadable) = (Vec::new(), known.missing.clone());
    for registry in &known.registries {
        match row_plan(registry, profile, before, after) {
            Ok(row) => rows.push(row),
            Err(error) => unreadable.push(format!("{}: {error}", registry.version)),
        }
    }
    let pair = known.desired_rows(profile, before, after);
    let pair = pair.as_ref().map(|(before, after)| (before, after)).map_err(String::as_str);
    let (fields, unfollowing) = fields::plan(&known.definitions, pair);
    let is_known = |name: &&String| known.registries.iter().any(|registry| registry.gates.contains_key(*name));
    Ok(SetPlan {
        from: before.set.name().to_owned(),
        to: wanted.set.name().to_owned(),
        refused: known.kept_back(&wanted).or_else(|| refusal(&known.spec, new)),
        one_way: after.set.is_one_way() && !before.set.is_one_way(),
        blocks_upgrades: !after.set.allows_upgrades() && before.set.allows_upgrades(),
        already_blocked: !before.set.allows_upgrades(),
        under_way: known.under_way.clone(),
        restarts: restarts(&rows, &known.acks),
        unknown_gates: wanted.names().filter(|name| !is_known(name)).cloned().collect(),
        rows,
        unreadable,
        fields,
        unfollowing,
    })
}

impl Known {
    /// What the rows follow if the object shows this: a one-way set on record wins, as in the controller.
    fn followed<'a>(&'a self, shown: &'a Choice) -> &'a Choice {
        self.recorded.as_ref().filter(|kept| kept.set != shown.set).unwrap_or(shown)
    }

    fn kept_back(&self, wanted: &Choice) -> Option<String> {
        let kept = self.recorded.as_ref().filter(|kept| kept.set != wanted.set)?.set;
        Some(format!(
            "the audit trail says that the cluster was in {kept} once, which is for ever; the rows stay those of {kept}"
        ))
    }

    /// The rows that gates of fields follow, now and then.
    fn desired_rows(&self, profile: &str, before: &Choice, after: &Choice) -> Result<(Row, Row), String> {
        let version = self.desired.as_deref().ok_or("it is not known which version the cluster is to run")?;
        let registry = self.registries.iter().find(|registry| registry.version == version);
        let registry = registry.ok_or_else(|| format!("the row of {version} cannot be told"))?;
        let row =
            |choice| resolve(registry, profile, choice).map(|resolved| resolved.row).map_err(|error| error.to_string());
        Ok((row(before)?, row(after)?))
    }
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
