//! What is said of schemas that are not sound.

use test_case::test_case;

use super::*;
use serde_json::json;

#[test_case(json!({"type": "object", "properties": {"spec": {"type": "object"}}}) => ""; "sound")]
#[test_case(json!({}) => "s.type: Required value: must not be empty at the root"; "no type")]
#[test_case(json!({"type": "object", "properties": {"a": {}}}) => "s.properties[a].type: Required value: must not be empty for specified object fields"; "field without type")]
#[test_case(json!({"type": "object", "properties": {"a": {"type": "array"}}}) => "s.properties[a].items: Required value: must be specified"; "array without items")]
#[test_case(json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}) => "s.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"; "bad pattern")]
#[test_case(json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}) => "s.properties[a].default: Invalid value: \"string\":  in body must be of type integer: \"string\""; "bad default")]
#[test_case(json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}}) => ""; "int or string as generators write it")]
#[test_case(json!({"type": "object", "anyOf": [{"type": "object"}]}) => "s.anyOf[0].type: Forbidden: must be empty to be structural"; "type in a junctor")]
#[test_case(json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"}}}) => "[s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map, s.properties[a].items.type: Invalid value: \"string\": must be object if parent array's x-kubernetes-list-type is map]"; "map list without keys")]
#[test_case(json!({"type": "object", "properties": {"a": {"type": "object", "$ref": "#/x"}}}) => "s.properties[a].$ref: Forbidden: $ref is not supported"; "reference")]
fn says(schema: Value) -> String {
    let errors = check(&schema, "s", false);
    if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
}
