//! Custom resource definitions: what they must be, what state they are in, and the resources they make.

mod approval;
mod beta;
mod conversion;
mod gating;
mod names;
mod parts;
mod selectable;
mod status;
mod validate;

use std::sync::Arc;

use fieldgate::Gates;
use serde_json::{Value, json};

pub(crate) use self::{
    beta::parse,
    status::{FINALIZER, decide_status, is_established, mark_terminating},
    validate::validate,
};
use crate::{
    catalog::{Definition, priority},
    convert::Converter,
    managed::{Node, Types},
    object::{self, NameRule},
    resource::{Custom, Resource, Role, Schemas, group_version},
    rules::Tree,
    scale::Scale,
    schema::Schema,
    table,
};

/// Fills in what may be left out.
pub(crate) fn fill(object: &mut Value) {
    let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    let Some(spec) = object["spec"].as_object_mut() else { return };
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let service = spec.get_mut("conversion").and_then(|value| value.pointer_mut("/webhook/clientConfig/service"));
    if let Some(service) = service.and_then(Value::as_object_mut)
        && service.get("port").is_none_or(Value::is_null)
    {
        service.insert("port".to_owned(), 443.into());
    }
    for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
        drop_empty(version, &["additionalPrinterColumns", "selectableFields"]);
        for key in ["served", "storage"] {
            if version.is_object() && version[key].is_null() {
                version[key] = false.into();
            }
        }
    }
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.remove("preserveUnknownFields");
    }
    let Some(names) = spec.get_mut("names") else { return };
    drop_empty(names, &["shortNames", "categories"]);
    let Some(names) = names.as_object_mut() else { return };
    for (key, text) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if !kind.is_empty() && names.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
            names.insert(key.to_owned(), text.into());
        }
    }
}

/// Lists without items are not kept.
fn drop_empty(part: &mut Value, lists: &[&str]) {
    if let Some(part) = part.as_object_mut() {
        part.retain(|key, value| !(lists.contains(&key.as_str()) && value.as_array().is_some_and(Vec::is_empty)));
    }
}

pub(crate) fn versions(object: &Value) -> &[Value] {
    object["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The version objects are stored in.
pub(crate) fn storage_version(object: &Value) -> Option<&Value> {
    versions(object).iter().find(|version| version["storage"] == true)
}

/// The gates of a definition; one that cannot be read gates nothing, as validation refuses such.
pub(crate) fn gates(object: &Value) -> Gates {
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
pub(crate) fn resources(definition: &Definition, field_gates: bool) -> Vec<Resource> {
    if !is_established(&definition.object) {
        return Vec::new();
    }
    let types = Arc::new(types(&definition.object));
    let schemas = schemas(&definition.object, field_gates).map(Arc::new);
    let served = versions(&definition.object).iter().filter(|version| version["served"] == true);
    let of =
        |version| Resource { schemas: schemas.clone(), ..resource(definition, version, types.clone(), field_gates) };
    served.map(of).collect()
}

/// What is stored of a definition, served or not, for those who delete it.
pub(crate) fn stored_resource(definition: &Definition) -> Option<Resource> {
    let stored = storage_version(&definition.object).filter(|_| is_established(&definition.object))?;
    Some(resource(definition, stored, Arc::new(types(&definition.object)), false))
}

/// What users of a version are told that is deprecated without a text of its own: of newer ones the best.
fn deprecation(spec: &Value, version: &str) -> String {
    let (group, kind) =
        (spec["group"].as_str().unwrap_or_default(), spec["names"]["kind"].as_str().unwrap_or_default());
    let others = spec["versions"].as_array().into_iter().flatten();
    let others = others.filter(|other| other["served"] == true && other["deprecated"] != true);
    let names = others.filter_map(|other| other["name"].as_str()).map(|name| (priority(name), name));
    let said = format!("{group}/{version} {kind} is deprecated");
    match names.filter(|other| other.0 > priority(version)).max() {
        Some((_, newer)) => format!("{said}; use {group}/{newer} {kind}"),
        None => said,
    }
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

/// How objects are read from the store, by the version they are in, served or not: each gets the defaults of its own.
fn schemas(object: &Value, field_gates: bool) -> Option<Schemas> {
    let versions = versions(object);
    if versions.iter().all(|version| version["schema"] == versions[0]["schema"]) {
        return None;
    }
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let gates = if field_gates { gates(object) } else { Gates::default() };
    let of = |version: &Value| {
        let name = group_version(group, version["name"].as_str().unwrap_or_default());
        let schema = version["schema"].get("openAPIV3Schema").cloned().unwrap_or_else(open);
        (name, Schema::parse(&gating::of(&gates, object, version, &schema).schema))
    };
    Some(versions.iter().map(of).collect())
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

fn scale(object: &Value, version: &Value) -> Option<Scale> {
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let of = |version: &Value| group_version(group, version["name"].as_str().unwrap_or_default());
    let all = versions(object).iter().map(|version| (of(version), &version["subresources"]["scale"]));
    Scale::parse_beside(&version["subresources"]["scale"], all)
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
        None => deprecation(spec, &name),
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
        scale: scale(&definition.object, version),
        name_rule: NameRule::Subdomain,
        has_generation: true,
        unconditional_update: false,
        strategic: false,
        schema: Schema::parse(&gating.schema),
        schemas: None,
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
            emptying: status::is_emptying(&definition.object),
            storage_served: storage_version(&definition.object).is_some_and(|version| version["served"] == true),
        }),
        gating: gating.gating.map(Arc::new),
        held: Arc::new(gating.held),
        group,
        version: name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deprecated_version_names_the_best_newer_one() {
        let version = |name: &str, served: bool, deprecated: bool| json!({"name": name, "served": served, "deprecated": deprecated});
        let spec = json!({"group": "g.io", "names": {"kind": "Dep"}, "versions": [version("v1alpha1", true, true),
            version("v1beta2", true, false), version("v1beta3", true, false), version("v1", false, false)]});
        assert_eq!(deprecation(&spec, "v1alpha1"), "g.io/v1alpha1 Dep is deprecated; use g.io/v1beta3 Dep");
        assert_eq!(deprecation(&spec, "v1"), "g.io/v1 Dep is deprecated");
    }
}
