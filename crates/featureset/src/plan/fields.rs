//! What a change of the set does to gates of fields that follow.

use serde::Serialize;
use serde_json::Value;

use crate::{
    definition::{self, Follow},
    resolve::Row,
};
use fieldgate::{Gate, PreRelease};

/// A gate of fields that follows the row of the desired version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldPlan {
    pub definition: String,
    pub gate: String,
    /// Whose row it follows.
    pub version: String,
    pub fields: Vec<String>,
    pub before: bool,
    pub after: bool,
}

/// Each gate that carries a name of the row, and what cannot follow, with the reason. `rows` are those of the desired version,
/// now and then.
pub(super) fn plan(definitions: &[Value], rows: Result<(&Row, &Row), &str>) -> (Vec<FieldPlan>, Vec<String>) {
    let (mut plans, mut problems) = (Vec::new(), Vec::new());
    for definition in definitions {
        let name = definition::name_of(definition);
        match (definition::follow(definition), rows) {
            (Follow::No, _) => {}
            (Follow::Unknown(value), _) => problems.push(format!(
                "{name}: annotation {} is {value:?}; the only value is {:?}",
                definition::ANNOTATION,
                definition::FEATURE_SETS
            )),
            (Follow::FeatureSets, _) if definition::gates(definition).is_empty() => {
                problems.push(format!("{name}: it is to follow and has no spec.customFeatureGates"));
            }
            (Follow::FeatureSets, Err(why)) => problems.push(format!("{name}: {why}")),
            (Follow::FeatureSets, Ok((before, after))) => {
                let gates = definition::gates(definition);
                plans.extend(gates.iter().filter_map(|gate| one(name, gate, before, after)));
                let off = |gate: &&Gate| gate.pre_release == PreRelease::Stable && after.get(&gate.name) == Some(false);
                let stable = gates.iter().filter(off).map(|gate| &gate.name);
                problems.extend(stable.map(|gate| format!("{name}: gate {gate} is stable and stays on")));
            }
        }
    }
    (plans, problems)
}

fn one(name: &str, gate: &Gate, before: &Row, after: &Row) -> Option<FieldPlan> {
    // As the controller would set it; stable ones it leaves alone.
    let state = |row: &Row| Some(Gate { enabled: Some(row.get(&gate.name)?), ..gate.clone() }.is_on());
    Some(FieldPlan {
        definition: name.to_owned(),
        gate: gate.name.clone(),
        version: after.version.clone(),
        fields: gate.field_paths.iter().map(ToString::to_string).collect(),
        before: state(before)?,
        after: state(after)?,
    })
}
