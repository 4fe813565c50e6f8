//! The kinds that are there without a definition: few, and only what custom resources and their controllers lean on.

mod content;
mod tls;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    admission,
    managed::{Node, Types},
    object::NameRule,
    resource::{Resource, Role},
    reviews,
    schema::Schema,
    table::Column,
};

pub(crate) use self::content::{caution, faults};

pub(crate) const DEFINITIONS: (&str, &str, &str) = ("apiextensions.k8s.io", "v1", "customresourcedefinitions");
/// No definition can be in these.
pub(crate) const GROUPS: [&str; 5] =
    [DEFINITIONS.0, "coordination.k8s.io", admission::GROUP, reviews::AUTHENTICATION, reviews::AUTHORIZATION];
/// These exist always and cannot be deleted.
pub(crate) const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Holds every namespace until its content is gone.
pub(crate) const NAMESPACE_FINALIZER: &str = "kubernetes";

pub(crate) fn resources() -> Vec<Resource> {
    let mut resources = vec![config_maps(), namespaces(), secrets(), leases(), definitions()];
    resources.extend(admission::resources());
    resources
}

/// What the built-in kinds differ in.
pub(crate) struct Basics<'a> {
    pub group: &'a str,
    pub plural: &'a str,
    pub kind: &'a str,
    pub short_names: &'a [&'a str],
    pub namespaced: bool,
    pub role: Role,
    pub schema: Value,
    pub columns: Vec<Column>,
}

pub(crate) fn resource(basics: Basics<'_>) -> Resource {
    let Basics { group, plural, kind, short_names, namespaced, role, schema, columns } = basics;
    // Kinds that say how the server itself behaves: what is wanted of them has a generation, and nobody overwrites it unseen.
    let governs = matches!(role, Role::Definition | Role::Policy | Role::Binding);
    let name_rule = if role == Role::Namespace { NameRule::Label } else { NameRule::Subdomain };
    let selectable = match role {
        Role::Secret => vec!["type".to_owned()],
        Role::Namespace => vec!["status.phase".to_owned()],
        _ => Vec::new(),
    };
    Resource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        short_names: short_names.iter().map(|name| (*name).to_owned()).collect(),
        categories: if governs { vec!["api-extensions".to_owned()] } else { Vec::new() },
        namespaced,
        has_status: matches!(role, Role::Namespace | Role::Definition | Role::Policy),
        scale: None,
        name_rule,
        has_generation: governs,
        unconditional_update: !governs && role != Role::Lease,
        strategic: true,
        stored_version: crate::resource::group_version(group, "v1"),
        stored_schema: None,
        schema: Schema::parse(&schema),
        schemas: None,
        rules: None,
        types: Arc::new(Types::from([(crate::resource::group_version(group, "v1"), Node::of_object(&schema))])),
        published: schema,
        columns,
        deprecation: None,
        selectable,
        converter: None,
        role,
        gating: None,
        held: Arc::default(),
    }
}

pub(crate) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn map_of_text(description: &str) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": {"type": "string"}})
}

/// Text to show; none is nothing.
pub(crate) fn words(text: &Value) -> Value {
    text.as_str().unwrap_or_default().into()
}

/// How many entries a map has.
fn entries(map: &Value) -> usize {
    map.as_object().map_or(0, serde_json::Map::len)
}

fn config_maps() -> Resource {
    let schema = json!({"type": "object", "description": "ConfigMap holds configuration data for others to read.", "properties": {
        "data": map_of_text("Entries as text."),
        "binaryData": {"type": "object", "description": "Entries as bytes, in base64.",
                       "additionalProperties": {"type": "string", "format": "byte"}},
        "immutable": {"type": "boolean", "description": "If true, the entries cannot be changed any more."},
    }});
    let data = "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values \
        with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in \
        the BinaryData field, this is enforced during validation process.";
    let data = Column::cell("Data", "string", data, |map| (entries(&map["data"]) + entries(&map["binaryData"])).into());
    resource(Basics {
        group: "",
        plural: "configmaps",
        kind: "ConfigMap",
        short_names: &["cm"],
        namespaced: true,
        role: Role::Plain,
        schema,
        columns: vec![Column::name(), data, Column::age()],
    })
}

fn secrets() -> Resource {
    let schema = json!({"type": "object", "description": "Secret holds data that not everyone should see.", "properties": {
        "data": {"type": "object", "description": "Entries as bytes, in base64.",
                 "additionalProperties": {"type": "string", "format": "byte"}},
        "stringData": map_of_text("Entries as text; they are written into data and never read back."),
        "type": json!({"type": "string", "description": "What the entries are for.", "default": "Opaque"}),
        "immutable": {"type": "boolean", "description": "If true, the entries cannot be changed any more."},
    }});
    let kind = "Used to facilitate programmatic handling of secret data. More info: \
        https://kubernetes.io/docs/concepts/configuration/secret/#secret-types";
    let kind = Column::cell("Type", "string", kind, |secret| words(&secret["type"]));
    let data = "Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or '.'. The serialized \
        form of the secret data is a base64 encoded string, representing the arbitrary (possibly non-string) data value here. \
        Described in https://tools.ietf.org/html/rfc4648#section-4";
    let data = Column::cell("Data", "string", data, |secret| entries(&secret["data"]).into());
    resource(Basics {
        group: "",
        plural: "secrets",
        kind: "Secret",
        short_names: &[],
        namespaced: true,
        role: Role::Secret,
        schema,
        columns: vec![Column::name(), kind, data, Column::age()],
    })
}

fn namespaces() -> Resource {
    let schema = json!({"type": "object", "description": "Namespace is a scope for names.", "properties": {
        "spec": {"type": "object", "description": "What is wanted.", "properties": {
            "finalizers": {"type": "array", "description": "Who has to do something before the namespace is gone.",
                           "items": {"type": "string"}}}},
        "status": {"type": "object", "description": "What is.", "properties": {
            "phase": text("Active or Terminating."),
            "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                           "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                           "description": "Why it is not gone yet."}}},
    }});
    let status = Column::cell("Status", "string", "The status of the namespace", |namespace| {
        words(&namespace["status"]["phase"])
    });
    resource(Basics {
        group: "",
        plural: "namespaces",
        kind: "Namespace",
        short_names: &["ns"],
        namespaced: false,
        role: Role::Namespace,
        schema,
        columns: vec![Column::name(), status, Column::age()],
    })
}

fn leases() -> Resource {
    let time = |description: &str| json!({"type": "string", "format": "date-time", "description": description});
    let schema = json!({"type": "object", "description": "Lease says who holds something, and until when.", "properties": {
        "spec": {"type": "object", "description": "Who holds it.", "properties": {
            "holderIdentity": text("Who holds the lease now."),
            "leaseDurationSeconds": {"type": "integer", "format": "int32", "description": "How long after the last renewal it is held."},
            "acquireTime": time("When it was acquired."),
            "renewTime": time("When it was renewed last."),
            "leaseTransitions": {"type": "integer", "format": "int32", "description": "How often the holder has changed."},
            "strategy": text("How the next holder is chosen."),
            "preferredHolder": text("Who should hold it next."),
        }},
    }});
    let holder = "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, \
        the holder identity must be equal to the elected LeaseCandidate.metadata.name field.";
    let holder = Column::cell("Holder", "string", holder, |lease| words(&lease["spec"]["holderIdentity"]));
    resource(Basics {
        group: "coordination.k8s.io",
        plural: "leases",
        kind: "Lease",
        short_names: &[],
        namespaced: true,
        role: Role::Lease,
        schema,
        columns: vec![Column::name(), holder, Column::age()],
    })
}

fn definitions() -> Resource {
    resource(Basics {
        group: DEFINITIONS.0,
        plural: DEFINITIONS.2,
        kind: "CustomResourceDefinition",
        short_names: &["crd", "crds"],
        namespaced: false,
        role: Role::Definition,
        schema: definition_schema(),
        columns: vec![Column::name(), Column::created()],
    })
}

fn definition_schema() -> Value {
    let texts = |description: &str| json!({"type": "array", "description": description, "items": {"type": "string"}});
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    let names = json!({"type": "object", "description": "What the resource is called.", "required": ["plural", "kind"], "properties": {
        "plural": text("The name in URLs."), "singular": text("The name of one; the kind in lower case unless given."),
        "kind": text("The kind of its objects."), "listKind": text("The kind of its lists; the kind and List unless given."),
        "shortNames": texts("Shorter names for people."), "categories": texts("Names of groups it is shown in, such as all."),
    }});
    let column = json!({"type": "object", "required": ["name", "type", "jsonPath"], "properties": {
        "name": text("The heading."), "type": text("integer, number, string, boolean or date."), "format": text("A format for the type."),
        "description": text("What the column shows."), "priority": {"type": "integer", "format": "int32", "description": "Above 0: shown with -o wide only."},
        "jsonPath": text("Where the value is."),
    }});
    let version = json!({"type": "object", "required": ["name", "served", "storage"], "properties": {
        "name": text("Such as v1 or v1beta1."), "served": flag("Whether it can be used."), "storage": flag("Whether objects are stored in it; true for one."),
        "deprecated": flag("Whether its use is warned of."), "deprecationWarning": text("The text of that warning."),
        "schema": {"type": "object", "description": "What objects look like.", "properties": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "description": "A structural schema."}}},
        "subresources": {"type": "object", "description": "Parts that are written on their own.", "properties": {
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "scale": {"type": "object", "required": ["specReplicasPath", "statusReplicasPath"], "properties": {
                "specReplicasPath": text("Where the wanted count is."), "statusReplicasPath": text("Where the count is."),
                "labelSelectorPath": text("Where the selector is.")}}}},
        "selectableFields": {"type": "array", "items": {"type": "object", "required": ["jsonPath"], "properties": {"jsonPath": text("Where the field is.")}}},
        "additionalPrinterColumns": {"type": "array", "description": "What is shown of each object.", "items": column},
    }});
    let gate = json!({"type": "object", "required": ["name", "preRelease", "fieldPaths"], "properties": {
        "name": text("The name of the gate."), "preRelease": text("alpha, beta, stable or deprecated."),
        "enabled": flag("Switches the gate on or off; stable gates are always on."), "default": flag("On or off unless enabled says so."),
        "fieldPaths": {"type": "array", "description": "The fields behind the gate, such as .spec.replicas.",
                       "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "fieldDeprecationWarning": text("What users of a deprecated field are told."),
    }});
    json!({"type": "object", "description": "CustomResourceDefinition makes a new kind of resource.", "required": ["spec"], "properties": {
        "spec": {"type": "object", "description": "What is wanted.", "required": ["group", "names", "scope", "versions"], "properties": {
            "group": text("The API group."), "names": names, "scope": text("Cluster or Namespaced."),
            "versions": {"type": "array", "description": "All versions.", "items": version},
            "preserveUnknownFields": flag("Must be false."),
            "conversion": {"type": "object", "description": "How objects get from version to version.", "properties": {
                "strategy": text("None or Webhook."), "webhook": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
            "customFeatureGates": {"type": "object", "description": "Gates that switch fields on and off.", "properties": {
                "component": text("Whose gates they are; the group unless given."),
                "featureGates": {"type": "array", "description": "The gates.", "items": gate,
                                 "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}}},
        }},
        "status": {"type": "object", "description": "What is.", "properties": {
            "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                           "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
            "acceptedNames": names, "storedVersions": texts("Versions in which objects may be stored."),
            "observedGeneration": {"type": "integer", "format": "int64"},
            "customFeatureGates": {"x-kubernetes-preserve-unknown-fields": true, "description": "The gates as they are now."},
        }},
    }})
}
