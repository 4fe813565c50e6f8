//! Strategic merge patches, which the built-in kinds take.

use serde_json::{Map, Value};

pub fn merge(target: &mut Value, patch: &Value) {
    merge_named(target, patch, "");
}

/// Like a merge patch, but some lists are sets or are keyed, and directives say what to do with the rest.
fn merge_named(target: &mut Value, patch: &Value, name: &str) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_maps(target, patch),
        (Value::Array(target), Value::Array(patch)) if name == "finalizers" => {
            patch
                .iter()
                .filter(|item| !target.contains(item))
                .cloned()
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|item| target.push(item));
        }
        (Value::Array(target), Value::Array(patch)) if list_key(name).is_some() => {
            merge_keyed(target, patch, list_key(name).unwrap_or_default());
        }
        (target, patch) => *target = without_directives(patch),
    }
}

/// Lists of the built-in kinds that are merged by a key.
fn list_key(name: &str) -> Option<&'static str> {
    match name {
        "ownerReferences" => Some("uid"),
        "conditions" => Some("type"),
        "matchConditions" | "variables" => Some("name"),
        _ => None,
    }
}

fn merge_maps(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    if patch.get("$patch").and_then(Value::as_str) == Some("replace") {
        target.clear();
    }
    for (key, value) in patch {
        match (key.strip_prefix("$deleteFromPrimitiveList/"), value) {
            (Some(list), Value::Array(gone)) => {
                if let Some(Value::Array(list)) = target.get_mut(list) {
                    list.retain(|item| !gone.contains(item));
                }
            }
            // Which keys stay is nothing that the built-in kinds here depend on; order is brought in below.
            _ if key.starts_with('$') => {}
            (_, Value::Null) => drop(target.remove(key)),
            (_, value) if value.get("$patch").and_then(Value::as_str) == Some("delete") => drop(target.remove(key)),
            (_, value) => match target.get_mut(key) {
                Some(old) => merge_named(old, value, key),
                None => drop(target.insert(key.clone(), without_directives(value))),
            },
        }
    }
    for (name, order) in patch.iter().filter_map(|(key, order)| key.strip_prefix("$setElementOrder/").zip(Some(order)))
    {
        if let (Some(key), Some(Value::Array(list)), Some(order)) =
            (list_key(name), target.get_mut(name), order.as_array())
        {
            let at = |item: &Value| order.iter().position(|wanted| wanted.get(key) == item.get(key));
            // What the client does not know of stays behind what it knows.
            list.sort_by_key(|item| at(item).unwrap_or(order.len()));
        }
    }
}

fn merge_keyed(target: &mut Vec<Value>, patch: &[Value], key: &str) {
    for item in patch {
        let found = target.iter().position(|old| old.get(key) == item.get(key));
        let delete = item.get("$patch").and_then(Value::as_str) == Some("delete");
        match found {
            Some(index) if delete => drop(target.remove(index)),
            Some(index) => merge_named(&mut target[index], item, ""),
            None if delete => {}
            None => target.push(without_directives(item)),
        }
    }
}

/// What is new comes without nulls, which delete, and without directives, which are no data.
fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| !key.starts_with('$') && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_directives(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(without_directives).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn apply(patch: Value, mut object: Value) -> Value {
        merge(&mut object, &patch);
        object
    }

    #[test_case(json!({"data": {"b": "2"}}) => json!({"data": {"a": "1", "b": "2"}}); "maps merge")]
    #[test_case(json!({"data": {"a": null}}) => json!({"data": {}}); "null deletes")]
    #[test_case(json!({"data": {"$patch": "replace", "c": "3"}}) => json!({"data": {"c": "3"}}); "replace")]
    #[test_case(json!({"data": {"$patch": "delete"}}) => json!({}); "delete")]
    #[test_case(json!({"$setElementOrder/x": ["a"], "n": {"in": null, "b": 1}}) => json!({"data": {"a": "1"}, "n": {"b": 1}}); "directives are no data")]
    fn strategic(patch: Value) -> Value {
        apply(patch, json!({"data": {"a": "1"}}))
    }

    #[test]
    fn strategic_lists_of_metadata_are_sets_and_keyed() {
        let object = json!({"metadata": {"finalizers": ["a/1"], "ownerReferences": [{"uid": "u", "name": "x"}]}});
        let patch =
            json!({"metadata": {"finalizers": ["b/2"], "ownerReferences": [{"uid": "u", "name": "y"}, {"uid": "v"}]}});
        let merged = apply(patch, object);
        assert_eq!(merged["metadata"]["finalizers"], json!(["a/1", "b/2"]));
        assert_eq!(merged["metadata"]["ownerReferences"], json!([{"uid": "u", "name": "y"}, {"uid": "v"}]));
        let removed = apply(json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}}), merged);
        assert_eq!(removed["metadata"]["finalizers"], json!(["b/2"]));
    }
}
