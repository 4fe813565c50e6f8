//! Values against a schema, with the texts of Kubernetes' validator.

use serde_json::{Number, Value, json};

use super::{Pair, Rules, Schema, format};
use crate::field::{Fault, FieldError, child};

/// All that is wrong with `value`, whose place in the object is `path`.
pub fn validate(schema: &Schema, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, value, None, path, &mut errors);
    errors
}

/// The same for a change of a whole object: what is as it was is not judged again, so that a schema that has become stricter
/// does not lock its old objects.
pub fn validate_update(schema: &Schema, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, new, Some(Pair { schema, new, old }), "", &mut errors);
    errors
}

fn walk(schema: &Schema, value: &Value, pair: Option<Pair<'_>>, path: &str, errors: &mut Vec<FieldError>) {
    let before = errors.len();
    check(schema, value, pair, path, errors);
    if errors.len() > before && pair.is_some_and(|pair| pair.is_equal()) {
        errors.truncate(before);
    }
}

fn check(schema: &Schema, value: &Value, pair: Option<Pair<'_>>, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() && schema.nullable {
        return;
    }
    if let Some(expected) = wrong_type(schema, value) {
        let found = type_name(value);
        let detail = format!("{path} in body must be of type {expected}: \"{found}\"");
        errors.push(FieldError::new(Fault::TypeInvalid, path, found.into(), detail));
        if !value.is_null() {
            check_values(&schema.rules, value, path, errors);
        }
        return;
    }
    let rules = &schema.rules;
    check_values(rules, value, path, errors);
    match value {
        Value::String(text) => check_string(rules, text, path, errors),
        Value::Number(number) => check_number(rules, number, path, errors),
        Value::Array(list) => check_array(schema, list, pair, path, errors),
        Value::Object(map) => check_object(schema, map, pair, path, errors),
        _ => {}
    }
    check_junctors(rules, value, path, errors);
}

/// The type that was wanted, if the value has another.
fn wrong_type<'a>(schema: &'a Schema, value: &Value) -> Option<&'a str> {
    if schema.int_or_string {
        let fits = value.is_string() || is_integer(value);
        return (!fits).then_some("integer or string");
    }
    let expected = schema.kind.as_deref()?;
    let fits = match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => is_integer(value),
        _ => true,
    };
    (!fits).then_some(expected)
}

fn is_integer(value: &Value) -> bool {
    // What is larger is a number with a fraction to Kubernetes, and to clients with types of their own.
    value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() < 9.0e18)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
    }
}

fn check_values(rules: &Rules, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !rules.values.is_empty() && !rules.values.contains(value) {
        errors.push(unsupported(rules, value, path));
    }
}

fn unsupported(rules: &Rules, value: &Value, path: &str) -> FieldError {
    let quoted = rules.values.iter().map(|value| match value {
        Value::String(text) => format!("{text:?}"),
        other => format!("\"{other}\""),
    });
    let detail = format!("supported values: {}", quoted.collect::<Vec<_>>().join(", "));
    FieldError::new(Fault::NotSupported, path, value.clone(), detail)
}

fn check_string(rules: &Rules, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    let chars = text.chars().count() as u64;
    // The first of these is told alone.
    if let Some(max) = rules.max_length.filter(|max| chars > *max) {
        errors.push(FieldError::new(Fault::TooLong, path, text.into(), format!("may not be more than {max} bytes")));
    } else if let Some(min) = rules.min_length.filter(|min| chars < *min) {
        let detail = format!("{path} in body should be at least {min} chars long");
        errors.push(FieldError::invalid(path, text, detail));
    } else if let Some((pattern, regex)) = &rules.pattern
        && !regex.is_match(text)
    {
        errors.push(FieldError::invalid(path, text, format!("{path} in body should match '{pattern}'")));
    }
    if let Some(format) = rules.format.as_ref().filter(|format| !format::fits(format, text)) {
        let detail = format!("{path} in body must be of type {format}: {text:?}");
        errors.push(FieldError::invalid(path, text, detail));
    }
}

fn check_number(rules: &Rules, number: &Number, path: &str, errors: &mut Vec<FieldError>) {
    let Some(found) = number.as_f64() else { return };
    let value = || Value::Number(number.clone());
    if let Some(max) = rules.maximum {
        let (bad, words) = match rules.exclusive_maximum {
            true => (found >= max, "less than"),
            false => (found > max, "less than or equal to"),
        };
        if bad {
            errors.push(FieldError::invalid(path, value(), format!("{path} in body should be {words} {max}")));
        }
    }
    if let Some(min) = rules.minimum {
        let (bad, words) = match rules.exclusive_minimum {
            true => (found <= min, "greater than"),
            false => (found < min, "greater than or equal to"),
        };
        if bad {
            errors.push(FieldError::invalid(path, value(), format!("{path} in body should be {words} {min}")));
        }
    }
    if let Some(of) = rules.multiple_of.filter(|of| *of > 0.0 && (found / of).fract() != 0.0) {
        errors.push(FieldError::invalid(path, value(), format!("{path} in body should be a multiple of {of}")));
    }
    if let Some((kind, low, high)) = bounds(rules.format.as_deref())
        && !(low..=high).contains(&found)
    {
        let detail = format!("{path} in body must be of type {kind}: \"{number}\"");
        errors.push(FieldError::invalid(path, value(), detail));
    }
}

fn bounds(format: Option<&str>) -> Option<(&str, f64, f64)> {
    match format? {
        "int32" => Some(("int32", f64::from(i32::MIN), f64::from(i32::MAX))),
        "int64" => Some(("int64", i64::MIN as f64, i64::MAX as f64)),
        _ => None,
    }
}

fn check_array(schema: &Schema, list: &[Value], pair: Option<Pair<'_>>, path: &str, errors: &mut Vec<FieldError>) {
    let (rules, found) = (&schema.rules, list.len() as u64);
    if let Some(max) = rules.max_items.filter(|max| found > *max) {
        errors.push(FieldError::new(Fault::TooMany, path, found.into(), format!("must have at most {max} items")));
    }
    if let Some(min) = rules.min_items.filter(|min| found < *min) {
        let detail = format!("{path} in body should have at least {min} items");
        errors.push(FieldError::invalid(path, found, detail));
    }
    if rules.unique_items && (1..list.len()).any(|index| list[..index].contains(&list[index])) {
        errors.push(FieldError::invalid(path, json!(list), format!("{path} in body shouldn't contain duplicates")));
    }
    if let Some(items) = &schema.items {
        for (index, item) in list.iter().enumerate() {
            let pair = pair.and_then(|pair| pair.index(index));
            walk(items, item, pair, &format!("{path}[{index}]"), errors);
        }
    }
}

fn check_object(
    schema: &Schema,
    map: &serde_json::Map<String, Value>,
    pair: Option<Pair<'_>>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let (rules, found) = (&schema.rules, map.len() as u64);
    for name in rules.required.iter().filter(|name| !map.contains_key(*name)) {
        errors.push(FieldError::required(child(path, name), ""));
    }
    if let Some(max) = rules.max_properties.filter(|max| found > *max) {
        errors.push(FieldError::new(Fault::TooMany, path, found.into(), format!("must have at most {max} items")));
    }
    if let Some(min) = rules.min_properties.filter(|min| found < *min) {
        let detail = format!("{path} in body should have at least {min} properties");
        errors.push(FieldError::invalid(path, found, detail));
    }
    if schema.embedded {
        check_embedded(map, path, errors);
    }
    for (name, value) in map {
        if let Some(inner) = schema.properties.get(name).or(schema.additional.as_deref()) {
            // What the whole object is, is the same on both sides and says nothing about a change.
            let hidden = path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind");
            let pair = pair.filter(|_| !hidden).and_then(|pair| pair.key(name));
            walk(inner, value, pair, &child(path, name), errors);
        }
    }
}

/// An object within an object says what it is.
fn check_embedded(map: &serde_json::Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if map.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
            errors.push(FieldError::required(child(path, name), "must not be empty"));
        }
    }
}

fn check_junctors(rules: &Rules, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let fits = |schema: &Schema| validate(schema, value, path).is_empty();
    for schema in &rules.all_of {
        walk(schema, value, None, path, errors);
    }
    let mut refuse = |text: String| errors.push(FieldError::invalid("<nil>", "", text));
    if !rules.any_of.is_empty() && !rules.any_of.iter().any(fits) {
        refuse(format!("\"{path}\" must validate at least one schema (anyOf)"));
    }
    if !rules.one_of.is_empty() {
        let found = match rules.one_of.iter().filter(|schema| fits(schema)).count() {
            0 => Some("Found none valid".to_owned()),
            1 => None,
            many => Some(format!("Found {many} valid alternatives")),
        };
        if let Some(found) = found {
            refuse(format!("\"{path}\" must validate one and only one schema (oneOf). {found}"));
        }
    }
    if rules.not.as_deref().is_some_and(fits) {
        refuse(format!("\"{path}\" must not validate the schema (not)"));
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(json!({"type": "integer"}), json!("x") => r#"p: Invalid value: "string": p in body must be of type integer: "string""#; "wrong type")]
    #[test_case(json!({"type": "integer"}), json!(1.5) => r#"p: Invalid value: "number": p in body must be of type integer: "number""#; "fraction")]
    #[test_case(json!({"type": "integer"}), json!(2.0) => ""; "whole float")]
    #[test_case(json!({"type": "integer", "maximum": 10}), json!(11) => "p: Invalid value: 11: p in body should be less than or equal to 10"; "maximum")]
    #[test_case(json!({"type": "integer", "minimum": 1}), json!(0) => "p: Invalid value: 0: p in body should be greater than or equal to 1"; "minimum")]
    #[test_case(json!({"type": "string", "pattern": "^\\d+$"}), json!("a") => r#"p: Invalid value: "a": p in body should match '^\d+$'"#; "pattern")]
    #[test_case(json!({"type": "string", "enum": ["a", "b"]}), json!("c") => r#"p: Unsupported value: "c": supported values: "a", "b""#; "enumeration")]
    #[test_case(json!({"type": "string", "maxLength": 2}), json!("abc") => "p: Too long: may not be more than 2 bytes"; "too long")]
    #[test_case(json!({"type": "string", "minLength": 1}), json!("") => r#"p: Invalid value: "": p in body should be at least 1 chars long"#; "too short")]
    #[test_case(json!({"type": "string", "format": "date-time"}), json!("today") => r#"p: Invalid value: "today": p in body must be of type date-time: "today""#; "format")]
    #[test_case(json!({"type": "string", "format": "no-such"}), json!("x") => ""; "unknown format")]
    #[test_case(json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}), json!(["a", "b"]) => "p: Too many: 2: must have at most 1 items"; "too many")]
    #[test_case(json!({"type": "array", "items": {"type": "string"}}), json!(["a", 1]) => r#"p[1]: Invalid value: "integer": p[1] in body must be of type string: "integer""#; "item")]
    #[test_case(json!({"type": "object", "required": ["a"]}), json!({}) => "p.a: Required value"; "required")]
    #[test_case(json!({"type": "string"}), json!(null) => r#"p: Invalid value: "null": p in body must be of type string: "null""#; "null")]
    #[test_case(json!({"type": "string", "nullable": true}), json!(null) => ""; "nullable")]
    #[test_case(json!({"x-kubernetes-int-or-string": true}), json!("50%") => ""; "int or string")]
    #[test_case(json!({"x-kubernetes-int-or-string": true}), json!(true) => r#"p: Invalid value: "boolean": p in body must be of type integer or string: "boolean""#; "neither")]
    #[test_case(json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), json!({}) => r#"<nil>: Invalid value: "": "p" must validate one and only one schema (oneOf). Found none valid"#; "one of")]
    #[test_case(json!({"type": "object", "not": {"required": ["a"]}}), json!({"a": 1}) => r#"<nil>: Invalid value: "": "p" must not validate the schema (not)"#; "not")]
    #[test_case(json!({"type": "integer", "format": "int32"}), json!(3000000000u64) => r#"p: Invalid value: 3000000000: p in body must be of type int32: "3000000000""#; "out of range")]
    #[test_case(json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}), json!({"kind": "A"}) => "p.apiVersion: Required value: must not be empty"; "embedded")]
    fn texts(schema: Value, value: Value) -> String {
        let errors = validate(&Schema::parse(&schema), &value, "p");
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }
}
