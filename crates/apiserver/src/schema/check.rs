//! Whether a schema may be one of a definition, with the texts of Kubernetes.
//!
//! First its structure is judged, then its defaults, then each node by itself; rules (`crate::rules`) come last and only where the rest
//! is sound.

mod defaults;
mod list;
mod node;
mod structural;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::{FieldError, child},
    rules,
};

const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// What may be at the root of a schema whose status is judged by itself.
const AT_ROOT: &[(&str, &str)] = &[
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// All that is wrong with the schema in `json`, which stands at `path`. `status` says whether there is a status subresource.
pub(crate) fn check(json: &Value, path: &str, status: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if status {
        check_root(json, path, &mut errors);
    }
    if flag(json, "nullable") {
        errors.push(FieldError::forbidden(child(path, "nullable"), "nullable cannot be true at the root"));
    }
    let unsupported = structural::unsupported(json);
    let mut sound = unsupported.is_none();
    if sound {
        let mut found = structural::check(json, path);
        if found.is_empty() {
            found = defaults::check(json, path);
        }
        sound = found.is_empty();
        errors.extend(found);
    }
    let nodes = node::check(json, path);
    let judged = if sound { rules::check(json, path, &nodes) } else { Vec::new() };
    errors.extend(nodes);
    errors.extend(judged);
    if let Some(what) = unsupported.filter(|_| errors.is_empty()) {
        errors.push(FieldError::invalid(path, "", what));
    }
    errors
}

/// Formats in a schema that say nothing about its values.
pub(crate) fn unknown_formats(json: &Value, found: &mut BTreeSet<String>) {
    let kind = if flag(json, "x-kubernetes-int-or-string") { "" } else { text(json, "type") };
    let format = text(json, "format");
    if !format.is_empty() && !super::format::is_for(format, kind) {
        found.insert(format.to_owned());
    }
    let singles = ["items", "additionalProperties", "not"].into_iter().filter_map(|key| one(json, key));
    let listed = JUNCTORS.into_iter().flat_map(|key| list(json, key));
    let named = map(json, "properties").map(|(_, schema)| schema);
    singles.chain(listed).chain(named).for_each(|schema| unknown_formats(schema, found));
}

fn check_root(json: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(json, "type");
    if !matches!(kind, "" | "object") {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(child(path, "type"), kind, detail));
        return;
    }
    let stranger =
        |(key, value): (&String, &Value)| !is_nothing(value) && !AT_ROOT.iter().any(|(known, _)| known == key);
    if json.as_object().into_iter().flatten().any(stranger) {
        let known: Vec<&str> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let known = known.join(" ");
        let detail =
            format!("only [{known}] fields are allowed at the root of the schema if the status subresource is enabled");
        errors.push(FieldError::invalid(path, json.clone(), detail));
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn flag(json: &Value, key: &str) -> bool {
    json.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn text<'a>(json: &'a Value, key: &str) -> &'a str {
    json.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(json: &'a Value, key: &str) -> &'a [Value] {
    json.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Named schemas.
fn map<'a>(json: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    json.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// One schema under a key, if it is one.
fn one<'a>(json: &'a Value, key: &str) -> Option<&'a Value> {
    json.get(key).filter(|value| value.is_object())
}

#[cfg(test)]
mod tests;
