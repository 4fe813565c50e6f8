//! One resource in one version: what it is called, what its objects look like, how they are kept.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use fieldgate::Gating;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    convert::Converter, managed::Types, object::NameRule, rules::Tree, scale::Scale, schema::Schema, status::Name,
    store, table::Column,
};

/// What is special about a resource beyond its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Namespace,
    Secret,
    Lease,
    Plain,
    Definition,
    /// ValidatingAdmissionPolicy
    Policy,
    /// ValidatingAdmissionPolicyBinding
    Binding,
    /// Objects of a custom resource definition.
    Custom(Custom),
}

/// Where the definition of a custom resource lies, as it was when this resource was made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Custom {
    pub definition: String,
    pub definition_key: String,
    pub definition_revision: i64,
    pub terminating: bool,
    /// Its objects are being deleted before it.
    pub emptying: bool,
    /// Objects can be read in the version in which they are stored.
    pub storage_served: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub has_status: bool,
    /// Where the parts of a scale are, for kinds that can be scaled.
    pub scale: Option<Scale>,
    pub name_rule: NameRule,
    /// Fields that count as a change of what is wanted; `None` if the kind has no generation.
    pub has_generation: bool,
    /// A PUT need not say which version it replaces.
    pub unconditional_update: bool,
    /// Takes strategic merge patches, as built-in kinds do.
    pub strategic: bool,
    /// The `apiVersion` under which objects are stored.
    pub stored_version: String,
    /// The schema of the version that objects are stored in, where it is another than this.
    pub stored_schema: Option<Schema>,
    pub schema: Schema,
    /// The schemas of all versions by their `apiVersion`, where they differ.
    pub schemas: Option<Arc<Schemas>>,
    /// Rules of the schema, where it has any.
    pub rules: Option<Arc<Tree>>,
    /// How fields are merged, in this version and the others of the kind.
    pub types: Arc<Types>,
    /// The schema as JSON, to be published.
    pub published: Value,
    pub columns: Vec<Column>,
    pub deprecation: Option<String>,
    /// Fields that lists and watches can be selected by, as `spec.color`.
    pub selectable: Vec<String>,
    pub role: Role,
    /// Converts between versions; without it only the version's name differs.
    pub converter: Option<Arc<std::result::Result<Converter, String>>>,
    /// Gates on fields, where there are any. With a webhook they speak of the version that objects are stored in alone.
    pub gating: Option<Arc<Gating>>,
    /// With a webhook: each field behind a gate that is off, alone.
    pub held: Arc<Vec<Gating>>,
}

/// By `apiVersion`.
pub(crate) type Schemas = std::collections::BTreeMap<String, Schema>;

impl Resource {
    /// The schema by which an object of the store is read: that of the version it is in.
    pub(crate) fn schema_of(&self, object: &Value) -> &Schema {
        let own = self.schemas.as_ref().zip(object["apiVersion"].as_str());
        own.and_then(|(schemas, version)| schemas.get(version)).unwrap_or(&self.schema)
    }

    pub(crate) fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// Changes when the form does in which objects are stored; clients compare it, nothing more. A form that nobody can see has none.
    pub(crate) fn storage_version_hash(&self) -> Option<String> {
        if self.custom().is_some_and(|custom| !custom.storage_served) {
            return None;
        }
        let version = self.stored_version.rsplit('/').next().unwrap_or_default();
        let digest = Sha256::digest(format!("{}/{version}/{}", self.group, self.kind));
        Some(STANDARD.encode(&digest[..8]))
    }

    /// `crontabs.example.com`
    pub(crate) fn name(&self) -> Name {
        Name::new(&self.group, &self.plural)
    }

    /// `CronTab.example.com`
    pub(crate) fn kind_name(&self) -> Name {
        Name::new(&self.group, &self.kind)
    }

    pub(crate) fn prefix(&self) -> String {
        store::prefix(&self.group, &self.plural)
    }

    /// The prefix of all objects of one namespace, or of all.
    pub(crate) fn prefix_in(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) if self.namespaced => format!("{}{namespace}/", self.prefix()),
            _ => self.prefix(),
        }
    }

    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}{name}", self.prefix_in(namespace))
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        match &self.role {
            Role::Custom(custom) => Some(custom),
            _ => None,
        }
    }

    /// Gates that ask for something, by the names of another version than this.
    pub(crate) fn gated_elsewhere(&self) -> Option<&Gating> {
        let elsewhere = self.converter.is_some() && self.api_version() != self.stored_version;
        self.active_gating().filter(|_| elsewhere)
    }

    /// Gates that ask for something, by the names of this version.
    pub(crate) fn gated_here(&self) -> Option<&Gating> {
        self.active_gating().filter(|_| self.gated_elsewhere().is_none())
    }

    fn active_gating(&self) -> Option<&Gating> {
        self.gating.as_deref().filter(|gating| !gating.is_idle())
    }

    /// Whether objects can be selected by a field, or why not.
    pub(crate) fn check_selectable(&self, field: &str) -> std::result::Result<(), String> {
        let by_place = match field {
            "metadata.name" => true,
            "metadata.namespace" => self.namespaced || !matches!(self.role, Role::Custom(_) | Role::Namespace),
            _ => false,
        };
        match (by_place || self.selectable.iter().any(|known| known == field), &self.role) {
            (true, _) => Ok(()),
            (false, Role::Custom(_) | Role::Namespace | Role::Secret) => {
                Err(format!("field label not supported: {field}"))
            }
            (false, _) => {
                Err(format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""))
            }
        }
    }

    /// Whether a PUT makes what is not there.
    pub(crate) fn put_makes(&self) -> bool {
        self.role == Role::Lease
    }

    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match &self.role {
            Role::Custom(custom) if custom.emptying => &["delete", "deletecollection", "get", "list", "watch"],
            // A namespace goes away step by step, so there is no deleting of many at once.
            Role::Namespace => &["create", "delete", "get", "list", "patch", "update", "watch"],
            // In the order in which Kubernetes tells them of either.
            Role::Custom(_) => &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            _ => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        }
    }

    /// What is served under the path of an object, with what can be done there.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        const ALL: &[&str] = &["get", "patch", "update"];
        let parts = [
            ("finalize", &["update"][..], self.role == Role::Namespace),
            ("status", ALL, self.has_status),
            ("scale", ALL, self.scale.is_some()),
        ];
        parts.into_iter().filter(|(.., is)| *is).map(|(name, verbs, _)| (name, verbs))
    }
}

pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
