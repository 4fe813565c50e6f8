//! Whether an applied configuration fits its type. What does not could not be merged.

use std::collections::BTreeSet;

use serde_json::{Map as Object, Value};

use super::{
    element::Element,
    list,
    node::{Kind, List, Map, Node, Scalar},
    value,
};

/// All that is wrong, each with its place before it.
pub(crate) fn check(node: &Node, config: &Value) -> Result<(), String> {
    let mut faults = Vec::new();
    walk(node, config, "", &mut faults);
    match faults.len() {
        0 => Ok(()),
        1 => Err(faults.remove(0)),
        _ => Err(format!("errors:\n  {}", faults.join("\n  "))),
    }
}

fn walk(node: &Node, value: &Value, path: &str, faults: &mut Vec<String>) {
    let kind = match node.kind(Some(value)) {
        Kind::Open => node.first(),
        kind => kind,
    };
    match (kind, value) {
        (_, Value::Null) => {}
        (Kind::Map, Value::Object(object)) => {
            if let Some(map) = node.map() {
                walk_map(map, object, path, faults);
            }
        }
        (Kind::List, Value::Array(items)) => {
            if let Some(list) = node.list() {
                walk_list(list, items, path, faults);
            }
        }
        (Kind::Scalar, value) => {
            let scalar = node.scalar().unwrap_or(Scalar::Any);
            if let Some(wanted) = unmet(scalar, value) {
                faults.push(fault(path, &format!("expected {wanted}, got {}", value::print(value))));
            }
        }
        (Kind::List, value) => faults.push(fault(path, &format!("expected list, got {}", value::print(value)))),
        (_, value) => faults.push(fault(path, &format!("expected map, got {}", value::print(value)))),
    }
}

fn fault(path: &str, text: &str) -> String {
    if path.is_empty() { text.to_owned() } else { format!("{path}: {text}") }
}

fn unmet(scalar: Scalar, value: &Value) -> Option<&'static str> {
    let (fits, wanted) = match scalar {
        Scalar::Numeric => (value.is_number(), "numeric (int or float)"),
        Scalar::Text => (value.is_string(), "string"),
        Scalar::Boolean => (value.is_boolean(), "boolean"),
        Scalar::Any => (!value.is_array() && !value.is_object(), "any scalar"),
    };
    (!fits).then_some(wanted)
}

fn walk_map(map: Map<'_>, object: &Object<String, Value>, path: &str, faults: &mut Vec<String>) {
    for (name, value) in object {
        let path = format!("{path}{}", Element::field(name));
        match map.child(name) {
            Some(node) => walk(node, value, &path, faults),
            None => faults.push(fault(&path, "field not declared in schema")),
        }
    }
}

fn walk_list(list: List<'_>, items: &[Value], path: &str, faults: &mut Vec<String>) {
    let mut seen: BTreeSet<Element> = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let element = if list.atomic {
            Ok(Element::Index(i64::try_from(index).unwrap_or(i64::MAX)))
        } else {
            list::name(list, item)
        };
        match element {
            Err(why) => {
                faults.push(fault(path, &format!("element {index}: {why}")));
                return;
            }
            Ok(element) => {
                walk(list.items, item, &format!("{path}{element}"), faults);
                let text = element.to_string();
                if !seen.insert(element) {
                    faults.push(fault(path, &format!("duplicate entries for key {text}")));
                }
            }
        }
    }
}
