//! Lists that are sets or maps, and maps that are one value.

use serde_json::Value;

use super::{flag, list, map, one, text};
use crate::field::{FieldError, child};

pub(super) fn check(json: &Value, path: &str, errors: &mut Vec<FieldError>) {
    check_map_type(json, path, errors);
    let kind = text(json, "type");
    let Some(list_type) = json.get("x-kubernetes-list-type").and_then(Value::as_str) else {
        if !list(json, "x-kubernetes-list-map-keys").is_empty() {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            errors.push(FieldError::required(child(path, "x-kubernetes-list-type"), detail));
        }
        return;
    };
    let at = child(path, "x-kubernetes-list-type");
    if kind != "array" {
        wrong_type(kind, "must be array if x-kubernetes-list-type is specified", path, errors);
    } else if list_type == "set" {
        check_set(json, path, errors);
    }
    if !matches!(list_type, "atomic" | "set" | "map") {
        errors.push(FieldError::not_supported(at.clone(), list_type, &["atomic", "set", "map"]));
    }
    if list_type != "map" && !list(json, "x-kubernetes-list-map-keys").is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(FieldError::invalid(at, list_type, detail));
    }
    if list_type == "map" {
        check_map(json, path, errors);
    }
    check_keys(json, list_type, path, errors);
}

fn wrong_type(kind: &str, detail: &str, path: &str, errors: &mut Vec<FieldError>) {
    let at = child(path, "type");
    errors.push(match kind {
        "" => FieldError::required(at, detail),
        _ => FieldError::invalid(at, kind, detail),
    });
}

fn check_map_type(json: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(map_type) = json.get("x-kubernetes-map-type").and_then(Value::as_str) else { return };
    if text(json, "type") != "object" {
        wrong_type(text(json, "type"), "must be object if x-kubernetes-map-type is specified", path, errors);
    }
    if !matches!(map_type, "atomic" | "granular") {
        let at = child(path, "x-kubernetes-map-type");
        errors.push(FieldError::not_supported(at, map_type, &["atomic", "granular"]));
    }
}

/// Members of a set are compared as a whole.
fn check_set(json: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = one(json, "items") else { return };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list_type = items.get("x-kubernetes-list-type").cloned().unwrap_or_default();
    let at = |key: &str| format!("{path}.items.{key}");
    match text(items, "type") {
        "array" if !list_type.is_null() && list_type != "atomic" => {
            errors.push(FieldError::invalid(at("x-kubernetes-list-type"), list_type, detail));
        }
        "object" if items["x-kubernetes-map-type"] != "atomic" => {
            errors.push(FieldError::invalid(at("x-kubernetes-map-type"), list_type, detail));
        }
        _ => {}
    }
}

fn check_map(json: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (keys, at) = (list(json, "x-kubernetes-list-map-keys"), child(path, "x-kubernetes-list-map-keys"));
    if keys.is_empty() {
        errors.push(FieldError::required(at.clone(), "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = one(json, "items") else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(child(path, "items"), detail));
        return;
    };
    let kind = text(items, "type");
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(child(path, "items.type"), kind, detail));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        match items["properties"].get(name) {
            None => {
                errors.push(FieldError::invalid(at.clone(), keys, "entries must all be names of item properties"));
            }
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let at = format!("{path}.items.properties[{name}].type");
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(at, kind, detail));
            }
            Some(_) => {}
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(at.clone(), keys, "must not contain duplicate entries"));
        }
    }
}

/// Keys of a map are always there.
fn check_keys(json: &Value, list_type: &str, path: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = one(json, "items").filter(|_| matches!(list_type, "set" | "map")) else { return };
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(format!("{path}.items.nullable"), detail));
    }
    let keys = list(json, "x-kubernetes-list-map-keys").iter().filter(|_| list_type == "map");
    for key in keys {
        let name = key.as_str().unwrap_or_default();
        let Some((_, property)) = map(items, "properties").find(|(known, _)| *known == name) else { continue };
        let at = |what: &str| format!("{path}.items.properties[{name}].{what}");
        if !list(items, "required").contains(key) && property.get("default").is_none() {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(at("default"), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(at("nullable"), detail));
        }
    }
}
