//! One step of the controller: everything it sees in, everything to write out, in the order in which to write it.
//!
//! Invariants: a one-way set is in the audit trail before a row of it is written; a version is reported only after its row
//! was written; what would change nothing is not written; a row that cannot be determined stays as it is; gates of fields
//! follow rows that were written before.

mod condition;
mod fields;
mod forgotten;
mod report;
mod restore;
mod rows;
mod unused;

use std::collections::BTreeMap;

use serde_json::Value;

pub use condition::{
    DEPENDENCIES_UNMET, DETERMINATION_DEGRADED, FIELD_GATES_STALE, ONE_WAY_SET_LEFT, ROWS_STALE, UNKNOWN_GATES,
};
pub use fields::{Definitions, FieldWrite, Held};
pub use report::{OPERATOR, ROWS};
pub use restore::{Part, Refused};
use rows::Determined;
pub use unused::UNUSED_SINCE;

use crate::{
    ack::Ack,
    audit::{AuditError, Entry, Kind, Trail},
    config_map::to_config_map,
    object::{ClusterOperator, ClusterVersion, FeatureGate, FeatureGateSpec, FeatureGateStatus, Meta},
    registry::Registry,
    resolve::Choice,
};

/// All that the controller sees at one moment.
#[derive(Debug)]
pub struct World<'a> {
    /// What this controller brings, with its version.
    pub own: &'a Registry,
    pub profile: &'a str,
    pub namespace: &'a str,
    /// Under which name it reports.
    pub operator_name: &'a str,
    pub feature_gate: Option<&'a FeatureGate>,
    /// What could not be written to it, as it is now.
    pub refused: Option<&'a Refused>,
    pub cluster_version: Option<&'a ClusterVersion>,
    /// There is one, and this is why it cannot be read.
    pub cluster_version_unreadable: Option<&'a str>,
    pub cluster_operator: Option<&'a ClusterOperator>,
    /// Registries in the cluster by version; those that cannot be read with the reason.
    pub registries: &'a BTreeMap<String, Result<Registry, String>>,
    /// The objects they were read from.
    pub registry_objects: &'a [Value],
    /// How long a registry is kept that nobody needs.
    pub keep_registries_seconds: i64,
    /// Definitions of resources that follow.
    pub definitions: &'a Definitions,
    pub audit: &'a Result<Trail, AuditError>,
    pub acks: &'a [Ack],
    /// Seconds since 1970, and the same as the API has it.
    pub now: (i64, &'a str),
    /// Reads a time of the API.
    pub seconds_of: fn(&str) -> Option<i64>,
}

/// Something to write. The first failure ends the step; the next one starts from what is there then.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    CreateRegistry(Value),
    CreateFeatureGate(Box<FeatureGate>),
    /// Created if it has no resourceVersion, else updated.
    Audit(Value),
    FeatureGateStatus(Box<FeatureGate>),
    /// Updated: only its spec has changed. Nothing else can be written before.
    RestoreSpec(Box<FeatureGate>),
    /// Its spec cannot even be updated: this very object is deleted, and a new one created.
    ReplaceFeatureGate {
        old: Box<Meta>,
        new: Box<FeatureGate>,
    },
    CreateClusterOperator(Box<ClusterOperator>),
    ClusterOperatorStatus(Box<ClusterOperator>),
    FieldGates(Box<FieldWrite>),
    /// Updated: only its mark of disuse has changed.
    MarkRegistry(Value),
    DeleteRegistry {
        name: String,
        uid: String,
        resource_version: String,
    },
    /// Its Lease is deleted, unless it was renewed meanwhile.
    ForgetAck(Ack),
}

impl Write {
    /// Whether a step has failed if this could not be written. What can wait comes after all that cannot.
    pub fn is_vital(&self) -> bool {
        let chore = matches!(self, Write::MarkRegistry(_) | Write::DeleteRegistry { .. } | Write::ForgetAck(_));
        !chore && !matches!(self, Write::FieldGates(_))
    }
}

pub fn sync(world: &World<'_>) -> Vec<Write> {
    let mut writes = Vec::new();
    if !world.registries.contains_key(&world.own.version) {
        writes.push(Write::CreateRegistry(to_config_map(world.own, world.namespace)));
    }
    let Some(feature_gate) = world.feature_gate else {
        // The rest follows when it is there: it has no generation and no uid yet.
        writes.push(Write::CreateFeatureGate(Box::new(FeatureGate::new(FeatureGateSpec::default()))));
        return writes;
    };
    let decided = decide(world, feature_gate);
    if let Some(restoring) = restore::decide(world, feature_gate, &decided) {
        // The rest follows when that is done: the object is another one then.
        writes.extend(restoring);
        return writes;
    }
    writes.extend(decided.entry.clone().and_then(|entry| audit(world, &entry)));
    let determined = rows::determine(world, feature_gate, &decided);
    writes.extend(status(world, feature_gate, &determined));
    writes.extend(report::report(world, &decided, &determined));
    writes.extend(determined.fields.writes.iter().map(|write| Write::FieldGates(Box::new(write.clone()))));
    writes.extend(unused::decide(world, feature_gate, &determined));
    writes.extend(forgotten::decide(world));
    writes
}

/// What the rows are to follow.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// `None`: it cannot be told, and the rows stay.
    pub choice: Option<Choice>,
    /// To be recorded before anything else.
    pub entry: Option<Entry>,
    /// Reason and message of what is wrong with the choice itself.
    pub wrong: Option<(&'static str, String)>,
    /// The object says something else than the one-way set it once had.
    pub left: Option<String>,
}

fn decide(world: &World<'_>, feature_gate: &FeatureGate) -> Decided {
    let trail = match world.audit {
        Ok(trail) => trail,
        Err(error) => {
            let message =
                format!("the audit trail cannot be read, so it cannot be told which sets were chosen: {error}");
            return Decided { wrong: Some(("AuditTrailUnreadable", message)), ..Decided::default() };
        }
    };
    let shown = Choice::of_spec(&feature_gate.spec);
    match (trail.one_way(), shown) {
        (Some(kept), Ok(shown)) if shown.set != kept.set => left(world, feature_gate, trail, kept, &shown),
        (_, Ok(shown)) => {
            let entry = entry(world, feature_gate, trail, Kind::Chosen, &shown);
            Decided { choice: Some(shown), entry, ..Decided::default() }
        }
        // What is no choice changes none: rows are those of the last one that was, also if somebody has edited them meanwhile. A set
        // that nobody knows is another set than the recorded one, too; but it may come from a newer release.
        (kept, Err(error)) => {
            let reason = match error {
                crate::resolve::ChoiceError::UnknownSet(_) => "UnknownFeatureSet",
                crate::resolve::ChoiceError::Both(_) => "GateInBothLists",
                crate::resolve::ChoiceError::Unreadable(_) => "SpecUnreadable",
            };
            Decided {
                choice: kept.or_else(|| trail.chosen()),
                wrong: Some((reason, error.to_string())),
                ..Decided::default()
            }
        }
    }
}

fn left(world: &World<'_>, feature_gate: &FeatureGate, trail: &Trail, kept: Choice, shown: &Choice) -> Decided {
    let message = format!(
        "spec.featureSet is {:?} now, but the cluster was in {} once, which is for ever; the rows stay those of {}",
        shown.set.wire(),
        kept.set,
        kept.set
    );
    let entry = entry(world, feature_gate, trail, Kind::Refused, shown);
    Decided { choice: Some(kept), entry, left: Some(message), ..Decided::default() }
}

/// `None` if the last entry says the same.
fn entry(world: &World<'_>, object: &FeatureGate, trail: &Trail, kind: Kind, choice: &Choice) -> Option<Entry> {
    if trail.entries.last().is_some_and(|last| last.says(kind, choice)) {
        return None;
    }
    Some(Entry {
        enabled: choice.enabled.iter().cloned().collect(),
        disabled: choice.disabled.iter().cloned().collect(),
        ..entry_of(world, object, kind, choice.set.name().to_owned())
    })
}

fn entry_of(world: &World<'_>, object: &FeatureGate, kind: Kind, set: String) -> Entry {
    Entry {
        time: world.now.1.to_owned(),
        kind,
        set,
        enabled: Vec::new(),
        disabled: Vec::new(),
        controller_version: world.own.version.clone(),
        uid: object.metadata.uid.clone(),
        generation: object.metadata.generation,
        actor: actor(object),
    }
}

/// The manager that wrote the choice last. Times are whole seconds, so within one an owner of what is chosen goes before whoever
/// only made the object.
fn actor(object: &FeatureGate) -> Option<String> {
    let managers = object.metadata.extra.get("managedFields")?.as_array()?;
    let of_spec = managers.iter().filter(|entry| entry["fieldsV1"].get("f:spec").is_some());
    let chose = |entry: &Value| {
        ["f:featureSet", "f:customNoUpgrade"].iter().any(|key| entry["fieldsV1"]["f:spec"].get(key).is_some())
    };
    let time = |entry: &Value| entry["time"].as_str().unwrap_or_default().to_owned();
    let latest = of_spec.max_by_key(|entry| (chose(entry), time(entry)))?;
    latest["manager"].as_str().map(str::to_owned)
}

fn audit(world: &World<'_>, entry: &Entry) -> Option<Write> {
    let trail = world.audit.as_ref().ok()?;
    Some(Write::Audit(trail.with(entry, world.namespace)))
}

fn status(world: &World<'_>, feature_gate: &FeatureGate, determined: &Determined) -> Option<Write> {
    let mut new = feature_gate.clone();
    // What others have put there may be what is refused.
    if world.refused.is_some() {
        new.status = FeatureGateStatus::default();
    }
    if !rows::same(&new.status.feature_gates, &determined.rows) {
        new.status.feature_gates = determined.rows.clone();
    }
    for mut condition in determined.conditions.iter().cloned() {
        condition.observed_generation = feature_gate.metadata.generation;
        crate::object::set_condition(&mut new.status.conditions, condition, world.now.1);
    }
    (new != *feature_gate).then(|| Write::FeatureGateStatus(Box::new(new)))
}
