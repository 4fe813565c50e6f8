//! An object without the fields of a set.

use serde_json::{Map as Object, Value};

use super::{
    element::Element,
    list,
    node::{Kind, List, Map, Node},
    set::Set,
};

/// What nothing is left of is null, as in Kubernetes.
pub(super) fn remove(node: &Node, value: &Value, set: &Set) -> Value {
    place(node, value, set, &|_| Value::Null)
}

/// The same, but that a map or list of which nothing is left stays, empty: a null would not fit it.
pub(super) fn empty(node: &Node, value: &Value, set: &Set) -> Value {
    place(node, value, set, &|value| match value {
        Value::Object(_) => Value::Object(Object::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        _ => Value::Null,
    })
}

/// `nothing` says what stands for a value of which nothing is left.
type Nothing<'a> = &'a dyn Fn(&Value) -> Value;

fn place(node: &Node, value: &Value, set: &Set, nothing: Nothing<'_>) -> Value {
    left(node, value, set, nothing).unwrap_or_else(|| nothing(value))
}

fn left(node: &Node, value: &Value, set: &Set, nothing: Nothing<'_>) -> Option<Value> {
    let kind = match node.kind(Some(value)) {
        Kind::Open => node.first(),
        kind => kind,
    };
    match (kind, node.map(), node.list()) {
        (Kind::Map, Some(map), _) if map.atomic => None,
        (Kind::Map, Some(map), _) => from_map(map, value.as_object()?, set, nothing),
        (Kind::List, _, Some(list)) if list.atomic => None,
        (Kind::List, _, Some(list)) => from_list(list, value.as_array()?, set, nothing),
        _ => Some(value.clone()),
    }
}

fn from_map(map: Map<'_>, object: &Object<String, Value>, set: &Set, nothing: Nothing<'_>) -> Option<Value> {
    let mut out = Object::new();
    for (name, value) in object {
        let element = Element::field(name);
        if set.owns(&element) {
            continue;
        }
        let left = match (set.below(&element), map.child(name)) {
            (Some(below), Some(node)) => place(node, value, below, nothing),
            _ => value.clone(),
        };
        out.insert(name.clone(), left);
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

fn from_list(list: List<'_>, items: &[Value], set: &Set, nothing: Nothing<'_>) -> Option<Value> {
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
            Some(below) => place(list.items, item, below, nothing),
            None => item.clone(),
        });
    }
    (!out.is_empty()).then_some(Value::Array(out))
}
