//! Lists that are sets or maps have no two items that are the same.

use serde_json::{Map, Value};

use super::{ListType, Schema};
use crate::field::{FieldError, child};

pub fn check_lists(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
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
    let identity = |item: &Value| match schema.list_type {
        Some(ListType::Set) => Some(item.clone()),
        Some(ListType::Map) => Some(Value::Object(keys(schema, item))),
        _ => None,
    };
    let identities: Vec<Option<Value>> = list.iter().map(identity).collect();
    for (index, identity) in identities.iter().enumerate() {
        if let Some(found) = identity
            // Told at its second place and not at those that follow.
            && identities[..index].iter().filter(|other| *other == identity).count() == 1
        {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), found.clone()));
        }
    }
}

/// The keys by which items of a map list are told apart.
fn keys(schema: &Schema, item: &Value) -> Map<String, Value> {
    let value = |key: &String| item.get(key).map(|value| (key.clone(), value.clone()));
    schema.list_keys.iter().filter_map(value).collect()
}
