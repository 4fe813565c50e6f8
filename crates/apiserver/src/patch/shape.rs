//! Whether what was sent has the form of a patch, in the words of Kubernetes' decoder, which names Go's types.

use serde_json::{Map, Value};

use crate::{
    serve::query::FieldValidation,
    status::{Result, Status},
};

pub(super) const OPERATIONS_MAX: usize = 10_000;

pub(crate) fn unlike(found: &Value, wanted: &str) -> String {
    let (shown, found) = (found, name(found));
    // A number that is none of the wanted ones is shown.
    let number = if found == "number" && (wanted.ends_with("int64") || wanted.ends_with("int32")) {
        format!(" {shown}")
    } else {
        String::new()
    };
    format!("json: cannot unmarshal {found}{number} into {wanted}")
}

/// What a value is, in a word.
pub(super) fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The operations of a JSON patch. Who wants unknown fields ignored has operations looked at only as they are done.
pub(super) fn list(patch: &Value, mode: FieldValidation) -> Result<&[Value]> {
    let ignore = mode == FieldValidation::Ignore;
    let refuse = |found: &Value, wanted: &str| {
        if ignore {
            Err(Status::bad_request(unlike(found, &format!("Go value of type jsonpatch.{wanted}"))))
        } else {
            Err(Status::bad_request(format!("error decoding patch: {}", unlike(found, wanted))))
        }
    };
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return refuse(other, if ignore { "Patch" } else { "Go value of type []handlers.jsonPatchOp" }),
    };
    for operation in operations.iter().filter(|operation| !operation.is_null()) {
        let Value::Object(members) = operation else {
            return refuse(operation, if ignore { "Operation" } else { "Go value of type handlers.jsonPatchOp" });
        };
        let texts = ["op", "path", "from"].into_iter().filter_map(|name| Some((name, members.get(name)?)));
        let mut wrong = texts.filter(|(_, found)| !ignore && !found.is_string() && !found.is_null());
        if let Some((name, found)) = wrong.next() {
            return refuse(found, &format!("Go struct field jsonPatchOp.{name} of type string"));
        }
    }
    match operations.len() {
        ..=OPERATIONS_MAX => Ok(operations),
        found => {
            let why = format!("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {found}");
            Err(Status::too_large(why))
        }
    }
}

/// A merge patch, or `None` for a list that takes the place of the object.
pub(super) fn map(patch: &Value, mode: FieldValidation) -> Result<Option<&Map<String, Value>>> {
    match patch {
        Value::Object(map) => Ok(Some(map)),
        Value::Array(_) if mode == FieldValidation::Ignore => Ok(None),
        Value::Null => Err(Status::bad_request("Invalid JSON Patch")),
        _ if mode == FieldValidation::Ignore => Err(Status::bad_request("Invalid JSON Patch")),
        other => {
            let why = unlike(other, "Go value of type map[string]interface {}");
            Err(Status::bad_request(format!("error decoding patch: {why}")))
        }
    }
}
