//! Objects within an object.

use serde_json::Value;

use super::{Kind, metadata};
use crate::{
    field::{FieldError, child},
    schema::{self, Schema},
};

/// Leaves of the headers and metadata of an object, and of those within it, what can be that. True if they all could.
pub(super) fn keep_fit(schema: &Schema, object: &mut Value) -> bool {
    let mut fits = true;
    schema::each_embedded(schema, object, true, &mut |map| {
        let before = map.len();
        map.retain(|name, value| !matches!(name.as_str(), "apiVersion" | "kind") || value.is_string());
        let metadata = map.get_mut("metadata").is_none_or(metadata::keep_fit);
        fits &= metadata && map.len() == before;
    });
    fits
}

/// The first fault of the headers and metadata of embedded objects; sound metadata is tidied.
pub(super) fn check(schema: &Schema, value: &mut Value, path: &str) -> Result<(), FieldError> {
    match value {
        Value::Object(_) if schema.embedded => {
            check_header(value, path)?;
            metadata::tidy(value, false);
            check_fields(schema, value, path)
        }
        Value::Object(_) => check_fields(schema, value, path),
        Value::Array(list) => {
            let Some(items) = &schema.items else { return Ok(()) };
            list.iter_mut().enumerate().try_for_each(|(index, item)| check(items, item, &format!("{path}[{index}]")))
        }
        _ => Ok(()),
    }
}

fn check_fields(schema: &Schema, value: &mut Value, path: &str) -> Result<(), FieldError> {
    let Some(map) = value.as_object_mut() else { return Ok(()) };
    map.iter_mut().try_for_each(|(name, value)| match (schema.properties.get(name), &schema.additional) {
        (Some(inner), _) => check(inner, value, &child(path, name)),
        (None, Some(inner)) => check(inner, value, &format!("{path}[{name}]")),
        (None, None) => Ok(()),
    })
}

fn check_header(object: &Value, path: &str) -> Result<(), FieldError> {
    for key in ["apiVersion", "kind"] {
        if object.get(key).is_some_and(|value| !value.is_string()) {
            return Err(FieldError::invalid(child(path, key), object[key].clone(), "must be a string"));
        }
    }
    let kind = Kind { api_version: "", kind: "", typed: false };
    let unfit = |why: String| FieldError::invalid(child(path, "metadata"), object["metadata"].clone(), why);
    metadata::check(&object["metadata"], &kind).map_err(unfit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    /// Texts of kube-apiserver 1.36.
    #[test_case(json!({"metadata": {"labels": {"a": 1}}}) => r#"x.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"#; "a label")]
    #[test_case(json!({"kind": 5}) => "x.kind: Invalid value: 5: must be a string"; "kind")]
    #[test_case(json!({"kind": "A", "metadata": {"labels": {}}}) => r#"{"kind":"A","metadata":{}}"#; "sound")]
    fn embedded(object: Value) -> String {
        let schema = Schema::parse(&json!({"type": "object", "properties": {"x": {"type": "object",
            "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}));
        let mut whole = json!({"x": object});
        let checked = check(&schema, &mut whole, "");
        checked.map_or_else(|error| error.to_string(), |()| whole["x"].to_string())
    }
}
