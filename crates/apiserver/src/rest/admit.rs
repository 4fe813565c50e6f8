//! The way of an object from a body to the store: known fields, defaults, gates, rules; and back.

use serde_json::Value;

use super::{Api, Call};
use crate::{
    admission, crd, decode,
    field::FieldError,
    form::{self, Kind, Sent},
    object, protobuf,
    resource::{Resource, Role},
    route::Target,
    rules, scale, schema,
    serve::answer::Warnings,
    status::{Result, Status},
    store::Entry,
};

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Main,
    Status,
    Scale,
}

impl Scope {
    pub fn of(target: &Target) -> Scope {
        match target.subresource.as_deref() {
            None => Scope::Main,
            Some("scale") => Scope::Scale,
            Some(_) => Scope::Status,
        }
    }
}

/// An object of the store as clients of this version see it.
pub fn readable(resource: &Resource, entry: &Entry) -> Result<Value> {
    Ok(served(resource, stored(resource, entry)?, entry.revision))
}

/// The same of an object that is in the client's version but for its name.
pub fn served(resource: &Resource, object: Value, revision: i64) -> Value {
    serve(resource, object, revision).0
}

/// The same, and whether nothing had to be taken out of it.
pub fn serve(resource: &Resource, mut object: Value, revision: i64) -> (Value, bool) {
    object["apiVersion"] = resource.api_version().into();
    let known = resource.custom().is_none() || schema::prune(&resource.schema, &mut object).is_empty();
    schema::fill(&resource.schema, &mut object);
    object::set(&mut object, "resourceVersion", revision.to_string());
    (object, known)
}

/// An object as it is stored: neither defaulted nor converted.
pub fn stored(resource: &Resource, entry: &Entry) -> Result<Value> {
    if entry.value.starts_with(protobuf::MAGIC) {
        let why = || Status::internal(format!("the object stored at {} cannot be read", entry.key));
        return protobuf::decode(&entry.value).ok_or_else(why);
    }
    let read = match resource.role {
        Role::Definition => crd::parse(&entry.value),
        _ => serde_json::from_slice(&entry.value),
    };
    let unreadable = |fault: String| {
        let why = format!("the object stored at {} is not JSON and cannot be read ({fault})", entry.key);
        tracing::warn!(key = entry.key, kind = resource.kind, "{why}");
        Status::internal(why)
    };
    match read {
        // What others put into the store may be anything; only in an object can fields be set.
        Ok(other) if !other.is_object() => Err(unreadable("it is no object".to_owned())),
        read => read.map_err(|error| unreadable(error.to_string())),
    }
}

/// What is stored of an object.
pub fn encode(resource: &Resource, object: &Value) -> Value {
    let mut stored = object.clone();
    stored["apiVersion"] = resource.stored_version.as_str().into();
    object::meta_mut(&mut stored).remove("resourceVersion");
    stored
}

/// A body as an object, and the fields it names twice.
pub fn body(resource: &Resource, scope: Scope, call: &Call) -> Result<decode::Decoded> {
    let api_version = resource.api_version();
    let kind = kind(resource, &api_version, scope);
    // Built-in kinds have a protobuf form, and clients that know them use it.
    let mut decoded = if resource.strategic { known(call, kind.kind) } else { text(call, kind.kind) }?;
    form::check(&mut decoded.value, &kind, Sent::Whole(&call.body))?;
    Ok(decoded)
}

/// What the object of a request should be.
pub fn kind<'a>(resource: &'a Resource, api_version: &'a str, scope: Scope) -> Kind<'a> {
    match scope {
        Scope::Scale => Kind { api_version: scale::API_VERSION, kind: scale::KIND, typed: true },
        _ => Kind { api_version, kind: &resource.kind, typed: resource.custom().is_none() },
    }
}

/// A body of a kind that is not kept.
pub fn document(call: &Call, kind: &Kind<'_>) -> Result<Value> {
    let mut value = known(call, kind.kind)?.value;
    form::check(&mut value, kind, Sent::Whole(&call.body))?;
    Ok(value)
}

fn known(call: &Call, kind: &str) -> Result<decode::Decoded> {
    if media(call) != protobuf::MEDIA {
        return text(call, kind);
    }
    let value = protobuf::decode(&call.body).ok_or_else(|| {
        Status::bad_request("the object provided is unrecognized: it is no protobuf of a kind known here")
    })?;
    Ok(decode::Decoded { value, twice: decode::Twice::default() })
}

fn media(call: &Call) -> &str {
    call.content_type().split(';').next().unwrap_or_default().trim()
}

fn text(call: &Call, kind: &str) -> Result<decode::Decoded> {
    let body = &call.body;
    match media(call) {
        "application/json" | "" => decode::json(body).map_err(|error| form::unrecognized(&error, body, kind)),
        "application/yaml" => decode::yaml(body).map_err(|error| form::unrecognized_yaml(&error, body, kind)),
        _ => Err(Status::unsupported_media_type(&["application/json", "application/yaml"])),
    }
}

/// Where an object says it is must be where the request is about.
pub fn check_place(object: &mut Value, namespace: Option<&str>, name: Option<&str>) -> Result<()> {
    let own = object::meta(object, "namespace");
    if let Some(namespace) = namespace {
        if !own.is_empty() && own != namespace {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
        object::set(object, "namespace", namespace);
    }
    let own = object::meta(object, "name");
    match name {
        Some(name) if own.is_empty() => {
            let why = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
            return Err(Status::bad_request(why));
        }
        Some(name) if own != name => {
            let message = format!("the name of the object ({own}) does not match the name on the URL ({name})");
            return Err(Status::bad_request(message));
        }
        _ => {}
    }
    Ok(())
}

/// Reads the request's own words: secrets given as text become bytes.
pub fn normalize(resource: &Resource, object: &mut Value) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    if resource.role != Role::Secret {
        return;
    }
    let Some(Value::Object(texts)) = object.as_object_mut().and_then(|object| object.remove("stringData")) else {
        return;
    };
    if object["data"].is_null() {
        object["data"] = serde_json::json!({});
    }
    if !object["data"].is_object() {
        return; // validation will say so
    }
    for (key, text) in texts {
        object["data"][key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

impl Api {
    /// Refuses an object that is not fit to be stored.
    pub(super) fn validate(
        &self,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
        more: Vec<FieldError>,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let mut errors = self.faults(resource, object, old, warnings);
        errors.extend(more);
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Status::invalid(&resource.kind_name(), object::meta(object, "name"), &errors)),
        }
    }

    /// All that is wrong with an object about to be stored.
    pub(super) fn faults(
        &self,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
        warnings: &mut Warnings,
    ) -> Vec<FieldError> {
        let mut errors = object::check_metadata(object, resource.namespaced, resource.name_rule);
        errors.extend(check_shape(resource, object, old));
        // What has the wrong shape cannot be judged further.
        if resource.role == Role::Definition && errors.is_empty() {
            let (faults, cautions) = crd::validate(object, old);
            errors.extend(faults);
            cautions.into_iter().for_each(|caution| warnings.add(caution));
        }
        if errors.is_empty() {
            match resource.role {
                Role::Policy => errors.extend(admission::check_policy(object)),
                Role::Binding => errors.extend(admission::check_binding(object)),
                _ => {}
            }
        }
        if let Some(old) = old {
            check_change(object, old, &mut errors);
        }
        check_rules(resource, object, old, &mut errors, warnings);
        if resource.custom().is_some() {
            object::doubtful_finalizers(object, old).into_iter().for_each(|text| warnings.add(text));
        }
        errors.extend(resource.scale.iter().flat_map(|scale| scale.check(object)));
        errors
    }
}

/// What the schema says. On an update of a custom resource, what was wrong before and has not changed is let be.
fn check_shape(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let schema = &resource.schema;
    let lists = |object: &Value| {
        let mut errors = Vec::new();
        schema::check_lists(schema, object, "", &mut errors);
        errors
    };
    let Some(old) = old.filter(|_| resource.custom().is_some()) else {
        return schema::validate(schema, object, "").into_iter().chain(lists(object)).collect();
    };
    let mut errors = schema::validate_update(schema, object, old);
    if lists(old).is_empty() {
        errors.extend(lists(object));
    }
    errors
}

/// Rules are asked only of objects whose shape they can rely on.
fn check_rules(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
    warnings: &mut Warnings,
) {
    let Some(tree) = &resource.rules else { return };
    if errors.iter().any(|error| error.fault.blocks_rules()) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to \
            complete validation";
        errors.push(FieldError::invalid("<nil>", Value::Null, detail));
        return;
    }
    let verdict = rules::validate(tree, &resource.schema, object, old);
    errors.extend(verdict.errors);
    verdict.tolerated.iter().for_each(|error| warnings.add(error.to_string()));
}

/// What an object cannot become.
fn check_change(object: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if old["immutable"] == true {
        if object["immutable"] != true {
            errors.push(FieldError::forbidden("immutable", "field is immutable when `immutable` is set"));
        }
        for key in ["data", "binaryData"].into_iter().filter(|key| object[*key] != old[*key]) {
            errors.push(FieldError::forbidden(key, "field is immutable when `immutable` is set"));
        }
    }
    if object::is_deleting(old) {
        let before = object::list(old, "finalizers");
        let new: Vec<&Value> =
            object::list(object, "finalizers").iter().filter(|name| !before.contains(name)).collect();
        if !new.is_empty() {
            let names: Vec<String> = new.iter().map(|name| name.to_string()).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                names.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", detail));
        }
    }
}
