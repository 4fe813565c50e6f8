//! What a CRD's author should know but may do.

use serde_json::Value;

use super::{Declaration, cel, path::lists_name};
use crate::{
    Gate, Path, PreRelease, Step,
    schema::resolve,
    stanza::{Located, Stanza},
};

const SCALE_PATHS: [&str; 3] = ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"];

pub(super) fn cautions(new: &Declaration<'_>, old: Option<&Declaration<'_>>) -> Vec<String> {
    let (stanza, _) = Stanza::read(new.stanza, new.at);
    let mut cautions: Vec<String> = stanza.gates.iter().filter_map(of_stable).collect();
    // What is always on can break nothing.
    for located in stanza.gates.iter().filter(|located| located.gate.pre_release != PreRelease::Stable) {
        for (path, at) in located.gate.field_paths.iter().zip(&located.paths_at) {
            cautions.extend(of_scale(path, at, &located.gate, new.scale));
            cautions.extend(of_schema(path, at, new.schema));
        }
    }
    cautions.extend(old.into_iter().flat_map(|old| of_gates_gone(old, &stanza, new.at)));
    cautions
}

fn of_stable(located: &Located) -> Option<String> {
    let idle = located.gate.pre_release == PreRelease::Stable && located.gate.enabled == Some(false);
    idle.then(|| format!("{}.enabled: false has no effect, a stable gate is always on", located.at))
}

fn of_scale(path: &Path, at: &str, gate: &Gate, scale: &Value) -> Vec<String> {
    let covered = SCALE_PATHS.into_iter().filter(|name| {
        let text = scale.get(name).and_then(Value::as_str);
        text.and_then(|text| text.parse().ok()).is_some_and(|scale_path: Path| path.covers(&scale_path))
    });
    let name = &gate.name;
    covered
        .map(|scale| format!("{at}: covers {scale} of the scale subresource, which feature gate {name:?} can freeze"))
        .collect()
}

/// Rules of the values that the field lies in; those of the field itself do not run without it.
fn of_schema(path: &Path, at: &str, schema: &Value) -> Vec<String> {
    let Ok(way) = resolve(schema, path) else { return Vec::new() };
    let mut cautions = Vec::new();
    let mut place = String::new();
    for (schema, (i, step)) in way.iter().zip(path.steps().iter().enumerate()) {
        let rest = &path.steps()[i..];
        let shown = if place.is_empty() { "the root" } else { place.as_str() };
        for rule in rules(schema).filter(|rule| cel::may_read(rule, rest)) {
            cautions.push(format!("{at}: the CEL rule {rule:?} of {shown} may read this field, which can be absent"));
        }
        for keyword in involved(schema, rest) {
            cautions.push(format!("{at}: {keyword} of {shown} may need this field, which can be absent"));
        }
        place.push_str(&step.to_string());
    }
    cautions
}

fn rules(schema: &Value) -> impl Iterator<Item = &str> {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.into_iter().flatten().filter_map(|rule| rule.get("rule")?.as_str())
}

/// The keywords of a schema that may judge what `rest` leads to.
fn involved(schema: &Value, rest: &[Step]) -> Vec<&'static str> {
    let mut keywords: Vec<&'static str> = ["oneOf", "anyOf", "allOf", "not"]
        .into_iter()
        .filter(|keyword| branches(schema, keyword).iter().any(|branch| needs(branch, rest)))
        .collect();
    if rest.len() == 1 && schema.get("minProperties").is_some() {
        keywords.push("minProperties");
    }
    keywords
}

fn branches<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    match schema.get(keyword) {
        Some(Value::Array(branches)) => branches,
        Some(branch) => std::slice::from_ref(branch),
        None => &[],
    }
}

fn needs(branch: &Value, rest: &[Step]) -> bool {
    let Some((step, below)) = rest.split_first() else { return true };
    let next = match step {
        Step::Named(name) if lists_name(branch.get("required"), name) => return true,
        Step::Named(name) => branch.get("properties").and_then(|fields| fields.get(name)),
        Step::Each => branch.get("items"),
    };
    let next = next.or_else(|| branch.get("additionalProperties"));
    next.is_some_and(|next| needs(next, below)) || !involved(branch, rest).is_empty()
}

fn of_gates_gone(old: &Declaration<'_>, new: &Stanza, at: &str) -> Vec<String> {
    let (old, _) = Stanza::read(old.stanza, old.at);
    let there = |name: &str| new.gates.iter().any(|located| located.gate.name == name);
    let gone = old.gates.iter().map(|located| &located.gate).filter(|gate| !there(&gate.name));
    let unfinished = gone.filter(|gate| gate.pre_release != PreRelease::Stable);
    unfinished
        .map(|gate| {
            let (name, stage, now) = (&gate.name, gate.pre_release, fields_of_gone(gate, new));
            format!("{at}.featureGates: feature gate {name:?} was {stage} and is gone, {now}")
        })
        .collect()
}

/// A gate may be gone because it has another name now, or its fields are under others.
fn fields_of_gone(gate: &Gate, new: &Stanza) -> String {
    let off = || new.gates.iter().map(|located| &located.gate).filter(|gate| !gate.is_on());
    let is_off = |path: &Path| off().any(|gate| gate.field_paths.iter().any(|other| other.covers_all(path)));
    let on: Vec<String> = gate.field_paths.iter().filter(|path| !is_off(path)).map(Path::to_string).collect();
    if on.is_empty() {
        "others keep its fields off".to_owned()
    } else {
        format!("its fields are on: {}", on.join(", "))
    }
}
