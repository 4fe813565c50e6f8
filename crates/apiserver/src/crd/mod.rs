//! Custom resource definitions: what they must be, what state they are in, and the resources they make.

mod beta;
mod conversion;
mod gating;
mod names;
mod selectable;
mod status;
mod validate;

use std::sync::Arc;

use fieldgate::Gates;
use serde_json::{Value, json};

pub use self::{
    beta::parse,
    status::{FINALIZER, decide_status, is_established, mark_terminating},
    validate::validate,
};
use crate::{
    catalog::Definition,
    convert::Converter,
    managed::{Node, Types},
    object::{self, NameRule},
    resource::{Custom, Resource, Role, group_version},
    rules::Tree,
    scale::Scale,
    schema::Schema,
    table,
};

/// Fills in what may be left out.
pub fn fill(object: &mut Value) {
    let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    let Some(spec) = object["spec"].as_object_mut() else { return };
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    for (key, text) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if !kind.is_empty() && names.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
            names.insert(key.to_owned(), text.into());
        }
    }
}

pub fn versions(object: &Value) -> &[Value] {
    object["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The version objects are stored in.
pub fn storage_version(object: &Value) -> Option<&Value> {
    versions(object).iter().find(|version| version["storage"] == true)
}

/// The gates of a definition; one that cannot be read gates nothing, as validation refuses such.
pub fn gates(object: &Value) -> Gates {
    gates_of(&object["spec"])
}

fn gates_of(spec: &Value) -> Gates {
    Gates::parse_lenient(&spec["customFeatureGates"])
}

/// The webhook that converts objects, or why there can be none.
fn converter(spec: &Value) -> Option<Arc<Result<Converter, String>>> {
    let webhook = spec["conversion"]["strategy"] == "Webhook";
    webhook.then(|| Arc::new(Converter::new(&spec["conversion"])))
}

/// The resources of an established definition, one for each version that is served.
pub fn resources(definition: &Definition, field_gates: bool) -> Vec<Resource> {
    if !is_established(&definition.object) {
        return Vec::new();
    }
    let types = Arc::new(types(&definition.object));
    let served = versions(&definition.object).iter().filter(|version| version["served"] == true);
    served.map(|version| resource(definition, version, types.clone(), field_gates)).collect()
}

/// How fields are merged in each version, served or not, as managers may know them by any.
fn types(object: &Value) -> Types {
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let of = |version: &Value| {
        let name = group_version(group, version["name"].as_str().unwrap_or_default());
        (name, Node::of_object(version["schema"].get("openAPIV3Schema").unwrap_or(&open())))
    };
    versions(object).iter().map(of).collect()
}

/// The schema of a version that has none.
fn open() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// What is written through another version keeps only what the storage version has a place for, as it is converted before it is stored.
fn stored_schema(object: &Value, version: &str) -> Option<Schema> {
    let stored = storage_version(object)?;
    let schema = stored["schema"].get("openAPIV3Schema").filter(|_| stored["name"] != version)?;
    Some(Schema::parse(schema))
}

fn resource(definition: &Definition, version: &Value, types: Arc<Types>, field_gates: bool) -> Resource {
    let spec = &definition.object["spec"];
    let names = &definition.object["status"]["acceptedNames"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (group, name) = (text(&spec["group"]), text(&version["name"]));
    let stored = storage_version(&definition.object).map(|version| text(&version["name"])).unwrap_or_default();
    let gates = if field_gates { gates(&definition.object) } else { Gates::default() };
    let open = open();
    let schema = version["schema"].get("openAPIV3Schema").unwrap_or(&open);
    let gating = gating::of(&gates, &definition.object, version, schema);
    let deprecation = (version["deprecated"] == true).then(|| match version["deprecationWarning"].as_str() {
        Some(text) => text.to_owned(),
        None => format!("{group}/{name} {} is deprecated", text(&names["kind"])),
    });
    Resource {
        stored_version: group_version(&group, &stored),
        stored_schema: stored_schema(&definition.object, &name),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        has_status: version["subresources"]["status"].is_object(),
        scale: Scale::parse(&version["subresources"]["scale"]),
        name_rule: NameRule::Subdomain,
        has_generation: true,
        unconditional_update: false,
        strategic: false,
        schema: Schema::parse(&gating.schema),
        rules: Tree::compile(&gating.schema).map(Arc::new),
        types,
        published: gating.published,
        columns: table::custom_columns(&list(&version["additionalPrinterColumns"])),
        deprecation,
        converter: converter(spec),
        selectable: selectable::fields(version),
        role: Role::Custom(Custom {
            definition: definition.name().to_owned(),
            definition_key: definition.key.clone(),
            definition_revision: definition.revision,
            terminating: object::is_deleting(&definition.object),
        }),
        gating: gating.gating.map(Arc::new),
        held: Arc::new(gating.held),
        group,
        version: name,
    }
}
