//! Versions beside the one that is stored, in the way of gates.

use serde_json::Value;

use super::{Declaration, path::lists_name};
use crate::{Path, PreRelease, Step, schema::resolve, stanza::Stanza};

/// What the author of a CRD should know of its other served versions.
pub(super) fn cautions(spec: &Value, declaration: &Declaration<'_>) -> Vec<String> {
    match spec.pointer("/conversion/strategy").and_then(Value::as_str) {
        Some("Webhook") => defaults(spec, declaration).into_iter().collect(),
        _ => required(spec, declaration),
    }
}

/// Served versions that are not stored, with their schemas.
fn others(spec: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let is = |version: &Value, what: &str| version.get(what) == Some(&Value::Bool(true));
    let versions = spec.get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let others = versions.iter().filter(move |version| is(version, "served") && !is(version, "storage"));
    others.filter_map(|version| Some((version.get("name")?.as_str()?, version.pointer("/schema/openAPIV3Schema")?)))
}

/// What a version requires and a gate keeps out is missing from every object there, whatever is sent.
fn required(spec: &Value, declaration: &Declaration<'_>) -> Vec<String> {
    let (stanza, _) = Stanza::read(declaration.stanza, declaration.at);
    let unfinished = stanza.gates.iter().filter(|located| located.gate.pre_release != PreRelease::Stable);
    let paths = unfinished.flat_map(|located| located.gate.field_paths.iter().zip(&located.paths_at));
    let told = |(path, at): (&Path, &String)| {
        let names: Vec<&str> =
            others(spec).filter(|(_, schema)| requires(schema, path)).map(|(name, _)| name).collect();
        let names = (!names.is_empty()).then(|| names.join(", "))?;
        Some(format!("{at}: is required in {names}, where nothing can be written without it while the gate is off"))
    };
    paths.filter_map(told).collect()
}

fn requires(schema: &Value, path: &Path) -> bool {
    let Ok(way) = resolve(schema, path) else { return false };
    match path.steps().last() {
        Some(Step::Named(name)) => lists_name(way[way.len() - 2].get("required"), name),
        _ => false,
    }
}

/// A webhook converts whole objects, so defaults of other versions cannot be told apart from what callers send.
fn defaults(spec: &Value, declaration: &Declaration<'_>) -> Option<String> {
    let gated = declaration.stanza.get("featureGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty());
    let names: Vec<&str> = others(spec).filter(|(_, schema)| has_default(schema)).map(|(name, _)| name).collect();
    (gated && !names.is_empty()).then(|| {
        let (at, names) = (declaration.at, names.join(", "));
        format!(
            "{at}: defaults of {names} are not held back by gates, a webhook converts them; what they bring is dropped"
        )
    })
}

fn has_default(schema: &Value) -> bool {
    let fields = schema.get("properties").and_then(Value::as_object);
    schema.get("default").is_some()
        || fields.is_some_and(|fields| fields.values().any(has_default))
        || ["items", "additionalProperties"].iter().any(|below| schema.get(below).is_some_and(has_default))
}
