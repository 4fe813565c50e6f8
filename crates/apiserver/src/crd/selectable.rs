//! Fields by which objects of a version can be selected.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::{Fault, FieldError},
    rules,
};

const FIELDS_MAX: usize = 8;

/// The labels that field selectors know them by: the paths without their first dot.
pub(super) fn fields(version: &Value) -> Vec<String> {
    let paths = list(version).iter().filter_map(|field| field["jsonPath"].as_str());
    paths.map(|path| path.trim_start_matches('.').to_owned()).collect()
}

/// What is wrong with them. Too many that were there before are let be.
pub(super) fn check(version: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut known = BTreeSet::new();
    for (index, field) in list(version).iter().enumerate() {
        let at = format!("{path}[{index}].jsonPath");
        let text = field["jsonPath"].as_str().unwrap_or_default();
        if text.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let (name, found) = match rules::resolve(text, schema, false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(FieldError::invalid(at, text, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if name.split('.').next() == Some("metadata") {
            errors.push(FieldError::invalid(at.clone(), text, "must not point to fields in metadata"));
        }
        if !matches!(found["type"].as_str(), Some("string" | "boolean" | "integer")) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats \
                are allowed.";
            errors.push(FieldError::invalid(at.clone(), text, detail));
        }
        if !known.insert(name) {
            errors.push(FieldError::duplicate(at, text));
        }
    }
    let unchanged = old.is_some_and(|old| old["selectableFields"] == version["selectableFields"]);
    if known.len() > FIELDS_MAX && !unchanged {
        let detail = format!("must have at most {FIELDS_MAX} items");
        errors.push(FieldError::new(Fault::TooMany, path, known.len().into(), detail));
    }
}

fn list(version: &Value) -> &[Value] {
    version["selectableFields"].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(&[".spec.color"] => ""; "sound")]
    #[test_case(&["spec.color"] => r#"f[0].jsonPath: Invalid value: "spec.color": is an invalid path: expected [ or . but got: spec"#; "no dot")]
    #[test_case(&[".spec.none"] => r#"f[0].jsonPath: Invalid value: ".spec.none": is an invalid path: does not refer to a valid field"#; "unknown")]
    #[test_case(&[".spec['color']"] => r#"f[0].jsonPath: Invalid value: ".spec['color']": is an invalid path: array notation is not allowed"#; "brackets")]
    #[test_case(&[".spec"] => r#"f[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."#; "object")]
    #[test_case(&[".spec.color", ".spec.color"] => r#"f[1].jsonPath: Duplicate value: ".spec.color""#; "twice")]
    #[test_case(&[".metadata.name"] => r#"f[0].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata"#; "metadata")]
    #[test_case(&[""] => "f[0].jsonPath: Required value"; "empty")]
    #[test_case(&[".spec.a0", ".spec.a1", ".spec.a2", ".spec.a3", ".spec.a4", ".spec.a5", ".spec.a6", ".spec.a7", ".spec.a8"] => "f: Too many: 9: must have at most 8 items"; "too many")]
    fn says(paths: &[&str]) -> String {
        let mut spec = json!({"color": {"type": "string"}});
        (0..9).for_each(|index| spec[format!("a{index}")] = json!({"type": "integer"}));
        let schema = json!({"properties": {"spec": {"type": "object", "properties": spec},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}});
        let fields: Vec<Value> = paths.iter().map(|path| json!({"jsonPath": path})).collect();
        let version = json!({"schema": {"openAPIV3Schema": schema}, "selectableFields": fields});
        let mut errors = Vec::new();
        check(&version, None, "f", &mut errors);
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }
}
