//! The write step written down once more, in the plainest way: path by path, place by place, with no tree.

use std::collections::BTreeSet;

use fieldgate::{Gate, Gates, Path, PreRelease, Step, resolve};
use serde_json::{Map, Value, json};

/// One step in an object that exists: a key, or a list item by its keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Hop {
    Key(String),
    Item(Vec<Value>),
}

/// A place in an object.
pub(crate) type Place = Vec<Hop>;

/// What must come out: every topmost frozen place whose parent exists has what is stored, or nothing.
pub(crate) fn write(gates: &Gates, schema: &Value, stored: Option<&Value>, new: &Value) -> Value {
    let mut result = new.clone();
    for place in frozen_places(gates, schema, new) {
        let before = stored.and_then(|stored| get(schema, stored, &place)).cloned();
        let (Some(Hop::Key(name)), parent) = (place.last(), &place[..place.len() - 1]) else {
            panic!("ends with a key")
        };
        let parent = get_mut(schema, &mut result, parent).and_then(Value::as_object_mut).expect("the parent exists");
        match before {
            Some(before) => drop(parent.insert(name.clone(), before)),
            None => drop(parent.remove(name)),
        }
    }
    result
}

/// All topmost frozen places of gates that are off, with parents that are objects.
pub(crate) fn frozen_places(gates: &Gates, schema: &Value, object: &Value) -> Vec<Place> {
    let off = gates.gates.iter().filter(|gate| !gate.is_on()).flat_map(|gate| &gate.field_paths);
    let all: Vec<Place> = off.flat_map(|path| places(path, schema, object)).collect();
    let topmost = |place: &Place| (1..place.len()).all(|len| !all.iter().any(|other| other == &place[..len]));
    all.iter().filter(|place| topmost(place)).cloned().collect()
}

fn places(path: &Path, schema: &Value, object: &Value) -> Vec<Place> {
    let Ok(schemas) = resolve(schema, path) else { return Vec::new() };
    let (last, parents) = path.steps().split_last().expect("a path has steps");
    let mut found: Vec<(Place, &Value)> = vec![(Vec::new(), object)];
    for (step, schema) in parents.iter().zip(schemas) {
        found = found.into_iter().flat_map(|(place, value)| hops(step, schema, place, value)).collect();
    }
    let Step::Named(name) = last else { panic!("a path ends with a name") };
    let parents = found.into_iter().filter(|(_, parent)| parent.is_object());
    parents.map(|(place, _)| [place, vec![Hop::Key(name.clone())]].concat()).collect()
}

fn hops<'a>(step: &Step, schema: &Value, place: Place, value: &'a Value) -> Vec<(Place, &'a Value)> {
    let hop = |hop: Hop, value: &'a Value| ([place.clone(), vec![hop]].concat(), value);
    match (step, value) {
        (Step::Named(name), Value::Object(fields)) => {
            fields.get(name).into_iter().map(|value| hop(Hop::Key(name.clone()), value)).collect()
        }
        (Step::Each, Value::Object(fields)) if schema.get("items").is_none() => {
            fields.iter().map(|(key, value)| hop(Hop::Key(key.clone()), value)).collect()
        }
        (Step::Each, Value::Array(items)) if schema.get("items").is_some() => {
            items.iter().filter(|item| item.is_object()).map(|item| hop(Hop::Item(keys(schema, item)), item)).collect()
        }
        _ => Vec::new(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    Dropped,
    NotUpdated,
    NotRemoved,
    RemovedWithParent,
    Deprecated,
}

/// What the caller is told of a write of `new` where it could read `stored`: by place, with the gate of each.
pub(crate) fn told(gates: &Gates, schema: &Value, stored: Option<&Value>, new: &Value) -> BTreeSet<(String, Told)> {
    let objects: Vec<&Value> = stored.into_iter().chain([new]).collect();
    let frozen: Vec<Place> = objects.iter().flat_map(|object| frozen_places(gates, schema, object)).collect();
    let in_frozen = |place: &Place| (1..place.len()).any(|len| frozen.iter().any(|other| other == &place[..len]));
    let mut told = BTreeSet::new();
    for gate in &gates.gates {
        let paths = gate.field_paths.iter();
        let places = paths.flat_map(|path| objects.iter().flat_map(move |object| places(path, schema, object)));
        for place in places.filter(|place| !in_frozen(place)) {
            told.extend(told_of(gates, gate, schema, stored, new, &place).map(|told| (gate.name.clone(), told)));
        }
    }
    told
}

fn told_of(
    gates: &Gates,
    gate: &Gate,
    schema: &Value,
    stored: Option<&Value>,
    new: &Value,
    place: &[Hop],
) -> Option<Told> {
    let before = stored.and_then(|stored| get(schema, stored, place));
    let sent = get(schema, new, place);
    if gate.is_on() {
        // Used is what is there and was not, or was another, but for what is frozen in it.
        let open = |object: &Value| get(schema, &write(gates, schema, None, object), place).cloned();
        let used = sent.is_some() && stored.and_then(open) != open(new);
        return (used && gate.pre_release == PreRelease::Deprecated).then_some(Told::Deprecated);
    }
    let parent = get(schema, new, &place[..place.len() - 1]).is_some_and(Value::is_object);
    match (before, sent) {
        (before, sent) if before == sent => None,
        (None, _) => Some(Told::Dropped),
        (Some(_), _) if !parent => Some(Told::RemovedWithParent),
        (Some(_), Some(_)) => Some(Told::NotUpdated),
        (Some(_), None) => Some(Told::NotRemoved),
    }
}

/// Defaults, from the outside in.
pub(crate) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                if let (None, Some(default)) = (fields.get(name), field.get("default")) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                let own = schema["properties"].get(name).or(schema.get("additionalProperties"));
                own.into_iter().for_each(|schema| fill(schema, value));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(&schema["items"], item)),
        _ => {}
    }
}

fn keys(list: &Value, item: &Value) -> Vec<Value> {
    let names = list["x-kubernetes-list-map-keys"].as_array().expect("a keyed list");
    let default = |name: &str| list["items"]["properties"][name]["default"].clone();
    names
        .iter()
        .filter_map(Value::as_str)
        .map(|name| item.get(name).cloned().unwrap_or_else(|| default(name)))
        .collect()
}

fn below<'a>(schema: &'a Value, hop: &Hop) -> &'a Value {
    match hop {
        Hop::Item(_) => &schema["items"],
        Hop::Key(name) if schema["properties"].get(name).is_some() => &schema["properties"][name],
        Hop::Key(_) => &schema["additionalProperties"],
    }
}

pub(crate) fn get<'a>(schema: &Value, value: &'a Value, place: &[Hop]) -> Option<&'a Value> {
    let Some((hop, rest)) = place.split_first() else { return Some(value) };
    let next = match hop {
        Hop::Key(name) => value.as_object()?.get(name)?,
        Hop::Item(of) => value.as_array()?.iter().find(|item| item.is_object() && keys(schema, item) == *of)?,
    };
    get(below(schema, hop), next, rest)
}

fn get_mut<'a>(schema: &Value, value: &'a mut Value, place: &[Hop]) -> Option<&'a mut Value> {
    let Some((hop, rest)) = place.split_first() else { return Some(value) };
    let next = match hop {
        Hop::Key(name) => value.as_object_mut()?.get_mut(name)?,
        Hop::Item(of) => value.as_array_mut()?.iter_mut().find(|item| item.is_object() && keys(schema, item) == *of)?,
    };
    get_mut(below(schema, hop), next, rest)
}

/// The claims of somebody who set all of an object, as `fieldsV1`; the object itself is not among them.
pub(crate) fn claims_of_object(schema: &Value, object: &Value) -> Value {
    let mut claims = claims(schema, object);
    claims.as_object_mut().expect("a set").remove(".");
    claims
}

/// The claims of somebody who set all of a value.
pub(crate) fn claims(schema: &Value, value: &Value) -> Value {
    let mut below: Map<String, Value> = match value {
        Value::Object(fields) => {
            let hop = |name: &String| Hop::Key(name.clone());
            fields.iter().map(|(name, value)| (format!("f:{name}"), claims(below(schema, &hop(name)), value))).collect()
        }
        Value::Array(items) if schema.get("x-kubernetes-list-type").is_some() => items
            .iter()
            .filter(|item| item.is_object())
            .map(|item| (element(schema, &keys(schema, item)), claims(&schema["items"], item)))
            .collect(),
        _ => return json!({}),
    };
    if !below.is_empty() {
        below.insert(".".to_owned(), json!({}));
    }
    Value::Object(below)
}

fn element(list: &Value, keys: &[Value]) -> String {
    let names = list["x-kubernetes-list-map-keys"].as_array().expect("a keyed list").iter();
    let keys = names.zip(keys).map(|(name, key)| (name.as_str().expect("a name").to_owned(), key.clone()));
    format!("k:{}", Value::Object(keys.collect()))
}

pub(crate) fn schema_at<'a>(schema: &'a Value, place: &[Hop]) -> &'a Value {
    place.iter().fold(schema, |schema, hop| below(schema, hop))
}

pub(crate) fn claims_at(claims: &Value, place: &[Hop], schema: &Value) -> Option<Value> {
    let Some((hop, rest)) = place.split_first() else { return Some(claims.clone()) };
    let name = match hop {
        Hop::Key(name) => format!("f:{name}"),
        Hop::Item(keys) => element(schema, keys),
    };
    claims_at(claims.get(name)?, rest, below(schema, hop))
}
