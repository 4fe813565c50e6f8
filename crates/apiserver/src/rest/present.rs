//! Objects and lists in the form a client asked for.

use serde_json::{Value, json};

use super::Call;
use crate::{
    resource::Resource,
    serve::accept::Form,
    status::{Result, Status},
    table::{self, Column, Include},
};

pub fn include(call: &Call) -> Result<Include> {
    match call.query.get("includeObject") {
        None | Some("Metadata") => Ok(Include::Metadata),
        Some("None") => Ok(Include::None),
        Some("Object") => Ok(Include::Object),
        Some(other) => Err(Status::bad_request(format!("unrecognized includeObject value: {other:?}"))),
    }
}

pub fn one(resource: &Resource, object: Value, call: &Call) -> Result<Value> {
    shown(&resource.columns(), object, call)
}

pub fn shown(columns: &[Column], object: Value, call: &Call) -> Result<Value> {
    Ok(match call.form {
        Form::Object => object,
        Form::Metadata => table::partial(&object),
        Form::Table => {
            let metadata = table::version_of(&object);
            table::table(columns, &[object], include(call)?, metadata, true)
        }
    })
}

pub fn many(resource: &Resource, objects: Vec<Value>, metadata: Value, call: &Call) -> Result<Value> {
    Ok(match call.form {
        Form::Object => json!({
            "kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": metadata, "items": objects,
        }),
        Form::Metadata => {
            let items: Vec<Value> = objects.iter().map(table::partial).collect();
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items})
        }
        Form::Table => table::table(&resource.columns(), &objects, include(call)?, metadata, true),
    })
}
