//! What the engine looks at of an object, so that nobody has to keep, prune or convert the rest of it for the gates' sake.

use serde_json::{Map, Value};

use crate::{Gating, schema::ListKeys, tree::Here};

impl Gating {
    /// A copy of what lies at and below gated paths, with what leads there and the keys of list items. It can be given
    /// in place of the whole object wherever a [`crate::Write`] wants one but the new one, and is as large as what is gated.
    pub fn excerpt(&self, object: &Value) -> Value {
        excerpt(&Here::root(self), object)
    }
}

fn excerpt(here: &Here<'_>, value: &Value) -> Value {
    // Of a gated field all is compared.
    if here.is_gated() {
        return value.clone();
    }
    match value {
        Value::Object(fields) => Value::Object(members(here, fields)),
        Value::Array(items) => Value::Array(
            here.items()
                .map_or_else(Vec::new, |(keys, next)| items.iter().map(|value| item(keys, &next, value)).collect()),
        ),
        other => other.clone(),
    }
}

fn members(here: &Here<'_>, fields: &Map<String, Value>) -> Map<String, Value> {
    let named = here.fields().filter_map(|field| {
        let value = fields.get(field.name)?;
        Some((field.name.to_owned(), excerpt(&field.place, value)))
    });
    let mut members: Map<String, Value> = named.collect();
    let next = here.entries();
    if !next.is_empty() {
        let others = fields.iter().filter(|(key, _)| !here.has_name(key));
        members.extend(others.map(|(key, value)| (key.clone(), excerpt(&next, value))));
    }
    members
}

fn item(keys: &ListKeys, here: &Here<'_>, value: &Value) -> Value {
    let Value::Object(fields) = value else { return excerpt(here, value) };
    let mut members = members(here, fields);
    for (key, _) in &keys.0 {
        if let Some(value) = fields.get(key) {
            members.insert(key.clone(), value.clone());
        }
    }
    Value::Object(members)
}
