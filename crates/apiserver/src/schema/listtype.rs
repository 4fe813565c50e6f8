//! Lists that are sets or maps have no two items that are the same.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{ListType, Schema};
use crate::field::{FieldError, child};

pub(crate) fn check_lists(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(inner) = schema.properties.get(name) {
                    check_lists(inner, value, &child(path, name), errors);
                } else if let Some(inner) = &schema.additional {
                    check_lists(inner, value, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(list) => {
            duplicates(schema, list, path, errors);
            if let Some(items) = &schema.items {
                for (index, item) in list.iter().enumerate() {
                    check_lists(items, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn duplicates(schema: &Schema, list: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let is_item = |item: &Value| item.is_object() || item.is_null();
    if schema.list_type == Some(ListType::Map)
        && let Some(index) = list.iter().position(|item| !is_item(item))
    {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(format!("{path}[{index}]"), list[index].clone(), detail));
        return;
    }
    let identity = |item: &Value| match schema.list_type {
        Some(ListType::Set) => Some(item.clone()),
        Some(ListType::Map) => Some(Value::Object(keys(schema, item))),
        _ => None,
    };
    // By their texts, so that a long list is gone through once.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, found) in list.iter().enumerate().filter_map(|(index, item)| Some((index, identity(item)?))) {
        let times = seen.entry(found.to_string()).or_default();
        *times += 1;
        // Told at its second place and not at those that follow.
        if *times == 2 {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), found));
        }
    }
}

/// The keys by which items of a map list are told apart.
fn keys(schema: &Schema, item: &Value) -> Map<String, Value> {
    let value = |key: &String| item.get(key).map(|value| (key.clone(), value.clone()));
    schema.list_keys.iter().filter_map(value).collect()
}
