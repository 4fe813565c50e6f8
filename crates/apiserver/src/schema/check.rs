//! Whether a schema is structural: every field has one type, said outside of the logic of `anyOf` and its like.

use regex::Regex;
use serde_json::{Value, json};

use super::{Schema, fill, prune::prune, validate};
use crate::field::{FieldError, child};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// All that is wrong with the schema in `json`, sorted by text so that two runs say the same.
pub fn check(json: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(json, Level::Root, path, &mut errors);
    errors.sort_by_key(ToString::to_string);
    errors
}

fn walk(json: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let flag = |key: &str| json.get(key).and_then(Value::as_bool).unwrap_or_default();
    let kind = json.get("type").and_then(Value::as_str).unwrap_or_default();
    check_type(json, kind, level, path, errors);
    for key in ["$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id", "$schema"] {
        if json.get(key).is_some() {
            errors.push(FieldError::forbidden(child(path, key), format!("{key} is not supported")));
        }
    }
    if flag("uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(child(path, "uniqueItems"), detail));
    }
    if json.get("properties").is_some_and(|p| !p.is_null())
        && json.get("additionalProperties").is_some_and(Value::is_object)
    {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(child(path, "additionalProperties"), detail));
    }
    if flag("x-kubernetes-int-or-string") && flag("x-kubernetes-preserve-unknown-fields") {
        let at = child(path, "x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(at, true, "must be false if x-kubernetes-int-or-string is true"));
    }
    check_list(json, kind, path, errors);
    check_pattern(json, path, errors);
    check_default(json, level, path, errors);
    check_logic(json, flag("x-kubernetes-int-or-string"), path, errors);
    check_children(json, level, path, errors);
}

fn check_type(json: &Value, kind: &str, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let flag = |key: &str| json.get(key).and_then(Value::as_bool).unwrap_or_default();
    let at = child(path, "type");
    if !matches!(kind, "" | "array" | "boolean" | "integer" | "number" | "object" | "string") {
        let known = ["array", "boolean", "integer", "number", "object", "string"];
        errors.push(FieldError::not_supported(at, kind, &known));
    } else if flag("x-kubernetes-embedded-resource") && kind != "object" {
        errors.push(FieldError::required(at, "must be object if x-kubernetes-embedded-resource is true"));
    } else if kind.is_empty() && !flag("x-kubernetes-int-or-string") && !flag("x-kubernetes-preserve-unknown-fields") {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at, detail));
    } else if level == Level::Root && !matches!(kind, "object" | "") {
        errors.push(FieldError::invalid(at, kind, "must be object at the root"));
    } else if flag("x-kubernetes-int-or-string") && !kind.is_empty() {
        errors.push(FieldError::forbidden(at, "must be empty if x-kubernetes-int-or-string is true"));
    }
}

fn check_list(json: &Value, kind: &str, path: &str, errors: &mut Vec<FieldError>) {
    if kind == "array" && json.get("items").is_none() {
        errors.push(FieldError::required(child(path, "items"), "must be specified"));
    }
    let at = child(path, "x-kubernetes-list-type");
    let keys = json.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    match json.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some(_) if kind != "array" => {
            errors.push(FieldError::invalid(
                child(path, "type"),
                kind,
                "must be array if x-kubernetes-list-type is set",
            ));
        }
        Some("atomic" | "set") | None if keys.is_some_and(|keys| !keys.is_empty()) => {
            let at = child(path, "x-kubernetes-list-map-keys");
            errors.push(FieldError::forbidden(at, "must not be specified if x-kubernetes-list-type is not map"));
        }
        Some("map") => check_map_list(json, keys.map(Vec::as_slice).unwrap_or_default(), path, errors),
        Some("atomic" | "set") | None => {}
        Some(other) => errors.push(FieldError::not_supported(at, other, &["atomic", "set", "map"])),
    }
}

fn check_map_list(json: &Value, keys: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let at = child(path, "x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(FieldError::required(at, "must not be empty if x-kubernetes-list-type is map"));
        return;
    }
    let items = &json["items"];
    if items["type"] != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(child(path, "items.type"), items["type"].clone(), detail));
    }
    let required = items["required"].as_array();
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        let property = &items["properties"][name];
        if property.is_null() {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(format!("{at}[{index}]"), name, detail));
        } else if !required.is_some_and(|required| required.contains(key)) && property.get("default").is_none() {
            let at = format!("{path}.items.properties[{name}].default");
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(at, detail));
        }
    }
}

fn check_pattern(json: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(pattern) = json.get("pattern").and_then(Value::as_str)
        && let Err(error) = Regex::new(pattern)
    {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim();
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(child(path, "pattern"), pattern, detail));
    }
}

/// A default must itself be a value that the schema takes, after what is unknown in it would have been taken out.
fn check_default(json: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let Some(default) = json.get("default") else { return };
    let at = child(path, "default");
    if level == Level::Root {
        errors.push(FieldError::forbidden(at, "must not be set at the root"));
        return;
    }
    let schema = Schema::parse(json);
    let mut pruned = default.clone();
    if !schema.embedded && !prune(&schema, &mut pruned).is_empty() {
        errors.push(FieldError::invalid(at, default.clone(), "must not have unknown fields"));
        return;
    }
    fill(&schema, &mut pruned);
    errors.extend(validate(&schema, &pruned, &at));
}

/// Under a junctor only values are judged; types and structure belong outside.
fn check_logic(json: &Value, int_or_string: bool, path: &str, errors: &mut Vec<FieldError>) {
    let list = |key: &str| json.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let pair = json!([{"type": "integer"}, {"type": "string"}]);
    for key in JUNCTORS {
        for (index, nested) in list(key).iter().enumerate() {
            let at = format!("{path}.{key}[{index}]");
            let usual = int_or_string
                && ((key == "anyOf" && json[key] == pair) || (key == "allOf" && index == 0 && nested["anyOf"] == pair));
            if !usual {
                check_nested(nested, json, &at, errors);
            }
        }
    }
    if let Some(not) = json.get("not") {
        check_nested(not, json, &child(path, "not"), errors);
    }
}

fn check_nested(nested: &Value, outside: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for key in ["type", "title", "description"] {
        if nested.get(key).is_some() {
            errors.push(FieldError::forbidden(child(path, key), "must be empty to be structural"));
        }
    }
    for key in ["additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if nested.get(key).is_some() {
            errors.push(FieldError::forbidden(child(path, key), "must be undefined to be structural"));
        }
    }
    for key in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if nested.get(key) == Some(&Value::Bool(true)) {
            errors.push(FieldError::forbidden(child(path, key), "must be false to be structural"));
        }
    }
    for (name, property) in nested.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let at = format!("{path}.properties[{name}]");
        let known = &outside["properties"][name];
        if name == "metadata" {
            errors.push(FieldError::forbidden(at, "must not be specified in a nested context"));
        } else if known.is_null() {
            let place = at.replace(".allOf", "").replace(".anyOf", "").replace(".oneOf", "");
            errors.push(FieldError::required(place, format!("because it is defined in {at}")));
        } else {
            check_nested(property, known, &at, errors);
        }
    }
    check_logic_within(nested, outside, path, errors);
    check_pattern(nested, path, errors);
}

fn check_logic_within(nested: &Value, outside: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for key in JUNCTORS {
        for (index, inner) in nested.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            check_nested(inner, outside, &format!("{path}.{key}[{index}]"), errors);
        }
    }
    if let Some(not) = nested.get("not") {
        check_nested(not, outside, &child(path, "not"), errors);
    }
}

fn check_children(json: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    for (name, property) in json.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let at = format!("{path}.properties[{name}]");
        if level == Level::Root && name == "metadata" {
            check_metadata(property, &at, errors);
        } else {
            walk(property, Level::Field, &at, errors);
        }
    }
    if let Some(items) = json.get("items") {
        walk(items, Level::Item, &child(path, "items"), errors);
    }
    if let Some(additional) = json.get("additionalProperties") {
        let at = child(path, "additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(at.clone(), "must not be used at the root"));
        }
        if additional.is_object() {
            walk(additional, Level::Field, &at, errors);
        }
    }
}

fn check_metadata(metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let known = |name: &String| matches!(name.as_str(), "name" | "generateName");
    let names = metadata.get("properties").and_then(Value::as_object);
    if names.is_some_and(|names| !names.keys().all(known)) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(path, detail));
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(json!({"type": "object", "properties": {"spec": {"type": "object"}}}) => ""; "sound")]
    #[test_case(json!({}) => "s.type: Required value: must not be empty at the root"; "no type")]
    #[test_case(json!({"type": "object", "properties": {"a": {}}}) => "s.properties[a].type: Required value: must not be empty for specified object fields"; "field without type")]
    #[test_case(json!({"type": "object", "properties": {"a": {"type": "array"}}}) => "s.properties[a].items: Required value: must be specified"; "array without items")]
    #[test_case(json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}) => "s.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error: unclosed group"; "bad pattern")]
    #[test_case(json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}) => "s.properties[a].default: Invalid value: \"string\": s.properties[a].default in body must be of type integer: \"string\""; "bad default")]
    #[test_case(json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}}) => ""; "int or string as generators write it")]
    #[test_case(json!({"type": "object", "anyOf": [{"type": "object"}]}) => "s.anyOf[0].type: Forbidden: must be empty to be structural"; "type in a junctor")]
    #[test_case(json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"}}}) => "s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"; "map list without keys")]
    #[test_case(json!({"type": "object", "properties": {"a": {"type": "object", "$ref": "#/x"}}}) => "s.properties[a].$ref: Forbidden: $ref is not supported"; "reference")]
    fn says(schema: Value) -> String {
        let errors = check(&schema, "s");
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }
}
