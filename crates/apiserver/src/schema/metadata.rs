//! Metadata of embedded objects: it has no field that no object has, whoever put it there.

use serde_json::{Map, Value, json};

use super::{Schema, prune::prune_metadata, way::Way};
use crate::form;

/// Visits the objects that are embedded in a value. `whole` says that the value itself is one.
pub(crate) fn each_embedded(
    schema: &Schema,
    value: &mut Value,
    whole: bool,
    visit: &mut impl FnMut(&mut Map<String, Value>),
) {
    match value {
        Value::Object(map) => {
            let whole = whole || schema.embedded;
            if whole {
                visit(map);
            }
            for (name, value) in map {
                let header = whole && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
                if let Some(inner) = schema.properties.get(name).or(schema.additional.as_deref()).filter(|_| !header) {
                    each_embedded(inner, value, false, visit);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = &schema.items else { return };
            list.iter_mut().for_each(|item| each_embedded(items, item, false, visit));
        }
        _ => {}
    }
}

/// Takes what nobody knows out of the metadata of embedded objects, without a word.
pub(crate) fn prune_embedded(schema: &Schema, value: &mut Value) {
    each_embedded(schema, value, false, &mut |object| object.get_mut("metadata").into_iter().for_each(prune_silently));
}

/// The same of the defaults of a schema whose inner ones have been through this: they are filled in after objects were pruned.
pub(super) fn prune_defaults(schema: &mut Schema) {
    if let Some(mut default) = schema.default.take() {
        prune_embedded(schema, &mut default);
        schema.default = Some(default);
    }
    let metadata = schema.properties.get_mut("metadata").filter(|_| schema.embedded);
    if let Some(metadata) = metadata {
        metadata.default.iter_mut().for_each(prune_silently);
        metadata.properties.iter_mut().for_each(|(name, field)| prune_field(name, field));
    }
}

fn prune_field(name: &str, field: &mut Schema) {
    field.default = field.default.take().and_then(|default| {
        let mut metadata = json!({name: default});
        prune_silently(&mut metadata);
        metadata.get_mut(name).map(Value::take)
    });
    let Some(known) = form::of_item(name) else { return };
    let fields = field.items.iter_mut().flat_map(|items| &mut items.properties);
    fields.filter(|(name, _)| !known.contains(&name.as_str())).for_each(|(_, field)| field.default = None);
}

fn prune_silently(metadata: &mut Value) {
    prune_metadata(metadata, Way::Root, &mut Vec::new());
}
