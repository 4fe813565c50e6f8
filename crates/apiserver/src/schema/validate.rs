//! Values against a schema, with the texts of Kubernetes' validator.
//!
//! Every check of a value is made, also after one has failed, as there; see `kind` for types, `number` for bounds, `junction` for
//! `anyOf` and its like.

mod junction;
mod kind;
mod number;
mod path;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use self::path::Path;
use super::{Pair, Rules, Schema, format};
use crate::{
    field::{Fault, FieldError},
    gotext,
};

/// All that is wrong with `value`, whose place in the object is `at`: `""`, `status`, or a default in a schema.
pub(crate) fn validate(schema: &Schema, value: &Value, at: &str) -> Vec<FieldError> {
    once(Walk { at }.check(schema, value, None, &Path::ROOT).errors)
}

/// The same for a change: what is as it was is not judged again, so that a schema that has become stricter does not lock
/// its old objects. Without an old value all is new.
pub(crate) fn validate_update(schema: &Schema, new: &Value, old: Option<&Value>, at: &str) -> Vec<FieldError> {
    let pair = old.map(|old| Pair { schema, new, old });
    once(Walk { at }.walk(schema, new, pair, &Path::ROOT).errors)
}

/// What several schemas find wrong is told once.
fn once(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    let mut told = BTreeSet::new();
    errors.retain(|error| told.insert(error.to_string()));
    errors
}

struct Walk<'a> {
    at: &'a str,
}

/// What was found wrong, and how many checks there were: of several schemas that do not fit, the one that came furthest is told about.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    checks: usize,
}

impl Outcome {
    fn add(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    fn merge(&mut self, other: Outcome) {
        self.errors.extend(other.errors);
        self.checks += other.checks;
    }

    /// Takes up what one kind of check came to, which is a check itself.
    fn step(&mut self, other: Outcome) {
        self.merge(other);
        self.checks += 1;
    }
}

impl From<Option<FieldError>> for Outcome {
    fn from(error: Option<FieldError>) -> Outcome {
        Outcome { errors: error.into_iter().collect(), checks: 0 }
    }
}

impl Walk<'_> {
    fn walk(&self, schema: &Schema, value: &Value, pair: Option<Pair<'_>>, path: &Path<'_>) -> Outcome {
        let mut outcome = self.check(schema, value, pair, path);
        if !outcome.errors.is_empty() && pair.is_some_and(|pair| pair.is_equal()) {
            outcome.errors.clear();
        }
        outcome
    }

    fn check(&self, schema: &Schema, value: &Value, pair: Option<Pair<'_>>, path: &Path<'_>) -> Outcome {
        let (mut outcome, rules) = (Outcome::default(), &schema.rules);
        if value.is_null() {
            outcome.merge(self.kind(schema, value, path));
            outcome.merge(self.listed(rules, value, path).into());
            return outcome;
        }
        if schema.kind.is_some() || schema.int_or_string || rules.format.is_some() {
            outcome.step(self.kind(schema, value, path));
        }
        outcome.step(self.junctions(rules, value, pair, path));
        match value {
            Value::String(text) => {
                outcome.step(self.text(rules, text, path).into());
                self.form(rules, text, path, &mut outcome);
            }
            Value::Number(number) => outcome.step(self.number(schema, number, path)),
            Value::Array(list) => outcome.step(self.array(schema, list, pair, path)),
            _ => {}
        }
        outcome.step(self.listed(rules, value, path).into());
        if let Value::Object(map) = value {
            outcome.step(self.object(schema, map, pair, path));
        }
        outcome.checks += 1;
        outcome
    }

    fn invalid(&self, path: &Path<'_>, value: impl Into<Value>, detail: String) -> FieldError {
        FieldError::invalid(path.field(self.at), value, format!("{path} in body {detail}"))
    }

    /// Of an enumeration.
    fn listed(&self, rules: &Rules, value: &Value, path: &Path<'_>) -> Option<FieldError> {
        if rules.values.is_empty() || rules.values.iter().any(|listed| is_listed(listed, value)) {
            return None;
        }
        let text = |value: &Value| match value {
            Value::String(text) => gotext::quote(text),
            other => format!("\"{other}\""),
        };
        let supported: Vec<String> = rules.values.iter().map(text).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Some(FieldError::new(Fault::NotSupported, path.field(self.at), value.clone(), detail))
    }

    /// The first of its faults alone.
    fn text(&self, rules: &Rules, text: &str, path: &Path<'_>) -> Option<FieldError> {
        let chars = text.chars().count() as u64;
        if let Some(max) = rules.max_length.filter(|max| chars > *max) {
            let detail = format!("may not be more than {max} {}", if max == 1 { "byte" } else { "bytes" });
            return Some(FieldError::new(Fault::TooLong, path.field(self.at), text.into(), detail));
        }
        if let Some(min) = rules.min_length.filter(|min| chars < *min) {
            return Some(self.invalid(path, text, format!("should be at least {min} chars long")));
        }
        let (pattern, _) = rules.pattern.as_ref().filter(|(_, regex)| !regex.is_match(text))?;
        Some(self.invalid(path, text, format!("should match '{pattern}'")))
    }

    fn form(&self, rules: &Rules, text: &str, path: &Path<'_>, outcome: &mut Outcome) {
        let Some(name) = rules.format.as_ref().filter(|name| format::is_known(name)) else { return };
        let detail = || format!("{path} in body must be of type {name}: {}", gotext::quote(text));
        let wrong = || FieldError::new(Fault::TypeInvalid, path.field(self.at), text.into(), detail());
        outcome.step((!format::fits(name, text)).then(wrong).into());
    }

    fn array(&self, schema: &Schema, list: &[Value], pair: Option<Pair<'_>>, path: &Path<'_>) -> Outcome {
        let (mut outcome, rules, found) = (Outcome::default(), &schema.rules, list.len() as u64);
        if let Some(items) = &schema.items {
            let pairs = pair.map(|pair| pair.items()).unwrap_or_default();
            for (index, item) in list.iter().enumerate() {
                let pair = pairs.get(index).copied().flatten();
                outcome.merge(self.walk(items, item, pair, &path.index(index)));
            }
        }
        if let Some(min) = rules.min_items.filter(|min| found < *min) {
            outcome.add(self.invalid(path, found, format!("should have at least {min} items")));
        }
        if let Some(max) = rules.max_items.filter(|max| found > *max) {
            outcome.add(self.too_many(path, found, max));
        }
        if rules.unique_items && (1..list.len()).any(|index| list[..index].contains(&list[index])) {
            outcome.add(self.invalid(path, json!(list), "shouldn't contain duplicates".to_owned()));
        }
        outcome.checks += 1;
        outcome
    }

    fn object(&self, schema: &Schema, map: &Map<String, Value>, pair: Option<Pair<'_>>, path: &Path<'_>) -> Outcome {
        let (mut outcome, rules, found) = (Outcome::default(), &schema.rules, map.len() as u64);
        if let Some(min) = rules.min_properties.filter(|min| found < *min) {
            outcome.add(self.invalid(path, found, format!("should have at least {min} properties")));
        }
        if let Some(max) = rules.max_properties.filter(|max| found > *max) {
            outcome.add(self.too_many(path, found, max));
        }
        for (name, value) in map {
            let (inner, place) = match (schema.properties.get(name), &schema.additional) {
                (Some(inner), _) => (inner, path.property(name)),
                (None, Some(inner)) => (&**inner, path.entry(name)),
                (None, None) => continue,
            };
            // What the whole object is, is the same on both sides and says nothing about a change.
            let hidden = path.is_root() && matches!(name.as_str(), "apiVersion" | "kind");
            let pair = pair.filter(|_| !hidden).and_then(|pair| pair.key(name));
            outcome.merge(self.walk(inner, value, pair, &place));
        }
        for name in rules.required.iter().filter(|name| !map.contains_key(*name)) {
            outcome.add(FieldError::required(path.entry(name).field(self.at), ""));
        }
        outcome
    }

    fn too_many(&self, path: &Path<'_>, found: u64, max: u64) -> FieldError {
        let detail = format!("must have at most {max} {}", if max == 1 { "item" } else { "items" });
        FieldError::new(Fault::TooMany, path.field(self.at), found.into(), detail)
    }
}

/// Numbers are taken for the kind of number that is listed, which cuts off fractions. Null is never listed.
fn is_listed(listed: &Value, value: &Value) -> bool {
    match (listed, value) {
        (Value::Null, _) => false,
        (Value::Number(listed), Value::Number(value)) => match listed.as_i64() {
            Some(listed) => value.as_i64().or(value.as_f64().map(|value| value as i64)) == Some(listed),
            None => listed.as_f64() == value.as_f64(),
        },
        _ => listed == value,
    }
}

#[cfg(test)]
mod tests;
