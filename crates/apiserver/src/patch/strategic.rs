//! Strategic merge patches, which the built-in kinds take: like merge patches, but some lists are sets or are keyed, and directives say
//! what to do with the rest.

mod order;

use serde_json::{Map, Value};

use self::order::ordered;
use super::shape;
use crate::status::{Result, Status};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const REMOVE: &str = "$deleteFromPrimitiveList/";

type Object = Map<String, Value>;

pub(super) fn merge(target: &mut Value, patch: &Value) -> Result<()> {
    let kind = target["kind"].as_str().unwrap_or_default().to_owned();
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_maps(target, patch, Place { kind: &kind, holder: "" }),
        _ => Ok(()),
    }
}

/// Where a map is: in which kind, and under which name.
#[derive(Clone, Copy)]
struct Place<'a> {
    kind: &'a str,
    holder: &'a str,
}

/// How lists are merged.
#[derive(Clone, Copy)]
enum Rule {
    Replace,
    Set,
    Keyed(&'static str),
}

impl Rule {
    fn key(self) -> Option<&'static str> {
        if let Rule::Keyed(key) = self { Some(key) } else { None }
    }
}

impl<'a> Place<'a> {
    fn rule(self, name: &str) -> Rule {
        match (self.kind, self.holder, name) {
            (_, "metadata", "finalizers") => Rule::Set,
            (_, "metadata", "ownerReferences") => Rule::Keyed("uid"),
            ("Namespace", "status", "conditions") => Rule::Keyed("type"),
            ("ValidatingAdmissionPolicy", "spec", "matchConditions" | "variables") => Rule::Keyed("name"),
            ("CustomResourceDefinition", "customFeatureGates", "featureGates") => Rule::Keyed("name"),
            ("CustomResourceDefinition", "featureGates", "fieldPaths") => Rule::Set,
            _ => Rule::Replace,
        }
    }

    fn within(self, name: &'a str) -> Place<'a> {
        Place { holder: name, ..self }
    }
}

fn merge_maps(target: &mut Object, patch: &Object, place: Place<'_>) -> Result<()> {
    match patch.get(DIRECTIVE).map(|found| found.as_str().unwrap_or_default()) {
        None => {}
        Some("replace") => {
            *target = patch.clone();
            target.remove(DIRECTIVE);
            return Ok(());
        }
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some(_) => return Err(unknown_directive(patch)),
    }
    retain(target, patch)?;
    // Lists with an order are done with when they have got it.
    let mut done = Vec::new();
    for (name, order) in patch.iter().filter_map(|(key, order)| key.strip_prefix(ORDER).zip(Some(order))) {
        set_order(target, patch, name, order, place)?;
        done.push(name);
    }
    let is_order = |key: &str| key == RETAIN || key.starts_with(ORDER);
    for (key, value) in patch.iter().filter(|(key, _)| !is_order(key) && !done.contains(&key.as_str())) {
        match key.strip_prefix(REMOVE) {
            Some(list) => remove(target, list, value),
            None => merge_field(target, key, value, place)?,
        }
    }
    Ok(())
}

fn merge_field(target: &mut Object, key: &str, value: &Value, place: Place<'_>) -> Result<()> {
    match (target.get_mut(key), value) {
        (_, Value::Null) => drop(target.remove(key)),
        (Some(Value::Object(old)), Value::Object(patch)) => merge_maps(old, patch, place.within(key))?,
        (Some(Value::Array(old)), Value::Array(patch)) => {
            *old = merge_lists(std::mem::take(old), patch, key, place)?;
        }
        (_, value) => match taken(value) {
            Some(value) => drop(target.insert(key.to_owned(), value)),
            None => drop(target.remove(key)),
        },
    }
    Ok(())
}

/// Only these keys stay, and the patch may have no others.
fn retain(target: &mut Object, patch: &Object) -> Result<()> {
    let Some(keys) = patch.get(RETAIN) else { return Ok(()) };
    let keys = keys.as_array().ok_or_else(|| Status::bad_request("invalid patch format of retainKeys"))?;
    let stays = |name: &str| keys.iter().any(|key| key == name);
    let is_directive = |name: &str| name == RETAIN || name.starts_with(ORDER) || name.starts_with(REMOVE);
    if patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !stays(name)) {
        return Err(Status::bad_request("invalid patch format of retainKeys"));
    }
    target.retain(|name, _| stays(name));
    Ok(())
}

fn remove(target: &mut Object, list: &str, gone: &Value) {
    if let (Some(Value::Array(list)), Value::Array(gone)) = (target.get_mut(list), gone) {
        list.retain(|item| !gone.contains(item));
    }
}

/// Merges a list, and brings it into an order.
fn set_order(target: &mut Object, patch: &Object, name: &str, order: &Value, place: Place<'_>) -> Result<()> {
    let wrong = |found: &Value| {
        let found = shape::name(found);
        Status::bad_request(format!("expected a []interface {{}}, but received a {found}"))
    };
    let list = |list: Option<&Value>| match list {
        Some(Value::Array(list)) => Ok(Some(list.clone())),
        Some(found) => Err(wrong(found)),
        None => Ok(None),
    };
    let order = order.as_array().ok_or_else(|| wrong(order))?;
    let (old, new) = (list(target.get(name))?, list(patch.get(name))?);
    let merged = match (&old, &new) {
        (None, None) => return Ok(()),
        (Some(old), None) => old.clone(),
        (None, Some(new)) => new.iter().filter_map(taken).collect(),
        (Some(old), Some(new)) => merge_lists(old.clone(), new, name, place)?,
    };
    let merged = ordered(merged, order, &old.unwrap_or_default(), place.rule(name).key());
    target.insert(name.to_owned(), merged.into());
    Ok(())
}

fn merge_lists(old: Vec<Value>, patch: &[Value], name: &str, place: Place<'_>) -> Result<Vec<Value>> {
    let (merged, old) = match place.rule(name) {
        Rule::Replace => return Ok(patch.to_vec()),
        Rule::Set => {
            let new = patch.iter().filter(|item| !old.contains(item)).cloned();
            (old.iter().cloned().chain(new).collect(), old)
        }
        Rule::Keyed(key) => {
            let old = without_special(old, patch, key)?;
            (merge_keyed(old.clone(), patch, key, place.within(name))?, old)
        }
    };
    Ok(ordered(merged, patch, &old, place.rule(name).key()))
}

/// What is left of a list when those of its items are gone that the patch deletes.
fn without_special(mut old: Vec<Value>, patch: &[Value], key: &str) -> Result<Vec<Value>> {
    for item in patch {
        match item.get(DIRECTIVE).map(|found| found.as_str().unwrap_or_default()) {
            None => {}
            Some("delete") => {
                let gone = item.get(key).ok_or_else(|| without_key(item, key))?;
                old.retain(|item| item.get(key) != Some(gone));
            }
            Some("replace") => old.clear(),
            Some(_) => return Err(unknown_directive(item.as_object().unwrap_or(&Map::new()))),
        }
    }
    Ok(old)
}

fn merge_keyed(mut old: Vec<Value>, patch: &[Value], key: &str, place: Place<'_>) -> Result<Vec<Value>> {
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let wanted = item.get(key).ok_or_else(|| without_key(item, key))?;
        let found = old.iter_mut().find(|old| old.get(key) == Some(wanted));
        match (found.and_then(Value::as_object_mut), item) {
            (Some(old), Value::Object(item)) => merge_maps(old, item, place)?,
            _ => old.push(item.clone()),
        }
    }
    Ok(old)
}

/// What is new comes without nulls, which delete, and without what is a directive.
fn taken(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => return None,
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.filter_map(|(key, value)| Some((key.clone(), taken(value)?))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().filter_map(taken).collect()),
        other => other.clone(),
    })
}

fn without_key(item: &Value, key: &str) -> Box<Status> {
    Status::bad_request(format!("map: {item} does not contain declared merge key: {key}"))
}

fn unknown_directive(patch: &Object) -> Box<Status> {
    let found = patch.get(DIRECTIVE).and_then(Value::as_str).unwrap_or_default();
    let mut rest = patch.clone();
    rest.remove(DIRECTIVE);
    Status::bad_request(format!("unknown patch type: {found} in map: {}", Value::Object(rest)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn apply(patch: Value, mut object: Value) -> String {
        match merge(&mut object, &patch) {
            Ok(()) => object.to_string(),
            Err(status) => format!("{} {}", status.code, status.message),
        }
    }

    #[test_case(json!({"data": {"b": "2"}}) => r#"{"data":{"a":"1","b":"2"}}"#; "maps merge")]
    #[test_case(json!({"data": {"a": null}}) => r#"{"data":{}}"#; "null deletes")]
    #[test_case(json!({"data": {"$patch": "replace", "c": "3"}}) => r#"{"data":{"c":"3"}}"#; "replace")]
    #[test_case(json!({"data": {"$patch": "delete"}}) => r#"{"data":{}}"#; "delete")]
    #[test_case(json!({"data": {"$patch": "x"}}) => r#"400 unknown patch type: x in map: {}"#; "unknown")]
    #[test_case(json!({"data": {"$retainKeys": ["b"], "b": "2"}}) => r#"{"data":{"b":"2"}}"#; "keys that stay")]
    #[test_case(json!({"data": {"$retainKeys": ["a"], "b": "2"}}) => "400 invalid patch format of retainKeys"; "a key that does not")]
    #[test_case(json!({"data": {"$retainKeys": "a"}}) => "400 invalid patch format of retainKeys"; "no list of keys")]
    #[test_case(json!({"$setElementOrder/x": ["a"], "n": {"in": null, "b": 1}}) => r#"{"data":{"a":"1"},"n":{"b":1}}"#; "directives are no data")]
    #[test_case(json!({"n": {"$patch": "delete"}}) => r#"{"data":{"a":"1"}}"#; "what is not there is not made by a directive")]
    fn maps(patch: Value) -> String {
        apply(patch, json!({"data": {"a": "1"}}))
    }

    /// What is new comes first, as Kubernetes has it.
    #[test_case(json!({"finalizers": ["b/2", "c/3"]}) => r#"{"finalizers":["b/2","c/3","a/1"],"ownerReferences":[{"name":"x","uid":"u"},{"uid":"w"}]}"#; "a set")]
    #[test_case(json!({"$deleteFromPrimitiveList/finalizers": ["a/1"]}) => r#"{"finalizers":[],"ownerReferences":[{"name":"x","uid":"u"},{"uid":"w"}]}"#; "one less")]
    #[test_case(json!({"ownerReferences": [{"uid": "w", "name": "y"}, {"uid": "v"}]}) => r#"{"finalizers":["a/1"],"ownerReferences":[{"name":"x","uid":"u"},{"name":"y","uid":"w"},{"uid":"v"}]}"#; "by a key")]
    #[test_case(json!({"ownerReferences": [{"uid": "u", "$patch": "delete"}]}) => r#"{"finalizers":["a/1"],"ownerReferences":[{"uid":"w"}]}"#; "an item deleted")]
    #[test_case(json!({"ownerReferences": [{"$patch": "replace"}, {"uid": "v"}]}) => r#"{"finalizers":["a/1"],"ownerReferences":[{"uid":"v"}]}"#; "all replaced")]
    #[test_case(json!({"ownerReferences": [{"name": "v"}]}) => r#"400 map: {"name":"v"} does not contain declared merge key: uid"#; "no key")]
    #[test_case(json!({"$setElementOrder/ownerReferences": [{"uid": "w"}, {"uid": "u"}]}) => r#"{"finalizers":["a/1"],"ownerReferences":[{"uid":"w"},{"name":"x","uid":"u"}]}"#; "an order")]
    fn lists(patch: Value) -> String {
        let metadata = json!({"finalizers": ["a/1"], "ownerReferences": [{"uid": "u", "name": "x"}, {"uid": "w"}]});
        let mut object = json!({"metadata": metadata});
        match merge(&mut object, &json!({"metadata": patch})) {
            Ok(()) => object["metadata"].to_string(),
            Err(status) => format!("{} {}", status.code, status.message),
        }
    }

    #[test]
    fn directives_for_what_is_not_there_are_no_data() {
        let patch = json!({"metadata": {"ownerReferences": [{"uid": "x", "$patch": "delete"}]}});
        assert_eq!(apply(patch, json!({"metadata": {}})), r#"{"metadata":{"ownerReferences":[]}}"#);
    }
}
