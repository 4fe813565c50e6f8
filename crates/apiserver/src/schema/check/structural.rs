//! Whether a schema is structural: every field has one type, said outside of the logic of `anyOf` and its like.

use serde_json::{Value, json};

use super::{JUNCTORS, flag, list, map, one, text};
use crate::field::{FieldError, child};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What can be no part of a structural schema at all.
pub(super) fn unsupported(json: &Value) -> Option<String> {
    let own = [
        ("id", !text(json, "id").is_empty()),
        ("schema", !text(json, "$schema").is_empty()),
        ("$ref", !text(json, "$ref").is_empty()),
        ("patternProperties", map(json, "patternProperties").next().is_some()),
        ("dependencies", map(json, "dependencies").next().is_some()),
        ("additionalItems", json.get("additionalItems").is_some_and(|value| !value.is_null())),
        ("definitions", map(json, "definitions").next().is_some()),
    ];
    if let Some((key, _)) = own.into_iter().find(|(_, found)| *found) {
        return Some(format!("OpenAPIV3Schema '{key}' is not supported"));
    }
    if json.get("items").is_some_and(Value::is_array) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let singles = ["items", "additionalProperties", "not"].into_iter().filter_map(|key| one(json, key));
    let listed = JUNCTORS.into_iter().flat_map(|key| list(json, key));
    let mut all = singles.chain(listed).chain(map(json, "properties").map(|(_, schema)| schema));
    all.find_map(unsupported)
}

/// All that keeps a schema from being structural, sorted by text so that two runs say the same.
pub(super) fn check(json: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(json, Level::Root, path, &mut errors);
    complete_all(json, Some(json), path, path, &mut errors);
    errors.sort_by_key(ToString::to_string);
    errors
}

fn walk(json: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let (int_or_string, embedded) =
        (flag(json, "x-kubernetes-int-or-string"), flag(json, "x-kubernetes-embedded-resource"));
    if text(json, "type") == "array" && json.get("items").is_none_or(Value::is_null) {
        errors.push(FieldError::required(child(path, "items"), "must be specified"));
    }
    check_children(json, level, path, errors);
    for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if int_or_string && flag(json, key) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(child(path, key), true, detail));
        }
    }
    let pair = json!([{"type": "integer"}, {"type": "string"}]);
    let (skip_any, skip_first) = (json["anyOf"] == pair, json["allOf"][0]["anyOf"] == pair);
    check_values(json, skip_any, skip_first, path, errors);
    check_type(json, level, path, errors);
    check_meta(json, level == Level::Root || embedded, level, path, errors);
    if embedded && json.get("additionalProperties").is_some_and(|value| !value.is_null()) {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(child(path, "additionalProperties"), detail));
    }
    let empty = map(json, "properties").next().is_none();
    if embedded && !flag(json, "x-kubernetes-preserve-unknown-fields") && empty {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(child(path, "properties"), detail));
    }
}

fn check_children(json: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(items) = one(json, "items") {
        walk(items, Level::Item, &child(path, "items"), errors);
    }
    for (name, property) in map(json, "properties") {
        walk(property, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    let at = child(path, "additionalProperties");
    if level == Level::Root && json.get("additionalProperties").is_some_and(|value| !value.is_null()) {
        errors.push(FieldError::forbidden(at.clone(), "must not be used at the root"));
    }
    if let Some(additional) = one(json, "additionalProperties") {
        walk(additional, Level::Field, &at, errors);
    }
}

fn check_type(json: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let (kind, at) = (text(json, "type"), child(path, "type"));
    let free = flag(json, "x-kubernetes-int-or-string") || flag(json, "x-kubernetes-preserve-unknown-fields");
    if flag(json, "x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(at.clone(), detail),
            _ => FieldError::invalid(at.clone(), kind, detail),
        });
    } else if kind.is_empty() && !free {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at.clone(), detail));
    }
    if level == Level::Root && !matches!(kind, "" | "object") {
        errors.push(FieldError::invalid(at, kind, "must be object at the root"));
    }
}

/// Of the header of an object the types are known, and of its metadata only the name can be restricted.
fn check_meta(json: &Value, whole: bool, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["kind", "apiVersion"] {
        if let Some(property) = json["properties"].get(name).filter(|property| whole && property["type"] != "string") {
            let at = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(at, text(property, "type"), "must be string"));
        }
    }
    let Some(metadata) = json["properties"].get("metadata") else { return };
    let at = format!("{path}.properties[metadata]");
    if whole && metadata["type"] != "object" {
        errors.push(FieldError::invalid(child(&at, "type"), text(metadata, "type"), "must be object"));
    }
    let more = |(key, value): (&String, &Value)| match key.as_str() {
        "type" | "default" => false,
        "properties" => map(metadata, "properties").any(|(name, _)| !matches!(name.as_str(), "name" | "generateName")),
        _ => !super::is_nothing(value),
    };
    if level == Level::Root && metadata.as_object().into_iter().flatten().any(more) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(at, detail));
    }
}

/// What is said of values under junctors. What generators write for a type that is an integer or a string is let pass.
fn check_values(json: &Value, skip_any: bool, skip_first: bool, path: &str, errors: &mut Vec<FieldError>) {
    for key in JUNCTORS.into_iter().filter(|key| !(skip_any && *key == "anyOf")) {
        for (index, nested) in list(json, key).iter().enumerate() {
            let skip = skip_first && key == "allOf" && index == 0;
            check_nested(nested, skip, &format!("{path}.{key}[{index}]"), errors);
        }
    }
    if let Some(not) = one(json, "not") {
        check_nested(not, false, &child(path, "not"), errors);
    }
    let pattern = text(json, "pattern");
    if let Err(why) = super::super::pattern::compile(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(child(path, "pattern"), pattern, detail));
    }
}

/// Under a junctor only values are judged; types and structure belong outside.
fn check_nested(nested: &Value, skip_any: bool, path: &str, errors: &mut Vec<FieldError>) {
    check_values(nested, skip_any, false, path, errors);
    if let Some(items) = one(nested, "items") {
        check_nested(items, false, &child(path, "items"), errors);
    }
    for (name, property) in map(nested, "properties") {
        check_nested(property, false, &format!("{path}.properties[{name}]"), errors);
    }
    let given = |key: &str| nested.get(key).is_some_and(|value| !value.is_null());
    let filled = |key: &str| !text(nested, key).is_empty() || !list(nested, key).is_empty();
    let words = [
        ("empty", &["type", "title", "description", "x-kubernetes-list-map-keys", "x-kubernetes-validations"][..]),
        ("undefined", &["additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"]),
        (
            "false",
            &[
                "nullable",
                "x-kubernetes-preserve-unknown-fields",
                "x-kubernetes-embedded-resource",
                "x-kubernetes-int-or-string",
            ],
        ),
    ];
    for (word, keys) in words {
        let wrong = |key: &&&str| match word {
            "empty" => filled(key),
            // One that is false says nothing there.
            "undefined" => given(key) && !(**key == "additionalProperties" && nested[**key] == false),
            _ => flag(nested, key),
        };
        let refuse = |key: &&str| FieldError::forbidden(child(path, key), format!("must be {word} to be structural"));
        errors.extend(keys.iter().filter(wrong).map(refuse));
    }
    if nested["properties"].get("metadata").is_some() {
        let at = format!("{path}.properties[metadata]");
        errors.push(FieldError::forbidden(at, "must not be specified in a nested context"));
    }
}

/// What is judged under a junctor must be there outside of it too: `outside`, at `outside_path`.
fn complete_all(json: &Value, outside: Option<&Value>, outside_path: &str, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(not) = one(json, "not") {
        complete(not, outside, outside_path, &child(path, "not"), errors);
    }
    for key in JUNCTORS {
        for (index, nested) in list(json, key).iter().enumerate() {
            complete(nested, outside, outside_path, &format!("{path}.{key}[{index}]"), errors);
        }
    }
}

fn complete(nested: &Value, outside: Option<&Value>, outside_path: &str, path: &str, errors: &mut Vec<FieldError>) {
    let Some(known) = outside else {
        errors.push(FieldError::required(outside_path, format!("because it is defined in {path}")));
        return;
    };
    complete_all(nested, outside, outside_path, path, errors);
    if let Some(items) = one(nested, "items") {
        complete(items, one(known, "items"), &child(outside_path, "items"), &child(path, "items"), errors);
    }
    for (name, property) in map(nested, "properties") {
        let key = format!("properties[{name}]");
        complete(property, known["properties"].get(name), &child(outside_path, &key), &child(path, &key), errors);
    }
}
