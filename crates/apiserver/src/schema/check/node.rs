//! Each node of a schema by itself: what OpenAPI has and definitions have not, lists, and the form of rules.

use serde_json::Value;

use super::{JUNCTORS, flag, list, map, one, text};
use crate::{
    field::{FieldError, child},
    rules,
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub(super) fn check(json: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(json, Place { root: true, ..Place::default() }, path, &mut errors);
    errors
}

#[derive(Clone, Copy, Default)]
struct Place<'a> {
    root: bool,
    /// Within the header or metadata of an object.
    in_meta: bool,
    /// Why there can be no defaults.
    no_defaults: Option<&'a str>,
}

fn walk(json: &Value, place: Place<'_>, path: &str, errors: &mut Vec<FieldError>) {
    check_standard(json, place, path, errors);
    if flag(json, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(child(path, "uniqueItems"), detail));
    }
    check_fields(json, place, path, errors);
    let inner = Place { root: false, ..place };
    if let Some(not) = one(json, "not") {
        walk(not, inner, &child(path, "not"), errors);
    }
    for key in JUNCTORS {
        for (index, nested) in list(json, key).iter().enumerate() {
            walk(nested, inner, &format!("{path}.{key}[{index}]"), errors);
        }
    }
    for (name, nested) in map(json, "definitions") {
        walk(nested, inner, &format!("{path}.definitions[{name}]"), errors);
    }
    if let Some(items) = one(json, "items") {
        walk(items, inner, &child(path, "items"), errors);
    }
    for (index, nested) in list(json, "items").iter().enumerate() {
        walk(nested, inner, &format!("{path}.items[{index}]"), errors);
    }
    if json.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = child(path, "x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(at, false, "must be true or undefined"));
    }
    super::list::check(json, path, errors);
    for (index, rule) in list(json, "x-kubernetes-validations").iter().enumerate() {
        rules::check_form(rule, json, &format!("{path}.x-kubernetes-validations[{index}]"), errors);
    }
}

fn check_fields(json: &Value, place: Place<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let at = child(path, "additionalProperties");
    let named = map(json, "properties").next().is_some();
    let additional = json.get("additionalProperties").filter(|value| !value.is_null());
    if named && additional.is_some_and(|additional| *additional != Value::Bool(true)) {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(at.clone(), detail));
    }
    if let Some(additional) = one(json, "additionalProperties") {
        let why = Some("inside additionalProperties applying to object metadata").filter(|_| place.in_meta);
        walk(additional, Place { root: false, no_defaults: why.or(place.no_defaults), ..place }, &at, errors);
    }
    for (name, property) in map(json, "properties") {
        let at = format!("{path}.properties[{name}]");
        let meta = META.contains(&name.as_str()) && (place.root || flag(json, "x-kubernetes-embedded-resource"));
        let why = format!("in top-level {name}");
        let why = Some(why.as_str()).filter(|_| meta && place.root);
        let inner = Place { root: false, in_meta: place.in_meta || meta, no_defaults: why.or(place.no_defaults) };
        walk(property, inner, &at, errors);
    }
}

fn check_standard(json: &Value, place: Place<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(json, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(child(path, "type"), kind, &TYPES));
    }
    if let Some(why) = place.no_defaults.filter(|_| json.get("default").is_some_and(|value| !value.is_null())) {
        errors.push(FieldError::forbidden(child(path, "default"), format!("must not be set {why}")));
    }
    let given = |key: &str| match json.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => key == "$ref" || !text.is_empty(),
        Some(Value::Object(map)) => matches!(key, "dependencies" | "additionalItems") || !map.is_empty(),
        Some(_) => true,
    };
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if given(key) {
            errors.push(FieldError::forbidden(child(path, key), format!("{key} is not supported")));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(child(path, "type"), detail));
    }
    if !list(json, "items").is_empty() {
        errors.push(FieldError::forbidden(child(path, "items"), "items must be a schema object and not an array"));
    }
    if place.in_meta && flag(json, "x-kubernetes-embedded-resource") {
        let at = child(path, "x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(at, "must not be used inside of resource meta"));
    }
}
