//! Field gates that follow: what to apply to which definition, and what does not follow and why.
//!
//! Nothing here holds up rows: what cannot be done is told in a condition of its own, and done later.

use std::collections::{BTreeMap, BTreeSet};

use fieldgate::PreRelease;
use serde_json::Value;

use super::World;
use crate::{
    definition::{self, Follow},
    object::StatusRow,
    resolve::Row,
};

/// What the controller sees of definitions.
#[derive(Debug, Default)]
pub struct Definitions {
    /// Those that follow, or of which something is owned from earlier.
    pub there: Vec<Value>,
    /// Why they could not be read.
    pub unreadable: Option<String>,
    /// By name, what went wrong with them lately, so that it is not done again at once.
    pub held: BTreeMap<String, Vec<Held>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// This configuration was not taken. The same is tried again only when it is time.
    Refused { config: Value, why: String, again: bool },
    /// Gates were taken from other managers so often that it waits before it does so again.
    Contested { times: u32 },
}

/// One apply.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldWrite {
    pub name: String,
    pub config: Value,
    pub wanted: BTreeMap<String, bool>,
    /// Gates that are someone else's and have another value there, each with its managers. Where there are any the apply has
    /// to be forced.
    pub taken: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub writes: Vec<FieldWrite>,
    /// Reason and message, of each that does not follow.
    pub problems: Vec<(&'static str, String)>,
}

/// `rows` are those that will be there when the fields are written.
pub(crate) fn decide(world: &World<'_>, rows: &[StatusRow]) -> Fields {
    let mut fields = Fields::default();
    if let Some(why) = &world.definitions.unreadable {
        fields.problems.push(("DefinitionsUnreadable", format!("definitions of resources cannot be read: {why}")));
    }
    let row = row(world, rows);
    for definition in &world.definitions.there {
        // What is being deleted follows nobody any more.
        if !definition["metadata"]["deletionTimestamp"].is_string() {
            one(world, definition, row.as_ref(), &mut fields);
        }
    }
    fields
}

/// The row of the version that the cluster is to run, or why there is none.
fn row(world: &World<'_>, rows: &[StatusRow]) -> Result<Row, (&'static str, String)> {
    let version = world.cluster_version.and_then(|cluster_version| cluster_version.latest());
    let Some(version) = version else {
        let why = "it is not known which version the cluster is to run; gates of fields stay as they are";
        return Err(("NoDesiredVersion", why.to_owned()));
    };
    let row = rows.iter().find(|row| row.version == version).map(StatusRow::to_row);
    row.ok_or_else(|| ("NoRow", format!("version {version} has no row; gates of fields stay as they are")))
}

fn one(world: &World<'_>, definition: &Value, row: Result<&Row, &(&'static str, String)>, fields: &mut Fields) {
    let name = definition::name_of(definition);
    let mut problem = |reason, message: String| fields.problems.push((reason, format!("{name}: {message}")));
    let wanted = match (definition::follow(definition), row) {
        (Follow::No, _) => BTreeMap::new(),
        // A slip of the pen must not switch gates: they stay as they are.
        (Follow::Unknown(value), _) => {
            let (key, known) = (definition::ANNOTATION, definition::FEATURE_SETS);
            return problem("UnknownFollow", format!("annotation {key} is {value:?}; the only value is {known:?}"));
        }
        (Follow::FeatureSets, Err((reason, why))) => return problem(reason, why.clone()),
        (Follow::FeatureSets, Ok(row)) => {
            if definition::gates(definition).is_empty() {
                let why = "it is to follow and has no spec.customFeatureGates; either none were declared, or this API \
                           server does not keep them";
                return problem("NoFieldGates", why.to_owned());
            }
            for gate in contradicted(definition, row) {
                let why = format!("gate {gate} is stable and so is on, and {} has it off", row.version);
                problem("StableGate", why);
            }
            definition::wanted(definition, row)
        }
    };
    let held = world.definitions.held.get(name).map(Vec::as_slice).unwrap_or_default();
    write(definition, wanted, held, fields);
}

/// Stable gates that the row has off.
fn contradicted(definition: &Value, row: &Row) -> Vec<String> {
    let stable = definition::gates(definition).into_iter().filter(|gate| gate.pre_release == PreRelease::Stable);
    stable.map(|gate| gate.name).filter(|name| row.get(name) == Some(false)).collect()
}

fn write(definition: &Value, mut wanted: BTreeMap<String, bool>, held: &[Held], fields: &mut Fields) {
    let name = definition::name_of(definition).to_owned();
    let mut taken = taken(definition, &wanted);
    if let Some(times) = contested(held) {
        // The others of the definition go on following.
        for (gate, managers) in std::mem::take(&mut taken) {
            wanted.remove(&gate);
            fields.problems.push(("Contested", contest(&name, &gate, &managers, times)));
        }
    }
    if definition::is_settled(definition, &wanted) {
        return;
    }
    let config = definition::config(definition, &wanted);
    if let Some((refused, why, again)) = refused(held) {
        // Told until it is done, so that a new attempt does not take the condition away and bring it back.
        let gates = wanted.keys().cloned().collect::<Vec<_>>().join(", ");
        let gates = if gates.is_empty() { "giving up its gates".to_owned() } else { format!("gates {gates}") };
        fields.problems.push(("NotApplied", format!("{name}: {gates}: {why}")));
        if *refused == config && !again {
            return;
        }
    }
    fields.writes.push(FieldWrite { name, config, wanted, taken });
}

fn contested(held: &[Held]) -> Option<u32> {
    held.iter().find_map(|held| match held {
        Held::Contested { times } => Some(*times),
        Held::Refused { .. } => None,
    })
}

fn refused(held: &[Held]) -> Option<(&Value, &str, bool)> {
    held.iter().find_map(|held| match held {
        Held::Refused { config, why, again } => Some((config, why.as_str(), *again)),
        Held::Contested { .. } => None,
    })
}

fn contest(name: &str, gate: &str, managers: &BTreeSet<String>, times: u32) -> String {
    let managers = managers.iter().cloned().collect::<Vec<_>>().join(", ");
    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    format!(
        "{name}: gate {gate} is set by {managers}, and gates of it were taken over {times} lately; leave enabled to {}, or \
         take the annotation off",
        definition::MANAGER
    )
}

fn taken(definition: &Value, wanted: &BTreeMap<String, bool>) -> BTreeMap<String, BTreeSet<String>> {
    let differing = definition::differing(definition, wanted).into_iter();
    let owners = differing.map(|gate| (definition::other_owners(definition, &gate), gate));
    owners.filter(|(owners, _)| !owners.is_empty()).map(|(owners, gate)| (gate, owners)).collect()
}
