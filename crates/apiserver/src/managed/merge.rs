//! An object with a configuration laid over it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map as Object, Value};

use super::{
    element::Element,
    list,
    node::{Kind, List, Map, Node},
};

type Side<'a> = Option<&'a Value>;

/// The merged object. Nothing is removed by it; of two leaves the configuration's is taken.
pub(super) fn merge(node: &Node, live: &Value, config: &Value) -> Result<Value, String> {
    Ok(place(node, Some(live), Some(config))?.unwrap_or(Value::Null))
}

fn place(node: &Node, live: Side<'_>, config: Side<'_>) -> Result<Option<Value>, String> {
    let kind = if config.is_some() { node.kind(config) } else { node.kind(live) };
    let kind = if kind == Kind::Open { node.first() } else { kind };
    match (kind, node.map(), node.list()) {
        (Kind::Map, Some(map), _) if !map.atomic => {
            let (live_map, config_map) = (live.and_then(Value::as_object), config.and_then(Value::as_object));
            if live_map.into_iter().chain(config_map).any(|map| !map.is_empty()) {
                return maps(map, live_map, config_map);
            }
        }
        (Kind::List, _, Some(list)) if !list.atomic => {
            let (live_list, config_list) = (live.and_then(Value::as_array), config.and_then(Value::as_array));
            if live_list.into_iter().chain(config_list).any(|list| !list.is_empty()) {
                let (live, config) =
                    (live_list.map_or(&[][..], Vec::as_slice), config_list.map_or(&[][..], Vec::as_slice));
                return lists(list, live, config);
            }
        }
        _ => {}
    }
    // As one piece; an empty map and a null stay what they are.
    Ok(config.or(live).cloned())
}

fn maps(
    map: Map<'_>,
    live: Option<&Object<String, Value>>,
    config: Option<&Object<String, Value>>,
) -> Result<Option<Value>, String> {
    let names: BTreeSet<&String> = live.into_iter().chain(config).flat_map(|map| map.keys()).collect();
    let mut out = Object::new();
    for name in names {
        let (live, config) = (live.and_then(|map| map.get(name)), config.and_then(|map| map.get(name)));
        // A field that the schema has lost stays as it is until it is pruned.
        let node = map.child(name).unwrap_or(&Node::Whole);
        if let Some(value) = place(node, live, config)? {
            out.insert(name.clone(), value);
        }
    }
    Ok((!out.is_empty()).then_some(Value::Object(out)))
}

/// Items by their names. In the order of the configuration where both have them, with others near where they were.
fn lists(list: List<'_>, live: &[Value], config: &[Value]) -> Result<Option<Value>, String> {
    let (live_names, live_items) = index(list, live)?;
    let (config_names, config_items) = index(list, config)?;
    let mut shared: VecDeque<&Element> = config_names.iter().filter(|name| live_items.contains_key(*name)).collect();
    let mut next = shared.pop_front();
    let mut merged: BTreeSet<&Element> = BTreeSet::new();
    let mut out: Vec<Value> = Vec::new();
    let (mut l, mut c) = (0, 0);
    while l < live_names.len() || c < config_names.len() {
        if let (Some(name), Some(wanted)) = (live_names.get(l), config_names.get(c)) {
            if name == wanted {
                out.extend(place(list.items, live_items.get(name).copied(), config_items.get(name).copied())?);
                merged.insert(name);
                (l, c) = (l + 1, c + 1);
                next = shared.pop_front();
                continue;
            }
            // The configuration has it elsewhere, and something else comes first.
            if config_items.contains_key(name) && next.is_some_and(|next| next != name) {
                l += 1;
                continue;
            }
        }
        if let Some(name) = live_names.get(l) {
            if !config_items.contains_key(name) {
                out.extend(place(list.items, Some(&live[l]), None)?);
                l += 1;
                continue;
            }
            if merged.contains(name) {
                l += 1;
            }
        }
        if let Some(wanted) = config_names.get(c) {
            out.extend(place(list.items, live_items.get(wanted).copied(), config_items.get(wanted).copied())?);
            merged.insert(wanted);
            c += 1;
            if next == Some(wanted) {
                next = shared.pop_front();
            }
        }
    }
    Ok((!out.is_empty()).then_some(Value::Array(out)))
}

static NOTHING: Value = Value::Null;

/// The names of all items in their order, and the item of each; of several of one name none can be merged.
fn index<'a>(list: List<'_>, items: &'a [Value]) -> Result<(Vec<Element>, BTreeMap<Element, &'a Value>), String> {
    let mut found: BTreeMap<Element, &Value> = BTreeMap::new();
    let mut names = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let name = list::name(list, item).map_err(|why| format!("element {index}: {why}"))?;
        found.entry(name.clone()).and_modify(|item| *item = &NOTHING).or_insert(item);
        names.push(name);
    }
    Ok((names, found))
}
