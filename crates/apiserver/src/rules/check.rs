//! What is wrong with the rules of a definition.

use serde_json::Value;

use super::{Tree, compile, evaluate, fieldpath, types};
use crate::{
    cel::Type,
    field::{FieldError, child},
    gotext,
    schema::Schema,
};

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// All that is wrong with rules anywhere in a schema that is structural, but not with those that have one of `faults` at or below them:
/// what is said of these would go with the faults.
pub(crate) fn check(schema: &Value, path: &str, faults: &[FieldError]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let place = Place { rules: schema, node: schema, root: true, uncorrelatable: None, faults };
    walk(&place, path, &mut errors);
    errors
}

struct Place<'a> {
    rules: &'a Value,
    /// Where the types stand, outside of `allOf`.
    node: &'a Value,
    root: bool,
    /// The outermost list whose entries have no old value.
    uncorrelatable: Option<&'a str>,
    faults: &'a [FieldError],
}

impl Place<'_> {
    fn is_sound(&self, path: &str) -> bool {
        let below =
            |field: &str| field.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        !self.faults.iter().any(|error| below(&error.field))
    }
}

fn walk(place: &Place<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let (rules, node) = (place.rules, place.node);
    let own = if place.is_sound(path) { list(&rules["x-kubernetes-validations"]) } else { &[] };
    // Made once for all rules of the node, as it may be large.
    let kind = if own.is_empty() { None } else { types::of(node, place.root) };
    for (index, rule) in own.iter().enumerate() {
        let at = format!("{path}.x-kubernetes-validations[{index}]");
        check_expressions(rule, kind.as_ref(), place, &at, errors);
    }
    let inner = |rules, node| Place { rules, node, root: types::is_embedded(node), ..*place };
    for (name, property) in rules["properties"].as_object().into_iter().flatten() {
        if let Some(node) = node["properties"].get(name) {
            walk(&inner(property, node), &format!("{path}.properties[{name}]"), errors);
        }
    }
    if rules["additionalProperties"].is_object() && node["additionalProperties"].is_object() {
        let at = child(path, "additionalProperties");
        walk(&inner(&rules["additionalProperties"], &node["additionalProperties"]), &at, errors);
    }
    if rules["items"].is_object() && node["items"].is_object() {
        let keyed = node["x-kubernetes-list-type"] == "map";
        let mut items = inner(&rules["items"], &node["items"]);
        items.uncorrelatable = items.uncorrelatable.or((!keyed).then_some(path));
        walk(&items, &child(path, "items"), errors);
    }
    for (index, nested) in list(&rules["allOf"]).iter().enumerate() {
        walk(&Place { rules: nested, ..*place }, &format!("{path}.allOf[{index}]"), errors);
    }
}

/// What rules say of a default: as one that was there before, and as one that is new.
pub(crate) fn check_value(node: &Value, schema: &Schema, default: &Value, root: bool, at: &str) -> Vec<FieldError> {
    let Some(tree) = Tree::of(node, root) else { return Vec::new() };
    let judge = |old| evaluate::validate(&tree, schema, default, old).errors;
    let mut errors = judge(Some(default));
    if errors.is_empty() {
        errors = judge(None);
    }
    for error in &mut errors {
        error.field = match error.field.as_str() {
            "<nil>" => at.to_owned(),
            key if key.starts_with('[') => format!("{at}{key}"),
            name => child(at, name),
        };
    }
    errors
}

/// What is wrong with a rule before its expressions are read.
pub(crate) fn check_form(rule: &Value, node: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let text = |key: &str| rule[key].as_str().unwrap_or_default();
    let (source, message) = (text("rule").trim(), text("message"));
    let broken = |text: &str| text.contains(['\n', '\r']);
    if source.is_empty() {
        errors.push(FieldError::required(child(at, "rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        errors.push(FieldError::invalid(child(at, "message"), message, "must be non-empty if specified"));
    } else if broken(message.trim()) {
        errors.push(FieldError::invalid(child(at, "message"), message, "must not contain line breaks"));
    } else if broken(source) && message.trim().is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(child(at, "message"), detail));
    }
    if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(child(at, "messageExpression"), detail));
    }
    if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
        errors.push(FieldError::not_supported(child(at, "reason"), reason, &REASONS));
    }
    check_path(text("fieldPath"), node, &child(at, "fieldPath"), errors);
}

fn check_path(path: &str, node: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if path.is_empty() {
        return;
    }
    if path.trim().is_empty() {
        errors.push(FieldError::invalid(at, path, "must be non-empty if specified"));
    }
    if path.contains(['\n', '\r']) {
        errors.push(FieldError::invalid(at, path, "must not contain line breaks"));
    }
    if fieldpath::resolve(path, node, true).is_err() {
        errors.push(FieldError::invalid(at, path, "must be a valid path"));
    }
}

fn check_expressions(rule: &Value, kind: Option<&Type>, place: &Place<'_>, at: &str, errors: &mut Vec<FieldError>) {
    let text = |key: &str| rule[key].as_str().unwrap_or_default();
    let (source, optional_old) = (text("rule"), rule["optionalOldSelf"] == true);
    let Some(kind) = kind else {
        let detail = "rules cannot be used on a field whose type is not known to them";
        errors.push(FieldError::forbidden(child(at, "rule"), detail));
        return;
    };
    match compile::program(source, kind, optional_old) {
        Err(why) => errors.push(FieldError::invalid_as(child(at, "rule"), &shown(rule), why)),
        Ok(program) if program.uses("oldSelf") => {
            if let Some(list) = place.uncorrelatable {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                errors.push(FieldError::invalid(child(at, "rule"), source, detail));
            }
        }
        Ok(_) if rule.get("optionalOldSelf").is_some_and(|value| !value.is_null()) => {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(child(at, "optionalOldSelf"), optional_old, detail));
        }
        Ok(_) => {}
    }
    check_message(rule, kind, text("messageExpression"), optional_old, at, errors);
}

fn check_message(rule: &Value, kind: &Type, source: &str, optional_old: bool, at: &str, errors: &mut Vec<FieldError>) {
    if source.is_empty() {
        return;
    }
    if let Err(why) = compile::message(source, kind, optional_old) {
        errors.push(FieldError::invalid_as(child(at, "messageExpression"), &shown(rule), why));
    }
}

/// A rule as Kubernetes shows it: all fields, in its order.
fn shown(rule: &Value) -> String {
    let text = |key: &str| gotext::json(&rule[key].as_str().unwrap_or_default().into());
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        rule["reason"],
        text("fieldPath"),
        rule["optionalOldSelf"]
    )
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!({"rule": "self.a > 0"}) => ""; "sound")]
    #[test_case(json!({"rule": ""}) => "s.x-kubernetes-validations[0].rule: Required value: rule is not specified"; "empty")]
    #[test_case(json!({"rule": "self.b > 0"}) => "s.x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.b \\u003e 0\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b > 0\n | ....^"; "unknown field")]
    #[test_case(json!({"rule": "self.a"}) => "s.x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.a\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: cel expression must evaluate to a bool"; "no verdict")]
    #[test_case(json!({"rule": "true", "message": "a\nb"}) => "s.x-kubernetes-validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks"; "broken message")]
    #[test_case(json!({"rule": "self.a >\n 0"}) => "s.x-kubernetes-validations[0].message: Required value: message must be specified if rule contains line breaks"; "broken rule")]
    #[test_case(json!({"rule": "true", "reason": "Because"}) => "s.x-kubernetes-validations[0].reason: Unsupported value: \"Because\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""; "reason")]
    #[test_case(json!({"rule": "true", "fieldPath": ".none"}) => "s.x-kubernetes-validations[0].fieldPath: Invalid value: \".none\": must be a valid path"; "field path")]
    #[test_case(json!({"rule": "true", "optionalOldSelf": true}) => "s.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"; "optional without old")]
    #[test_case(json!({"rule": "true", "messageExpression": "self.a"}) => "s.x-kubernetes-validations[0].messageExpression: Invalid value: {\"Rule\":\"true\",\"Message\":\"\",\"MessageExpression\":\"self.a\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: messageExpression must evaluate to a string"; "message of another type")]
    fn says(rule: Value) -> String {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [rule]});
        let errors = crate::schema::check(&schema, "s", false);
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }

    #[test]
    fn a_default_keeps_the_rules() {
        let schema = |value: u32| {
            json!({"type": "object", "properties": {"spec": {"type": "object", "default": {"n": value},
                "x-kubernetes-validations": [{"rule": "self.n < 5"}],
                "properties": {"n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self != 7"}]}}}}})
        };
        assert!(crate::schema::check(&schema(1), "s", false).is_empty());
        let said = crate::field::join(&crate::schema::check(&schema(7), "s", false));
        assert_eq!(
            said,
            "[s.properties[spec].default: Invalid value: failed rule: self.n < 5, \
             s.properties[spec].default.n: Invalid value: 7: failed rule: self != 7]"
        );
    }

    #[test]
    fn items_of_a_plain_list_have_no_old_value() {
        let schema = |kind: &str| {
            let keys = if kind == "map" { json!(["k"]) } else { json!([]) };
            json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": kind,
                "x-kubernetes-list-map-keys": keys, "items": {"type": "object", "required": ["k"],
                "properties": {"k": {"type": "string"}}, "x-kubernetes-validations": [{"rule": "self.k == oldSelf.k"}]}}}})
        };
        let said = crate::field::join(&crate::schema::check(&schema("atomic"), "s", false));
        assert_eq!(
            said,
            "s.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: \"self.k == oldSelf.k\": oldSelf cannot be \
             used on the uncorrelatable portion of the schema within s.properties[l]"
        );
        assert!(crate::schema::check(&schema("map"), "s", false).is_empty());
    }
}
