//! Merge patches (RFC 7386), with Kubernetes' reading of nulls: they are taken out of all that is new, also within lists.

use serde_json::{Map, Value};

pub(super) fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        match (value, target.get_mut(key)) {
            (Value::Null, _) => drop(target.remove(key)),
            (Value::Object(patch), Some(Value::Object(old))) => merge(old, patch),
            // In place of a map a value is taken as it is.
            (value, Some(old @ Value::Object(_))) => *old = value.clone(),
            (value, _) => drop(target.insert(key.clone(), without_nulls(value))),
        }
    }
}

/// Nulls that are items of lists stay, as the others would get another place.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    /// As kube-apiserver does each.
    #[test_case(json!({"a": null, "b": [1]}) => json!({"b": [1], "m": {"x": 1}}); "null deletes, lists are replaced")]
    #[test_case(json!({"m": {"y": {"z": null, "v": 1}}}) => json!({"a": 1, "b": [2, 3], "m": {"x": 1, "y": {"v": 1}}}); "nulls of what is new")]
    #[test_case(json!({"b": [{"x": null, "y": 1}, null]}) => json!({"a": 1, "b": [{"y": 1}, null], "m": {"x": 1}}); "nulls in items")]
    #[test_case(json!({"m": [{"x": null}]}) => json!({"a": 1, "b": [2, 3], "m": [{"x": null}]}); "a list for a map")]
    #[test_case(json!({"a": {"x": null}}) => json!({"a": {}, "b": [2, 3], "m": {"x": 1}}); "a map for a number")]
    fn merges(patch: Value) -> Value {
        let mut object = json!({"a": 1, "b": [2, 3], "m": {"x": 1}});
        merge(object.as_object_mut().unwrap(), patch.as_object().unwrap());
        object
    }
}
