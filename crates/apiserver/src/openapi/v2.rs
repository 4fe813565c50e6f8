//! The older form, for clients that still ask for it: all resources in one document, without what it cannot say.

use serde_json::{Map, Value, json};

use super::{INFO, list_schema, meta, object_schema, operation, schema_name};
use crate::resource::Resource;

const REFS: &str = "#/definitions/";
const NEWER: [&str; 4] = ["nullable", "anyOf", "oneOf", "not"];

pub(super) fn document(resources: &[&Resource]) -> Value {
    let mut definitions = meta::schemas(REFS);
    let mut paths = Map::new();
    for resource in resources {
        let name = schema_name(resource);
        definitions.insert(format!("{name}List"), list_schema(resource, REFS));
        definitions.insert(name, open_to_all(object_schema(resource, REFS)));
        paths.extend(
            operation::paths(resource).into_iter().map(|(path, operations)| (path, older_operations(operations))),
        );
    }
    definitions.values_mut().for_each(older);
    json!({"swagger": "2.0", "info": {"title": INFO, "version": env!("CARGO_PKG_VERSION")}, "paths": paths, "definitions": definitions})
}

/// Of a kind that takes unknown fields no more is said than that it is an object, as in Kubernetes: clients of version 2 take the fields
/// that are named for all there are.
fn open_to_all(schema: Value) -> Value {
    const GVK: &str = "x-kubernetes-group-version-kind";
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        json!({"type": "object", GVK: schema[GVK]})
    } else {
        schema
    }
}

/// Takes out what version 2 does not know. A reference stands for itself there, without words around it.
fn older(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(reference) =
                map.get("allOf").and_then(|all| all.get(0)).and_then(|first| first.get("$ref")).cloned()
            {
                map.remove("allOf");
                map.insert("$ref".to_owned(), reference);
            }
            if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
                map.remove("properties");
            }
            map.retain(|key, value| !NEWER.contains(&key.as_str()) || is_schema(value, key));
            map.values_mut().for_each(older);
        }
        Value::Array(list) => list.iter_mut().for_each(older),
        _ => {}
    }
}

/// A field may be called as a keyword is; then its value is a schema with a type.
fn is_schema(value: &Value, key: &str) -> bool {
    key != "not" && value.get("type").is_some()
}

fn older_operations(mut operations: Value) -> Value {
    for operation in operations.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
        let media: Vec<String> =
            operation["requestBody"]["content"].as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
        if !media.is_empty() {
            operation["consumes"] = json!(media);
        }
        operation["produces"] = json!(["application/json"]);
        operation.as_object_mut().map(|map| map.remove("requestBody"));
        for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
            parameter["type"] = parameter["schema"]["type"].clone();
            parameter.as_object_mut().map(|map| map.remove("schema"));
        }
        operation["responses"] = json!({"200": {"description": "OK"}});
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_take_unknown_fields_name_none() {
        let gvk = json!([{"group": "g", "version": "v1", "kind": "K"}]);
        let named = json!({"type": "object", "properties": {"a": {}}, "x-kubernetes-group-version-kind": gvk});
        assert_eq!(open_to_all(named.clone()), named);
        let mut open = named;
        open["description"] = "any".into();
        open["x-kubernetes-preserve-unknown-fields"] = true.into();
        assert_eq!(open_to_all(open), json!({"type": "object", "x-kubernetes-group-version-kind": gvk}));
    }
}
