//! Old errors are not told again: who changes something else is not locked out by them.

use serde_json::Value;

use super::{Declaration, faults};
use crate::{Fault, FieldError};

/// Drops the errors that the old declaration had as well, wherever its gates and paths stood in their lists.
pub(super) fn drop_known(errors: &mut Vec<FieldError>, new: &Declaration<'_>, old: &Declaration<'_>) {
    if errors.is_empty() {
        return;
    }
    let known = faults(old);
    let known: Vec<Identity<'_>> = known.iter().map(|error| identity(error, old)).collect();
    errors.retain(|error| !known.contains(&identity(error, new)));
}

/// An error without positions: the gate's name, the field in it, what is wrong.
type Identity<'a> = (Option<&'a str>, String, Fault, Option<&'a Value>, &'a str);

fn identity<'a>(error: &'a FieldError, declaration: &Declaration<'a>) -> Identity<'a> {
    let field = error.field.strip_prefix(declaration.at).unwrap_or(&error.field);
    let gate = index_of_gate(field).and_then(|index| declaration.stanza.get("featureGates")?.get(index));
    let name = gate.and_then(|gate| gate.get("name")).and_then(Value::as_str);
    (name, without_indexes(field), error.fault, error.value.as_ref(), &error.detail)
}

fn index_of_gate(field: &str) -> Option<usize> {
    field.strip_prefix(".featureGates[")?.split(']').next()?.parse().ok()
}

fn without_indexes(field: &str) -> String {
    field.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect()
}
