//! Defaults must not bring back what a gate keeps out.

use serde_json::{Map, Value};

use crate::{
    Gating,
    tree::{Field, Here},
    write::{Absent, freeze},
};

impl Gating {
    /// Removes the defaults at and below frozen paths, and cuts those paths out of the defaults of their ancestors.
    /// Whether that changed anything. Paths that the schema does not have are passed over.
    ///
    /// The result is for defaulting alone, of requests and of what is read. Where one key of a map is frozen it has an
    /// entry in `properties` beside `additionalProperties`, and the entry counts for that key.
    pub fn strip_defaults(&self, schema: &mut Value) -> bool {
        !self.is_idle() && strip(&Here::root(self), schema)
    }
}

fn strip(here: &Here<'_>, schema: &mut Value) -> bool {
    let Some(schema) = schema.as_object_mut() else { return false };
    let mut changed = schema.get_mut("default").is_some_and(|default| freeze(here, None, default, Absent::Remove));
    changed |= strip_fields(here, schema);
    changed |= strip_entries(here, schema);
    let items = schema.get_mut("items").zip(here.items());
    changed |= items.is_some_and(|(items, (_, next))| strip(&next, items));
    changed
}

fn strip_fields(here: &Here<'_>, schema: &mut Map<String, Value>) -> bool {
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return false };
    let mut changed = false;
    for field in here.fields() {
        if let Some(schema) = fields.get_mut(field.name) {
            changed |= strip_place(&field.place, schema);
        }
    }
    changed
}

fn strip_place(here: &Here<'_>, schema: &mut Value) -> bool {
    if here.off().is_some() { remove_all(schema) } else { strip(here, schema) }
}

fn strip_entries(here: &Here<'_>, schema: &mut Map<String, Value>) -> bool {
    let Some(values) = schema.get_mut("additionalProperties").filter(|values| values.is_object()) else {
        return false;
    };
    let next = here.entries();
    let mut changed = !next.is_empty() && strip(&next, values);
    let values = values.clone();
    for Field { name, place, .. } in here.fields() {
        let mut own = values.clone();
        let known = schema.get("properties").is_some_and(|fields| fields.get(name).is_some());
        if known || !strip_place(&place, &mut own) {
            continue;
        }
        // A map gets no entries by default, and a field would.
        own.as_object_mut().and_then(|own| own.remove("default"));
        let fields = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Some(fields) = fields.as_object_mut() {
            fields.insert(name.to_owned(), own);
            changed = true;
        }
    }
    changed
}

/// Removes the defaults of a schema and of all below it.
fn remove_all(schema: &mut Value) -> bool {
    let Some(schema) = schema.as_object_mut() else { return false };
    let mut changed = schema.remove("default").is_some();
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for field in fields.values_mut() {
            changed |= remove_all(field);
        }
    }
    for below in ["additionalProperties", "items"] {
        changed |= schema.get_mut(below).is_some_and(remove_all);
    }
    changed
}
