//! Objects within objects say what they are, and have metadata that could be an object's own.

use serde_json::{Map, Value};

use super::Schema;
use crate::{
    field::{FieldError, child},
    name,
    object::{self, NameRule},
};

pub(crate) fn check_embedded(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            if schema.embedded {
                check_kind(map, path, errors);
                check_metadata(value, path, errors);
            }
            for (name, value) in map {
                if let Some(inner) = schema.properties.get(name) {
                    check_embedded(inner, value, &child(path, name), errors);
                } else if let Some(inner) = &schema.additional {
                    check_embedded(inner, value, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = &schema.items else { return };
            for (index, item) in list.iter().enumerate() {
                check_embedded(items, item, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}

fn check_kind(map: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for (key, check) in [("apiVersion", check_version as fn(&str) -> Result<(), String>), ("kind", check_name)] {
        let field = child(path, key);
        match map.get(key) {
            None => errors.push(FieldError::required(field, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(field, "", "must not be empty"));
            }
            Some(Value::String(text)) => {
                errors.extend(check(text).err().map(|why| FieldError::invalid(field, text.as_str(), why)));
            }
            Some(other) => errors.push(FieldError::invalid(field, other.clone(), "must be a string")),
        }
    }
}

fn check_version(text: &str) -> Result<(), String> {
    match text.matches('/').count() {
        0 | 1 => Ok(()),
        _ => Err(format!("unexpected GroupVersion string: {text}")),
    }
}

fn check_name(text: &str) -> Result<(), String> {
    name::check_dns1035(&text.to_lowercase())
        .map_err(|why| format!("may have mixed case, but should otherwise match: {why}"))
}

/// Names are those of any kind, so all but what cannot be a part of a path may be in them.
fn check_metadata(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !value["metadata"].is_object() {
        return;
    }
    let mut faults = object::check_metadata(value, true, NameRule::Segment);
    faults.retain(|error| !(error.field == "metadata.name" && error.fault == crate::field::Fault::Required));
    for mut error in faults {
        error.field = child(path, &error.field);
        errors.push(error);
    }
}
