//! Kinds that have a type in Kubernetes: the types of their fields, in the words of Go's decoder, and the fields that nobody knows.

mod table;

use serde_json::Value;

use self::table::Type;
use crate::patch::unlike;

/// The first field whose value has the wrong type. Of kinds that are not in the table nothing is said.
pub(super) fn check(object: &Value, kind: &str) -> Result<(), String> {
    match table::fields(kind) {
        [] => Ok(()),
        _ => check_struct(object, kind, ""),
    }
}

/// Takes out fields of a schema of a definition that nobody knows, and tells those that Kubernetes tells.
pub(crate) fn prune_schema(schema: &mut Value, path: &str, unknown: &mut Vec<String>) {
    prune(schema, &Type::Struct("JSONSchemaProps"), Some(path), unknown);
}

fn check_struct(value: &Value, name: &str, path: &str) -> Result<(), String> {
    let known = |key: &str| table::fields(name).iter().find(|(known, _)| *known == key);
    for (key, value) in value.as_object().into_iter().flatten() {
        if let Some((_, kind)) = known(key) {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            check_value(value, kind, &Place { holder: name, path: &path })?;
        }
    }
    Ok(())
}

/// The struct that a field is in, and the way to the field, without indices and keys.
struct Place<'a> {
    holder: &'a str,
    path: &'a str,
}

fn check_value(value: &Value, kind: &Type, place: &Place<'_>) -> Result<(), String> {
    let refuse = |found: &Value| {
        let target = format!("Go struct field {}.{} of type {}", place.holder, place.path, kind.name());
        Err(unlike(found, &target))
    };
    match (kind, value) {
        (_, Value::Null) | (Type::Any, _) => Ok(()),
        (Type::Text(_), Value::String(_)) | (Type::Flag, Value::Bool(_)) | (Type::Float, Value::Number(_)) => Ok(()),
        (Type::Bytes, Value::String(text)) => check_bytes(text),
        (Type::Int(bits), Value::Number(number)) => match number.as_i64() {
            Some(found) if *bits == 64 || i32::try_from(found).is_ok() => Ok(()),
            _ => refuse(value),
        },
        (Type::Struct(name), Value::Object(_)) => check_struct(value, name, place.path),
        (Type::List(_, item), Value::Array(items)) => {
            items.iter().try_for_each(|item_value| check_value(item_value, item, place))
        }
        (Type::Map(_, entry), Value::Object(map)) => {
            map.values().try_for_each(|entry_value| check_value(entry_value, entry, place))
        }
        // What reads itself knows nothing of what is around it.
        (Type::OrBool(_), Value::Bool(_)) => Ok(()),
        (Type::OrBool(name) | Type::OrList(name), Value::Object(_)) => check_struct(value, name, ""),
        (Type::OrBool(_), _) => Err("boolean or JSON schema expected".to_owned()),
        (Type::OrList(name), Value::Array(items)) => items.iter().try_for_each(|item| check_struct(item, name, "")),
        (Type::OrList(_), _) => Ok(()),
        _ => refuse(value),
    }
}

fn check_bytes(text: &str) -> Result<(), String> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let at = |offset: usize| format!("illegal base64 data at input byte {offset}");
    match STANDARD.decode(text.replace(['\r', '\n'], "")) {
        Ok(_) => Ok(()),
        Err(base64::DecodeError::InvalidByte(offset, _)) => Err(at(offset)),
        Err(_) => Err(at(text.len().saturating_sub(text.len() % 4))),
    }
}

/// `told` is the path for what is told; there is none within types that read themselves.
fn prune(value: &mut Value, kind: &Type, told: Option<&str>, unknown: &mut Vec<String>) {
    match (kind, value) {
        (Type::Struct(name), Value::Object(map)) => map.retain(|key, value| {
            let path = told.map(|path| format!("{path}.{key}"));
            match table::fields(name).iter().find(|(known, _)| known == key) {
                Some((_, kind)) => {
                    prune(value, kind, path.as_deref(), unknown);
                    !says_nothing(key, kind, value)
                }
                None => {
                    unknown.extend(path);
                    false
                }
            }
        }),
        (Type::List(_, item), Value::Array(items)) => {
            for (index, value) in items.iter_mut().enumerate() {
                prune(value, item, told.map(|path| format!("{path}[{index}]")).as_deref(), unknown);
            }
        }
        (Type::Map(_, entry), Value::Object(map)) => {
            for (key, value) in map.iter_mut() {
                prune(value, entry, told.map(|path| format!("{path}.{key}")).as_deref(), unknown);
            }
        }
        (Type::OrBool(name) | Type::OrList(name), value @ Value::Object(_)) => {
            prune(value, &Type::Struct(name), None, unknown);
        }
        (Type::OrList(name), Value::Array(items)) => {
            items.iter_mut().for_each(|item| prune(item, &Type::Struct(name), None, unknown));
        }
        _ => {}
    }
}

/// What Kubernetes' types do not tell from a field that is not there.
fn says_nothing(key: &str, kind: &Type, value: &Value) -> bool {
    // These are told from nothing.
    const POINTERS: [&str; 4] =
        ["$ref", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type", "x-kubernetes-map-type"];
    match value {
        Value::Null => true,
        Value::Bool(false) => matches!(kind, Type::Flag) && !POINTERS.contains(&key) && key != "optionalOldSelf",
        Value::String(text) => {
            text.is_empty() && matches!(kind, Type::Text(_)) && !POINTERS.contains(&key) && key != "rule"
        }
        Value::Array(list) => list.is_empty() && matches!(kind, Type::List(..)),
        // It is refused even if it is empty.
        Value::Object(map) => map.is_empty() && matches!(kind, Type::Map(..)) && key != "dependencies",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn definition(version: Value) -> Value {
        json!({"spec": {"versions": [version]}})
    }

    fn with_field(field: Value) -> Value {
        definition(json!({"schema": {"openAPIV3Schema": {"properties": {"s": field}}}}))
    }

    /// Texts of kube-apiserver 1.36.
    #[test_case(definition(json!({"served": 1})) => "json: cannot unmarshal number into Go struct field CustomResourceDefinitionVersion.spec.versions.served of type bool"; "a flag")]
    #[test_case(definition(json!({"schema": {"openAPIV3Schema": []}})) => "json: cannot unmarshal array into Go struct field CustomResourceValidation.spec.versions.schema.openAPIV3Schema of type v1.JSONSchemaProps"; "a struct")]
    #[test_case(with_field(json!({"maxLength": "x"})) => "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.maxLength of type int64"; "a number of a schema")]
    #[test_case(with_field(json!({"required": "x"})) => "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.required of type []string"; "a list")]
    #[test_case(with_field(json!({"dependencies": "x"})) => "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.dependencies of type v1.JSONSchemaDependencies"; "a named type")]
    #[test_case(with_field(json!({"items": {"maxLength": "x"}})) => "json: cannot unmarshal string into Go struct field JSONSchemaProps.maxLength of type int64"; "within what reads itself")]
    #[test_case(with_field(json!({"additionalProperties": 5})) => "boolean or JSON schema expected"; "schema or flag")]
    #[test_case(json!({"spec": {"names": {"plural": 5}}}) => "json: cannot unmarshal number into Go struct field CustomResourceDefinitionNames.spec.names.plural of type string"; "a name")]
    #[test_case(json!({"spec": {"versions": "x"}}) => "json: cannot unmarshal string into Go struct field CustomResourceDefinitionSpec.spec.versions of type []v1.CustomResourceDefinitionVersion"; "a list of structs")]
    #[test_case(json!({"spec": {"versions": [5], "conversion": null}}) => "json: cannot unmarshal number into Go struct field CustomResourceDefinitionSpec.spec.versions of type v1.CustomResourceDefinitionVersion"; "an item")]
    #[test_case(with_field(json!({"maxLength": 5, "default": {"any": 1}, "enum": [1, "a"]})) => ""; "sound")]
    fn types(object: Value) -> String {
        check(&object, "CustomResourceDefinition").err().unwrap_or_default()
    }

    #[test]
    fn unknown_fields_of_schemas_go() {
        let mut schema = json!({"type": "object", "z": 1, "default": {"z": 1}, "properties": {"a": {"z": 1, "items": {"z": 1, "enum": [], "pattern": ""}, "nullable": false, "properties": {}}}});
        let mut unknown = Vec::new();
        prune_schema(&mut schema, "s", &mut unknown);
        assert_eq!(schema, json!({"type": "object", "default": {"z": 1}, "properties": {"a": {"items": {}}}}));
        assert_eq!(unknown, ["s.properties.a.z", "s.z"]);
    }
}
