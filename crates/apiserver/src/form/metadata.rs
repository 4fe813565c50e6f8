//! Metadata: the types of its fields, and the form in which it is kept.

use serde_json::{Map, Value};

use super::{Kind, time};
use crate::patch::unlike;

/// What every object has beside what its schema says.
pub(crate) const METADATA: &[&str] = &[
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What is wrong with the types of metadata. Fields that nobody knows are told elsewhere.
pub(super) fn check(metadata: &Value, kind: &Kind<'_>) -> Result<(), String> {
    let map = match metadata {
        Value::Object(map) => map,
        Value::Null => return Ok(()),
        other if kind.typed => {
            return Err(unlike(other, &format!("Go struct field {}.metadata of type v1.ObjectMeta", kind.kind)));
        }
        other => return Err(unlike(other, "Go value of type v1.ObjectMeta")),
    };
    let place = if kind.typed { "ObjectMeta.metadata" } else { "ObjectMeta" };
    let known = map.iter().filter(|(name, value)| !value.is_null() && METADATA.contains(&name.as_str()));
    known
        .into_iter()
        .try_for_each(|(name, value)| check_field(&format!("Go struct field {place}.{name} of type"), name, value))
}

fn check_field(place: &str, name: &str, value: &Value) -> Result<(), String> {
    let refuse = |found: &Value, wanted: &str| Err(unlike(found, &format!("{place} {wanted}")));
    let items = |wanted: &str, item: &str, fits: fn(&Value) -> bool| match value {
        Value::Array(list) => {
            list.iter().find(|value| !value.is_null() && !fits(value)).map_or(Ok(()), |found| refuse(found, item))
        }
        other => refuse(other, wanted),
    };
    match name {
        "labels" | "annotations" => match value {
            Value::Object(map) => map
                .values()
                .find(|value| !value.is_null() && !value.is_string())
                .map_or(Ok(()), |found| refuse(found, "string")),
            other => refuse(other, "map[string]string"),
        },
        "finalizers" => items("[]string", "string", Value::is_string),
        "ownerReferences" => items("[]v1.OwnerReference", "v1.OwnerReference", Value::is_object),
        "managedFields" => items("[]v1.ManagedFieldsEntry", "v1.ManagedFieldsEntry", Value::is_object),
        "generation" | "deletionGracePeriodSeconds" if value.is_i64() => Ok(()),
        "generation" | "deletionGracePeriodSeconds" => refuse(value, "int64"),
        "uid" if !value.is_string() => refuse(value, "types.UID"),
        "creationTimestamp" | "deletionTimestamp" => match value.as_str() {
            Some(text) => time::second(text).map(drop),
            None => refuse(value, "string"),
        },
        _ if !value.is_string() => refuse(value, "string"),
        _ => Ok(()),
    }
}

/// Leaves of metadata what can be that, in the form that is kept. True if it all could.
pub(super) fn keep_fit(metadata: &mut Value) -> bool {
    let Some(map) = metadata.as_object_mut() else { return true };
    let before = map.len();
    map.retain(|name, value| value.is_null() || check_field("", name, value).is_ok());
    let fits = map.len() == before;
    tidy_map(map, false);
    fits
}

/// What says nothing is left out: nulls, empty maps and lists, empty texts. In a kind with a type an empty list of managers says
/// that they are to be forgotten. Fields that nobody knows stay, to be told of.
pub(super) fn tidy(object: &mut Value, typed: bool) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        tidy_map(metadata, typed);
    }
}

fn tidy_map(metadata: &mut Map<String, Value>, typed: bool) {
    for name in ["labels", "annotations"] {
        if let Some(map) = metadata.get_mut(name).and_then(Value::as_object_mut) {
            map.values_mut().filter(|value| value.is_null()).for_each(|value| *value = "".into());
        }
    }
    for (name, empty) in [("finalizers", Value::from("")), ("ownerReferences", Value::Object(Map::new()))] {
        if let Some(list) = metadata.get_mut(name).and_then(Value::as_array_mut) {
            list.iter_mut().filter(|value| value.is_null()).for_each(|value| *value = empty.clone());
        }
    }
    metadata.retain(|name, value| match value {
        _ if !METADATA.contains(&name.as_str()) => true,
        Value::Array(list) => !list.is_empty() || (typed && name == "managedFields"),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => name != "generation" || number.as_i64() != Some(0),
        Value::Null => false,
        _ => true,
    });
}

/// The fields of items of lists that are known.
pub(crate) fn of_item(list: &str) -> Option<&'static [&'static str]> {
    match list {
        "ownerReferences" => Some(&["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"]),
        "managedFields" => {
            Some(&["apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "subresource", "time"])
        }
        _ => None,
    }
}

/// Takes out fields that nobody knows, and tells them as `[0].field`.
pub(crate) fn prune_items(metadata: &mut Map<String, Value>, mut tell: impl FnMut(&str, usize, &str)) {
    for list in ["ownerReferences", "managedFields"] {
        let (Some(known), Some(Value::Array(items))) = (of_item(list), metadata.get_mut(list)) else { continue };
        for (index, item) in items.iter_mut().enumerate() {
            let Some(item) = item.as_object_mut() else { continue };
            item.retain(|name, _| {
                let kept = known.contains(&name.as_str());
                if !kept {
                    tell(list, index, name);
                }
                kept
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    /// Texts of kube-apiserver 1.37.
    #[test_case(json!({"labels": {"a": 1}}) => "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"; "a label")]
    #[test_case(json!({"labels": ["x"]}) => "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string"; "labels")]
    #[test_case(json!({"finalizers": 7}) => "json: cannot unmarshal number into Go struct field ObjectMeta.finalizers of type []string"; "finalizers")]
    #[test_case(json!({"finalizers": [7]}) => "json: cannot unmarshal number into Go struct field ObjectMeta.finalizers of type string"; "a finalizer")]
    #[test_case(json!({"ownerReferences": 7}) => "json: cannot unmarshal number into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference"; "owners")]
    #[test_case(json!({"managedFields": [7]}) => "json: cannot unmarshal number into Go struct field ObjectMeta.managedFields of type v1.ManagedFieldsEntry"; "a manager")]
    #[test_case(json!({"generation": "x"}) => "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64"; "generation")]
    #[test_case(json!({"generation": 1.5}) => "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64"; "a fraction")]
    #[test_case(json!({"uid": 7}) => "json: cannot unmarshal number into Go struct field ObjectMeta.uid of type types.UID"; "uid")]
    #[test_case(json!({"creationTimestamp": "x"}) => r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#; "time")]
    #[test_case(json!({"creationTimestamp": 7}) => "json: cannot unmarshal number into Go struct field ObjectMeta.creationTimestamp of type string"; "no time")]
    #[test_case(json!({"labels": null, "zzz": 1, "creationTimestamp": null}) => ""; "sound")]
    fn types(metadata: Value) -> String {
        check(&metadata, &Kind { api_version: "g.io/v1", kind: "Thing", typed: false }).err().unwrap_or_default()
    }

    #[test]
    fn what_says_nothing_is_not_kept() {
        let sent = json!({"labels": {"a": null}, "annotations": {}, "finalizers": [], "ownerReferences": null, "managedFields": [], "generateName": "", "name": "n", "zzz": []});
        let kept = |typed| {
            let mut object = json!({"metadata": sent});
            tidy(&mut object, typed);
            object["metadata"].take()
        };
        assert_eq!(kept(false), json!({"labels": {"a": ""}, "name": "n", "zzz": []}));
        assert_eq!(kept(true), json!({"labels": {"a": ""}, "managedFields": [], "name": "n", "zzz": []}));
    }
}
