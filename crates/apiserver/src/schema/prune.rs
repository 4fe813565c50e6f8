//! Fields that no schema names are taken out, and their paths told.

use serde_json::Value;

use super::{Schema, way::Way};
use crate::form::{self, METADATA};

/// Removes what a whole object may not have and returns the paths, as `spec.items[0].foo`.
pub(crate) fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    walk(schema, object, Way::Root, true, &mut unknown);
    unknown
}

/// The same of a part of an object.
pub(crate) fn prune_part(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    walk(schema, value, Way::Root, false, &mut unknown);
    unknown
}

fn walk(schema: &Schema, value: &mut Value, way: Way<'_>, whole: bool, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let whole = whole || schema.embedded;
            if whole && let Some(metadata) = map.get_mut("metadata") {
                prune_metadata(metadata, Way::Name(&way, "metadata"), unknown);
            }
            map.retain(|name, value| {
                if whole && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                let inner = schema.properties.get(name).or(schema.additional.as_deref());
                if let Some(inner) = inner {
                    walk(inner, value, Way::Name(&way, name), false, unknown);
                } else if !schema.preserve_unknown {
                    unknown.push(Way::Name(&way, name).text());
                    return false;
                }
                true
            });
        }
        Value::Array(list) => {
            for (index, item) in list.iter_mut().enumerate() {
                let way = Way::Item(&way, index);
                match &schema.items {
                    Some(items) => walk(items, item, way, false, unknown),
                    None if schema.preserve_unknown => {}
                    None => empty(item, way, unknown),
                }
            }
        }
        _ => {}
    }
}

/// Of what nobody knows the items no field is known either.
fn empty(value: &mut Value, way: Way<'_>, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            unknown.extend(map.keys().map(|name| Way::Name(&way, name).text()));
            map.clear();
        }
        Value::Array(list) => {
            for (index, item) in list.iter_mut().enumerate() {
                empty(item, Way::Item(&way, index), unknown);
            }
        }
        _ => {}
    }
}

pub(super) fn prune_metadata(metadata: &mut Value, way: Way<'_>, unknown: &mut Vec<String>) {
    let Some(map) = metadata.as_object_mut() else { return };
    map.retain(|name, _| {
        let known = METADATA.contains(&name.as_str());
        if !known {
            unknown.push(Way::Name(&way, name).text());
        }
        known
    });
    form::prune_items(map, |list, index, name| {
        unknown.push(Way::Name(&Way::Item(&Way::Name(&way, list), index), name).text());
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_go_and_are_named() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "integer"},
                "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"k": {"type": "string"}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                         "properties": {"in": {"type": "object", "properties": {"b": {"type": "string"}}}}},
                "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
            }},
        }}));
        let mut object = json!({
            "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "color": "red"}, "extra": 1,
            "spec": {"a": 1, "b": 2, "list": [{"x": "1", "y": 2}], "map": {"m": {"k": "v", "l": 0}},
                     "free": {"any": {"thing": 1}, "in": {"b": "1", "c": 2}},
                     "emb": {"apiVersion": "v1", "kind": "Z", "metadata": {"name": "z"}, "data": 1, "spec": {}}},
        });
        let mut unknown = prune(&schema, &mut object);
        unknown.sort();
        assert_eq!(
            unknown,
            ["extra", "metadata.color", "spec.b", "spec.emb.data", "spec.free.in.c", "spec.list[0].y", "spec.map.m.l",]
        );
        assert_eq!(
            object["spec"],
            json!({
                "a": 1, "list": [{"x": "1"}], "map": {"m": {"k": "v"}}, "free": {"any": {"thing": 1}, "in": {"b": "1"}},
                "emb": {"apiVersion": "v1", "kind": "Z", "metadata": {"name": "z"}, "spec": {}},
            })
        );
    }
}
