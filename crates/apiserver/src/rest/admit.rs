//! The way of an object from a body to the store: known fields, defaults, gates, rules; and back.

use serde_json::Value;

use super::Call;
use crate::{
    crd, decode,
    form::{self, Kind, Sent},
    object, protobuf,
    resource::{Resource, Role},
    route::Target,
    scale,
    schema::{self, Schema},
    status::{Result, Status},
    store::Entry,
};

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Main,
    Status,
    Scale,
    /// The finalizers of a namespace, with all that can be changed of it elsewhere but its status.
    Finalize,
}

impl Scope {
    pub(crate) fn of(target: &Target) -> Scope {
        match target.subresource.as_deref() {
            None => Scope::Main,
            Some("scale") => Scope::Scale,
            Some("finalize") => Scope::Finalize,
            Some(_) => Scope::Status,
        }
    }

    /// What the part is called in paths.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scope::Main => "",
            Scope::Status => "status",
            Scope::Scale => "scale",
            Scope::Finalize => "finalize",
        }
    }
}

/// An object of the store as clients of this version see it, where no webhook converts.
pub(super) fn readable(resource: &Resource, entry: &Entry) -> Result<Value> {
    let mut object = stored(resource, entry)?;
    settle(resource, &mut object);
    Ok(served(resource, object, entry.revision))
}

/// Leaves out of an object of the store what its version does not know, and fills in the defaults of that version: a read through
/// another brings none of its own. True if nothing had to go, not even a null.
pub(super) fn settle(resource: &Resource, object: &mut Value) -> bool {
    let schema = resource.schema_of(object);
    let known = resource.custom().is_none() || (schema::prune(schema, object).is_empty() & fit(schema, object));
    let nulls = schema::fill(schema, object).iter().any(|filled| filled.null);
    known && !nulls
}

/// What others have put into the store need not be what a write would have made of it.
fn fit(schema: &Schema, object: &mut Value) -> bool {
    let fits = form::keep_fit(schema, object);
    if object::generation(object) == 0 {
        object::set(object, "generation", 1);
    }
    fits
}

/// A settled object in the version of the client, which it is in but for its name.
pub(super) fn served(resource: &Resource, mut object: Value, revision: i64) -> Value {
    if resource.schemas.is_some() || resource.converter.is_some() {
        schema::prune(&resource.schema, &mut object);
    }
    object["apiVersion"] = resource.api_version().into();
    object::set(&mut object, "resourceVersion", revision.to_string());
    object
}

/// An object as it is stored: neither defaulted nor converted.
pub(crate) fn stored(resource: &Resource, entry: &Entry) -> Result<Value> {
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
pub(crate) fn encode(resource: &Resource, object: &Value) -> Value {
    let mut stored = object.clone();
    stored["apiVersion"] = resource.stored_version.as_str().into();
    object::meta_mut(&mut stored).remove("resourceVersion");
    stored
}

/// A body as an object, and the fields it names twice.
pub(super) fn body(resource: &Resource, scope: Scope, call: &Call) -> Result<decode::Decoded> {
    let api_version = resource.api_version();
    let kind = kind(resource, &api_version, scope);
    // Built-in kinds have a protobuf form, and clients that know them use it.
    let mut decoded = if resource.custom().is_none() { known(call, &kind) } else { text(call, &kind) }?;
    form::check(&mut decoded.value, &kind, Sent::Whole(&call.body))?;
    Ok(decoded)
}

/// What the object of a request should be.
pub(super) fn kind<'a>(resource: &'a Resource, api_version: &'a str, scope: Scope) -> Kind<'a> {
    match scope {
        Scope::Scale => Kind { api_version: scale::API_VERSION, kind: scale::KIND, typed: true },
        _ => Kind { api_version, kind: &resource.kind, typed: resource.custom().is_none() },
    }
}

fn known(call: &Call, kind: &Kind<'_>) -> Result<decode::Decoded> {
    if media(call) != protobuf::MEDIA {
        return text(call, kind);
    }
    let value = protobuf::decode(&call.body).ok_or_else(|| {
        Status::bad_request("the object provided is unrecognized: it is no protobuf of a kind known here")
    })?;
    Ok(decode::Decoded { value, twice: decode::Twice::default() })
}

/// What bodies can be written in. Protobuf is for built-in kinds.
const BODIES: [&str; 3] = ["application/json", "application/yaml", protobuf::MEDIA];

/// Refuses a body in a form that nobody here reads.
pub(super) fn check_media(call: &Call) -> Result<()> {
    if BODIES.contains(&media(call).as_str()) { Ok(()) } else { Err(Status::unsupported_media_type(&BODIES)) }
}

/// In what a body is written: JSON, if nothing is said.
fn media(call: &Call) -> String {
    match call.content_type() {
        "" => BODIES[0].to_owned(),
        given => given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase(),
    }
}

fn text(call: &Call, kind: &Kind<'_>) -> Result<decode::Decoded> {
    let body = &call.body;
    match media(call).as_str() {
        "application/json" => decode::json(body).map_err(|error| form::unrecognized(&error, body, kind)),
        "application/yaml" => decode::yaml(body).map_err(|error| form::unrecognized_yaml(&error, body, kind.kind)),
        _ => Err(Status::unsupported_media_type(&BODIES)),
    }
}

/// Where an object says it is must be where the request is about.
pub(super) fn check_place(object: &mut Value, namespace: Option<&str>, name: Option<&str>) -> Result<()> {
    let own = object::meta(object, "namespace");
    if let Some(namespace) = namespace {
        if !own.is_empty() && own != namespace {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
        object::set(object, "namespace", namespace);
    } else if !own.is_empty() {
        // What is in no namespace need not be refused for saying that it is.
        object::meta_mut(object).remove("namespace");
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

/// Takes out fields that nobody knows, and tells them.
pub(super) fn prune(resource: &Resource, object: &mut Value) -> Vec<String> {
    let mut unknown = schema::prune(&resource.schema, object);
    if resource.role == Role::Definition {
        let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
        for (index, version) in versions.into_iter().flatten().enumerate() {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                form::prune_schema(schema, &path, &mut unknown);
            }
        }
        unknown.sort();
    }
    unknown
}

/// Reads the request's own words: secrets given as text become bytes.
pub(super) fn normalize(resource: &Resource, object: &mut Value) {
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
