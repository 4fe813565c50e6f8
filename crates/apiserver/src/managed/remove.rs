//! An object without the fields of a set.

use serde_json::{Map as Object, Value};

use super::{
    element::Element,
    list,
    node::{Kind, List, Map, Node},
    set::Set,
};

pub fn remove(node: &Node, value: &Value, set: &Set) -> Value {
    place(node, value, set).unwrap_or(Value::Null)
}

/// Nothing if nothing is left.
fn place(node: &Node, value: &Value, set: &Set) -> Option<Value> {
    let kind = match node.kind(Some(value)) {
        Kind::Open => node.first(),
        kind => kind,
    };
    match (kind, node.map(), node.list()) {
        (Kind::Map, Some(map), _) if map.atomic => None,
        (Kind::Map, Some(map), _) => from_map(map, value.as_object()?, set),
        (Kind::List, _, Some(list)) if list.atomic => None,
        (Kind::List, _, Some(list)) => from_list(list, value.as_array()?, set),
        _ => Some(value.clone()),
    }
}

fn from_map(map: Map<'_>, object: &Object<String, Value>, set: &Set) -> Option<Value> {
    let mut out = Object::new();
    for (name, value) in object {
        let element = Element::field(name);
        if set.owns(&element) {
            continue;
        }
        let left = match (set.below(&element), map.child(name)) {
            (Some(below), Some(node)) => remove(node, value, below),
            _ => value.clone(),
        };
        out.insert(name.clone(), left);
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

fn from_list(list: List<'_>, items: &[Value], set: &Set) -> Option<Value> {
    let mut out = Vec::new();
    for item in items {
        let Ok(element) = list::name(list, item) else {
            out.push(item.clone());
            continue;
        };
        if set.owns(&element) {
            continue;
        }
        out.push(match set.below(&element) {
            Some(below) => remove(list.items, item, below),
            None => item.clone(),
        });
    }
    (!out.is_empty()).then_some(Value::Array(out))
}
