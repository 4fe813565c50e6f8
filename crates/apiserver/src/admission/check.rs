//! What is wrong with a policy or a binding that is written, in Kubernetes' words.

use std::collections::BTreeSet;

use serde_json::Value;

use super::code::{self, items, text};
use crate::{
    cel::RESERVED,
    field::{Fault, FieldError, child},
    name, object, selector,
};

const CONDITIONS_MAX: usize = 64;
const ANNOTATIONS_MAX: usize = 20;
const ANNOTATION_BYTES_MAX: usize = 5 * 1024;

type Errors = Vec<FieldError>;

pub(crate) fn check_policy(policy: &Value) -> Errors {
    let spec = &policy["spec"];
    let mut errors = Errors::new();
    one_of(spec, "failurePolicy", "spec", &["Fail", "Ignore"], &mut errors);
    if spec["paramKind"].is_object() {
        errors.push(FieldError::forbidden("spec.paramKind", code::NO_PARAMS));
    }
    if !spec["matchConstraints"].is_object() {
        errors.push(FieldError::required("spec.matchConstraints", ""))
    } else {
        check_resources(&spec["matchConstraints"], "spec.matchConstraints", &mut errors);
        if items(&spec["matchConstraints"], "resourceRules").next().is_none() {
            errors.push(FieldError::required("spec.matchConstraints.resourceRules", ""));
        }
    }
    check_conditions(spec, &mut errors);
    check_variables(spec, &mut errors);
    if items(spec, "validations").chain(items(spec, "auditAnnotations")).next().is_none() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.extend(["spec.validations", "spec.auditAnnotations"].map(|at| FieldError::required(at, why)));
    }
    items(spec, "validations").for_each(|(index, validation)| check_validation(validation, index, &mut errors));
    check_annotations(object::meta(policy, "name"), spec, &mut errors);
    code::compile(spec, &mut errors);
    errors
}

pub(crate) fn check_binding(binding: &Value) -> Errors {
    let spec = &binding["spec"];
    let mut errors = Errors::new();
    match text(spec, "policyName") {
        "" => errors.push(FieldError::required("spec.policyName", "")),
        policy => {
            let checked = name::check_subdomain(policy);
            errors.extend(checked.err().map(|why| FieldError::invalid("spec.policyName", policy, why)));
        }
    }
    if spec["paramRef"].is_object() {
        errors.push(FieldError::forbidden("spec.paramRef", code::NO_PARAMS));
    }
    if spec["matchResources"].is_object() {
        check_resources(&spec["matchResources"], "spec.matchResources", &mut errors);
    }
    check_actions(spec, &mut errors);
    errors
}

fn check_actions(spec: &Value, errors: &mut Errors) {
    let at = "spec.validationActions";
    let mut seen = BTreeSet::new();
    for (index, action) in items(spec, "validationActions") {
        let (at, action) = (format!("{at}[{index}]"), action.as_str().unwrap_or_default());
        if !["Audit", "Deny", "Warn"].contains(&action) {
            errors.push(FieldError::not_supported(&at, action, &["Audit", "Deny", "Warn"]));
        }
        if !seen.insert(action) {
            errors.push(FieldError::duplicate(at, action));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response \
            and headers serves no purpose)";
        errors.push(FieldError::invalid(at, spec["validationActions"].clone(), why));
    }
    if seen.is_empty() {
        errors.push(FieldError::required(at, "at least one validation action is required"));
    }
}

fn check_resources(resources: &Value, at: &str, errors: &mut Errors) {
    one_of(resources, "matchPolicy", at, &["Equivalent", "Exact"], errors);
    for key in ["namespaceSelector", "objectSelector"] {
        errors.extend(selector::faults(&resources[key], &child(at, key)));
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        items(resources, key).for_each(|(index, rule)| check_rule(rule, &format!("{at}.{key}[{index}]"), errors));
    }
}

fn check_rule(rule: &Value, at: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, name) in items(rule, "resourceNames") {
        let (at, name) = (format!("{at}.resourceNames[{index}]"), name.as_str().unwrap_or_default());
        errors.extend(name::check_segment(name).err().map(|why| FieldError::invalid(&at, name, why)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(at, name));
        }
    }
    let lists = [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")];
    for (key, what) in lists {
        let all: Vec<&str> = items(rule, key).filter_map(|(_, item)| item.as_str()).collect();
        if all.is_empty() {
            errors.push(FieldError::required(child(at, key), ""));
        }
        if all.len() > 1 && all.contains(&"*") {
            let why = format!("if '*' is present, must not specify other {what}");
            errors.push(FieldError::invalid(child(at, key), rule[key].clone(), why));
        }
        let empty = all.iter().enumerate().filter(|(_, item)| key == "apiVersions" && item.is_empty());
        errors.extend(empty.map(|(index, _)| FieldError::required(format!("{at}.{key}[{index}]"), "")));
    }
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    for (index, operation) in items(rule, "operations") {
        if !operation.as_str().is_some_and(|operation| OPERATIONS.contains(&operation)) {
            let at = format!("{at}.operations[{index}]");
            errors.push(FieldError::not_supported(at, operation.clone(), &OPERATIONS));
        }
    }
    check_names(rule, &child(at, "resources"), errors);
    one_of(rule, "scope", at, &["*", "Cluster", "Namespaced"], errors);
}

/// Resources and their parts, where `*` must not stand beside what it covers.
fn check_names(rule: &Value, at: &str, errors: &mut Errors) {
    let all: Vec<&str> = items(rule, "resources").map(|(_, item)| item.as_str().unwrap_or_default()).collect();
    if all.is_empty() {
        errors.push(FieldError::required(at, ""));
    }
    for (index, name) in all.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let before = &all[..index];
        match name.split_once('/') {
            _ if name.is_empty() => errors.push(FieldError::required(at, "")),
            None => {}
            Some((resource, part)) => {
                for cover in [format!("{resource}/*"), format!("*/{part}")] {
                    if before.contains(&cover.as_str()) {
                        let why = format!("if '{cover}' is present, must not specify {name}");
                        errors.push(FieldError::invalid(&at, *name, why));
                    }
                }
            }
        }
    }
    let whole = |why: &str| FieldError::invalid(at, rule["resources"].clone(), why);
    if all.len() > 1 && all.contains(&"*/*") {
        errors.push(whole("if '*/*' is present, must not specify other resources"));
    }
    // The last of those without a part decides, as in Kubernetes.
    let last = all.iter().rfind(|name| !name.is_empty() && !name.contains('/'));
    if all.contains(&"*") && last.is_some_and(|name| *name != "*") {
        errors.push(whole("if '*' is present, must not specify other resources without subresources"));
    }
}

fn check_conditions(spec: &Value, errors: &mut Errors) {
    let count = items(spec, "matchConditions").count();
    if count > CONDITIONS_MAX {
        let why = format!("must have at most {CONDITIONS_MAX} items");
        errors.push(FieldError::new(Fault::TooMany, "spec.matchConditions", count.into(), why));
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in items(spec, "matchConditions") {
        let at = format!("spec.matchConditions[{index}].name");
        let name = text(condition, "name");
        match name {
            "" => errors.push(FieldError::required(&at, "")),
            name => errors.extend(unqualified(name, &at)),
        }
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(at, name));
        }
    }
}

fn check_variables(spec: &Value, errors: &mut Errors) {
    for (index, variable) in items(spec, "variables") {
        let at = format!("spec.variables[{index}].name");
        match text(variable, "name") {
            name if name.trim().is_empty() => errors.push(FieldError::required(at, "name is not specified")),
            name if !is_identifier(name) => {
                errors.push(FieldError::invalid(at, name, "must be a valid CEL identifier"));
            }
            _ => {}
        }
    }
}

/// What keeps a text from being a qualified name.
fn unqualified(name: &str, at: &str) -> Errors {
    name::qualified_faults(name).into_iter().map(|why| FieldError::invalid(at, name, why)).collect()
}

fn is_identifier(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(inner)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !["true", "false", "null", "in"].contains(&name)
        && !RESERVED.contains(&name)
}

fn check_validation(validation: &Value, index: usize, errors: &mut Errors) {
    let at = |key: &str| format!("spec.validations[{index}].{key}");
    for key in ["messageExpression", "message"] {
        let given = text(validation, key);
        if !given.is_empty() && given.trim().is_empty() {
            errors.push(FieldError::invalid(at(key), given, "must be non-empty if specified"));
        }
    }
    let message = text(validation, "message");
    if message.trim().contains(['\n', '\r']) {
        errors.push(FieldError::invalid(at("message"), message, "must not contain line breaks"));
    }
    let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    if let Some(reason) = validation["reason"].as_str().filter(|reason| !reasons.contains(reason)) {
        errors.push(FieldError::not_supported(at("reason"), reason, &reasons));
    }
}

fn check_annotations(policy: &str, spec: &Value, errors: &mut Errors) {
    let count = items(spec, "auditAnnotations").count();
    if count > ANNOTATIONS_MAX {
        let why = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        errors.push(FieldError::invalid("spec.auditAnnotations", spec["auditAnnotations"].clone(), why));
    }
    let mut seen = BTreeSet::new();
    for (index, annotation) in items(spec, "auditAnnotations") {
        let at = format!("spec.auditAnnotations[{index}]");
        let key = text(annotation, "key");
        let whole = format!("{policy}/{key}");
        match policy {
            "" => errors.push(FieldError::invalid(child(&at, "key"), key, "requires metadata.name be non-empty")),
            _ => errors.extend(unqualified(&whole, &child(&at, "key"))),
        }
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(child(&at, "key"), key));
        }
        if text(annotation, "valueExpression").trim().len() > ANNOTATION_BYTES_MAX {
            let why = format!("must not exceed {ANNOTATION_BYTES_MAX} bytes in length");
            errors.push(FieldError::required(child(&at, "valueExpression"), why));
        }
    }
}

fn one_of(value: &Value, key: &str, at: &str, supported: &[&str], errors: &mut Errors) {
    match value[key].as_str() {
        None => errors.push(FieldError::required(child(at, key), "")),
        Some(found) if !supported.contains(&found) => {
            errors.push(FieldError::not_supported(child(at, key), found, supported));
        }
        Some(_) => {}
    }
}
