//! The type of a value.

use serde_json::{Number, Value};

use super::{Outcome, Path, Schema, Walk};
use crate::{
    field::{Fault, FieldError},
    gotext,
};

/// What is beyond is no whole number to JSON.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
/// How far, relative to its size, a number may be from a whole one.
const EPSILON: f64 = 1e-9;

impl Walk<'_> {
    pub(super) fn kind(&self, schema: &Schema, value: &Value, path: &Path<'_>) -> Outcome {
        let Some((wanted, found)) = wrong_kind(schema, value) else {
            return Outcome { checks: 1, ..Outcome::default() };
        };
        let detail = format!("{path} in body must be of type {wanted}: {}", gotext::quote(found));
        Some(FieldError::new(Fault::TypeInvalid, path.field(self.at), found.into(), detail)).into()
    }
}

/// The type that was wanted and the one that was found. Where a format is wanted, it is told in place of the type.
fn wrong_kind<'a>(schema: &'a Schema, value: &Value) -> Option<(&'a str, &'static str)> {
    let wanted = wanted(schema);
    if value.is_null() {
        return (!wanted.is_empty() && !schema.nullable).then(|| (joined(schema), "null"));
    }
    let (found, form) = found(value);
    if wanted.contains(&found) || (found == "integer" && wanted.contains(&"number")) {
        return None;
    }
    if found == "number" && wanted.contains(&"integer") && value.as_f64().is_some_and(is_whole) {
        return None;
    }
    let format = schema.rules.format.as_deref();
    match (format, value) {
        (Some(format), Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            (form != format).then_some((format, form))
        }
        (Some(_), Value::String(_)) if !wanted.iter().any(|kind| matches!(*kind, "number" | "integer")) => None,
        _ => (!wanted.is_empty()).then(|| (joined(schema), found)),
    }
}

fn wanted(schema: &Schema) -> Vec<&str> {
    if schema.int_or_string { vec!["integer", "string"] } else { schema.kind.as_deref().into_iter().collect() }
}

fn joined(schema: &Schema) -> &str {
    if schema.int_or_string { "integer,string" } else { schema.kind.as_deref().unwrap_or_default() }
}

/// The type of a value, and the format of numbers.
fn found(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) if is_integer(number) => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
    }
}

/// What is larger is a number with a fraction to Kubernetes, and to clients with types of their own.
pub(super) fn is_integer(number: &Number) -> bool {
    number.is_i64()
}

pub(super) fn is_whole(number: f64) -> bool {
    let nearest = number.trunc();
    number.abs() <= WHOLE_MAX
        && (number == nearest || (number - nearest).abs() / (number.abs() + nearest.abs()) < EPSILON)
}
