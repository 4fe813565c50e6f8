//! Objects and lists in the form a client asked for.

use serde_json::{Value, json};

use super::Call;
use crate::{
    field::FieldError,
    object,
    resource::Resource,
    serve::accept::Form,
    status::{Result, Status},
    table::{self, Column, Include, Look},
};

/// How tables look, where they are wanted.
pub(super) fn look(call: &Call) -> Result<Option<Look>> {
    let Form::Table(meta) = call.form else { return Ok(None) };
    let include = match call.query.get("includeObject") {
        None | Some("Metadata") => Include::Metadata,
        Some("None") => Include::None,
        Some("Object") => Include::Object,
        Some(other) => {
            let fault = FieldError::invalid("includeObject", other, "must be 'Metadata', 'Object', 'None', or empty");
            return Err(Status::bad_request(format!("Unable to convert to Table as requested: {fault}")));
        }
    };
    Ok(Some(Look { include, meta, headers: true }))
}

pub(super) fn one(resource: &Resource, object: Value, call: &Call) -> Result<Value> {
    shown(&resource.columns, object, call)
}

pub(super) fn shown(columns: &[Column], object: Value, call: &Call) -> Result<Value> {
    Ok(match (call.form, look(call)?) {
        (_, Some(look)) => {
            let metadata = table::version_of(&object);
            table::table(columns, vec![object], metadata, look)
        }
        (Form::Metadata(meta), _) => table::partial(object, meta),
        _ => object,
    })
}

/// Lists of what Kubernetes has no type for say that nothing follows.
pub(super) fn end(resource: &Resource, metadata: &mut Value) {
    if resource.custom().is_some() && metadata["continue"].is_null() {
        metadata["continue"] = "".into();
    }
}

pub(super) fn many(resource: &Resource, mut objects: Vec<Value>, mut metadata: Value, call: &Call) -> Result<Value> {
    Ok(match (call.form, look(call)?) {
        (_, Some(look)) => table::table(&resource.columns, objects, metadata, look),
        (Form::Metadata(meta), _) => {
            let mut list =
                json!({"kind": "PartialObjectMetadataList", "apiVersion": meta.api_version(), "metadata": metadata});
            list["items"] = objects.into_iter().map(|object| table::partial(object, meta)).collect();
            list
        }
        _ => {
            end(resource, &mut metadata);
            if resource.custom().is_none() {
                objects.iter_mut().for_each(object::untype);
            }
            let mut list =
                json!({"kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": metadata});
            list["items"] = Value::Array(objects);
            list
        }
    })
}
