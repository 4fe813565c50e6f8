//! What an update cannot change, or must not by oversight.

use serde_json::Value;

use super::admit::Scope;
use crate::{
    crd,
    field::FieldError,
    object,
    resource::{Resource, Role},
    serve::answer::Warnings,
    status::{Result, Status},
};

/// How an object is written.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub whole: bool,
    pub dry_run: bool,
}

/// The version the client has seen must be the one that is there.
pub(super) fn check_version(
    resource: &Resource,
    object: &Value,
    old: &Value,
    scope: Scope,
    Manner { whole, dry_run }: Manner,
) -> Result<()> {
    let name = object::meta(old, "name");
    let (uid, own) = (object::meta(object, "uid"), object::meta(old, "uid"));
    if whole && !uid.is_empty() && uid != own {
        let namespace = Some(object::meta(old, "namespace")).filter(|space| !space.is_empty());
        return Err(other_uid(resource, (namespace, name), (uid, own), dry_run));
    }
    match object::meta(object, "resourceVersion") {
        "" | "0" if !resource.unconditional_update => {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            // Kubernetes names the resource here, where it names the kind elsewhere.
            return Err(Status::invalid(&resource.name(), name, &[error]));
        }
        "" | "0" => {}
        version if version != object::meta(old, "resourceVersion") => {
            return Err(Status::modified(&resource.name(), name));
        }
        _ => {}
    }
    let changed = ["uid", "deletionTimestamp"].into_iter().filter(|key| {
        let new = object::meta(object, key);
        !new.is_empty() && new != object::meta(old, key)
    });
    let immutable =
        |key: &str| FieldError::invalid(format!("metadata.{key}"), object::meta(object, key), "field is immutable");
    let mut errors: Vec<FieldError> = changed.map(immutable).collect();
    let grace = |object: &Value| object["metadata"]["deletionGracePeriodSeconds"].clone();
    if matches!(scope, Scope::Main | Scope::Finalize) && !grace(object).is_null() && grace(object) != grace(old) {
        let field = "metadata.deletionGracePeriodSeconds";
        errors.push(FieldError::invalid(field, grace(object), "field is immutable"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(&resource.kind_name(), name, &errors)) }
}

/// What is sent is of something else than what is there, if anything is.
pub(super) fn other_uid(
    resource: &Resource,
    (namespace, name): (Option<&str>, &str),
    (sent, own): (&str, &str),
    dry_run: bool,
) -> Box<Status> {
    let key = resource.key(namespace, name);
    // A dry run does not come as far as the store, which knows what stands before all keys.
    let key = if dry_run { key.trim_start_matches("/registry") } else { &key };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: {sent}, UID in object meta: {own}"
    );
    Status::conflict(&resource.name(), name, why)
}

/// What a write of this scope cannot change stays.
pub(super) fn carry_over(resource: &Resource, mut object: Value, old: &Value, scope: Scope) -> Value {
    let set = |object: &mut Value, key: &str, value: Option<&Value>| match value {
        Some(value) => object[key] = value.clone(),
        None => drop(object.as_object_mut().map(|object| object.remove(key))),
    };
    // The metadata of a namespace can be changed with its status too.
    if scope == Scope::Status && resource.role != Role::Namespace {
        let mut whole = old.clone();
        set(&mut whole, "status", object.get("status"));
        return whole;
    }
    for key in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"]
    {
        object::keep(&mut object, key, old);
    }
    for key in ["selfLink", "managedFields"] {
        object::meta_mut(&mut object).remove(key);
    }
    match scope {
        Scope::Status => set(&mut object, "spec", old.get("spec")),
        _ if resource.has_status => set(&mut object, "status", old.get("status")),
        _ => {}
    }
    object
}

/// Clients with types of their own drop fields they do not know: a PUT without gates is no wish to remove them.
pub(super) fn keep_gates(object: &mut Value, old: &Value, warnings: &mut Warnings) {
    let stanza = &old["spec"]["customFeatureGates"];
    if stanza.is_object()
        && object["spec"].is_object()
        && object["spec"].get("customFeatureGates").is_none()
        && !crd::gates(old).gates.is_empty()
    {
        object["spec"]["customFeatureGates"] = stanza.clone();
        warnings.add("spec.customFeatureGates: kept, as the update leaves it out; set featureGates to [] to remove it");
    }
}
