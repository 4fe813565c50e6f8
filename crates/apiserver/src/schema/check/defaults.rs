//! Defaults must be values that their schema takes.

use serde_json::{Value, json};

use super::{super::Schema, flag, map, one};
use crate::{
    field::{FieldError, child, join},
    form, rules, schema,
};

/// All that is wrong with defaults in a structural schema. Those below `additionalProperties` come into play with their entries only.
pub(super) fn check(json: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(json, &Surrounding { schema: json, way: Vec::new(), in_meta: false }, true, path, &mut errors);
    errors
}

/// The object around a value, of which it may be the metadata.
#[derive(Clone)]
struct Surrounding<'a> {
    schema: &'a Value,
    way: Vec<Option<&'a str>>,
    in_meta: bool,
}

impl<'a> Surrounding<'a> {
    fn at(&self, step: Option<&'a str>) -> Surrounding<'a> {
        let mut inner = self.clone();
        inner.in_meta |= self.way.is_empty() && matches!(step, Some("apiVersion" | "kind" | "metadata"));
        inner.way.push(step);
        inner
    }

    /// A whole object with this value in it.
    fn with(&self, value: &Value) -> Value {
        let wrap = |inner: Value, step: &Option<&str>| match step {
            Some(name) => json!({*name: inner}),
            None => json!([inner]),
        };
        let mut object = self.way.iter().rev().fold(value.clone(), wrap);
        for (key, value) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
            if object.get(key).is_none() {
                object[key] = value.into();
            }
        }
        object
    }
}

fn walk(json: &Value, around: &Surrounding<'_>, root: bool, path: &str, errors: &mut Vec<FieldError>) {
    let whole = root || flag(json, "x-kubernetes-embedded-resource");
    let around = if whole { &Surrounding { schema: json, way: Vec::new(), in_meta: false } } else { around };
    if let Some(default) = json.get("default").filter(|default| !default.is_null()) {
        let at = child(path, "default");
        if around.in_meta {
            check_in_meta(json, default, around, &at, errors)
        } else {
            check_value(json, default, whole, &at, errors)
        }
    }
    if let Some(items) = one(json, "items") {
        walk(items, &around.at(None), false, &child(path, "items"), errors);
    }
    for (name, property) in map(json, "properties") {
        walk(property, &around.at(Some(name)), false, &format!("{path}.properties[{name}]"), errors);
    }
}

fn check_value(json: &Value, default: &Value, whole: bool, at: &str, errors: &mut Vec<FieldError>) {
    let mut schema = Schema::parse(json);
    schema.embedded |= whole;
    let mut pruned = default.clone();
    // Of metadata what nobody knows will not be filled in, which is no reason to refuse it.
    schema::prune_embedded(&schema, &mut pruned);
    if !schema::prune_part(&schema, &mut pruned).is_empty() {
        errors.push(FieldError::invalid(at, default.clone(), "must not have unknown fields"));
    }
    if let Err(mut error) = form::embedded_fault(&schema, &mut default.clone()) {
        error.field = within(at, &error.field);
        errors.push(error);
        return;
    }
    let mut faults = Vec::new();
    schema::check_embedded(&schema, default, at, &mut faults);
    if faults.is_empty() {
        faults = check_rest(json, &schema, default, whole, at);
    }
    errors.extend(faults);
}

fn check_rest(json: &Value, schema: &Schema, default: &Value, whole: bool, at: &str) -> Vec<FieldError> {
    let faults = schema::validate(schema, default, at);
    if faults.is_empty() { rules::check_value(json, schema, default, whole, at) } else { faults }
}

/// Metadata is judged as that of the object it belongs to.
fn check_in_meta(json: &Value, default: &Value, around: &Surrounding<'_>, at: &str, errors: &mut Vec<FieldError>) {
    let mut schema = Schema::parse(around.schema);
    schema.embedded = true;
    let mut object = around.with(default);
    let fault = form::embedded_fault(&schema, &mut object).map_err(|error| error.to_string()).and_then(|()| {
        let mut faults = Vec::new();
        schema::check_embedded(&schema, &object, "", &mut faults);
        if faults.is_empty() { Ok(()) } else { Err(join(&faults)) }
    });
    match fault {
        Err(why) => {
            let detail = format!("must result in valid metadata: {why}");
            errors.push(FieldError::invalid(at, default.clone(), detail));
        }
        Ok(()) => errors.extend(check_rest(json, &Schema::parse(json), default, false, at)),
    }
}

fn within(at: &str, field: &str) -> String {
    if field.starts_with('[') { format!("{at}{field}") } else { child(at, field) }
}
