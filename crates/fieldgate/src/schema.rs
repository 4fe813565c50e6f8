//! What a structural schema says about a path: whether it resolves, and through what it leads.

use serde_json::{Map, Value};

use crate::{Path, Step};

/// Why a path does not lead to a field of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// The schema has no field, and no map entries, at a step.
    #[error("does not refer to a field of the schema of the storage version: found nothing at {at}")]
    NoField {
        /// The path up to and including that step.
        at: String,
    },
    /// `[*]` is applied to a value that is neither a map nor a list.
    #[error("has [*] at {at}, which is neither a map (additionalProperties) nor a list of type map")]
    NotEach {
        /// The path up to that value.
        at: String,
    },
    /// `[*]` is applied to a list that is not of type `map`, so its items have no keys.
    #[error("has [*] at {at}, a list of type {kind}, whose items cannot be told apart; gate the list as a whole")]
    List {
        /// The path up to the list.
        at: String,
        /// The list's `x-kubernetes-list-type`; `atomic` if the schema has none.
        kind: String,
    },
}

/// Returns the schemas of all values along the path, from the root to the field: one more than the
/// path has steps.
pub fn resolve<'a>(schema: &'a Value, path: &Path) -> Result<Vec<&'a Value>, Unresolved> {
    let mut way = vec![schema];
    let mut at = String::new();
    for step in path.steps() {
        let schema = way[way.len() - 1];
        let before = at.clone();
        at.push_str(&step.to_string());
        let next = match step {
            Step::Named(name) => named(schema, name).ok_or(Unresolved::NoField { at: at.clone() })?,
            Step::Each => each(schema, before)?,
        };
        way.push(next);
    }
    Ok(way)
}

/// The schema of a field, or of a key of a map.
pub(crate) fn named<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let own = schema.get("properties").and_then(|fields| fields.get(name));
    own.or_else(|| map_values(schema)).filter(|found| found.is_object())
}

/// The schema of a map's values. Where fields are named the object is no map.
pub(crate) fn map_values(schema: &Value) -> Option<&Value> {
    let has_fields = schema.get("properties").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
    schema.get("additionalProperties").filter(|values| values.is_object() && !has_fields)
}

fn each(schema: &Value, at: String) -> Result<&Value, Unresolved> {
    if let Some(values) = map_values(schema) {
        return Ok(values);
    }
    let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
        return Err(Unresolved::NotEach { at });
    };
    match list_type(schema) {
        "map" => Ok(items),
        kind => Err(Unresolved::List { at, kind: kind.to_owned() }),
    }
}

/// A list that says nothing of its type is atomic, as in Kubernetes.
fn list_type(schema: &Value) -> &str {
    schema.get("x-kubernetes-list-type").and_then(Value::as_str).unwrap_or("atomic")
}

/// The keys that tell the items of a list apart, with the default of each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListKeys(pub(crate) Vec<(String, Option<Value>)>);

impl ListKeys {
    /// None if the list is not of type map.
    pub(crate) fn of(list: &Value) -> Option<ListKeys> {
        let keys = list.get("x-kubernetes-list-map-keys")?.as_array()?;
        let fields = list.get("items").and_then(|items| items.get("properties"));
        let default = |key: &str| fields?.get(key)?.get("default").cloned();
        let keys: Vec<_> = keys.iter().filter_map(Value::as_str).map(|key| (key.to_owned(), default(key))).collect();
        (list_type(list) == "map" && !keys.is_empty()).then_some(ListKeys(keys))
    }

    /// The values of the keys; an item that lacks one has its default.
    pub(crate) fn of_item<'a>(&'a self, item: &'a Map<String, Value>) -> impl Iterator<Item = Option<&'a Value>> {
        self.0.iter().map(|(key, default)| item.get(key).or(default.as_ref()))
    }
}
