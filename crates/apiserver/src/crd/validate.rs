//! What a definition must be.

use serde_json::Value;

use crate::{
    field::{Fault, FieldError},
    jsonpath::JsonPath,
    name, object, rules, scale, schema,
};

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

/// All that is wrong with a definition, and what its author should know about its gates.
pub fn validate(definition: &Value, old: Option<&Value>) -> (Vec<FieldError>, Vec<String>) {
    let spec = &definition["spec"];
    let mut errors = Vec::new();
    check_name(definition, &mut errors);
    check_names(&spec["names"], &mut errors);
    if !matches!(spec["scope"].as_str(), Some("Cluster" | "Namespaced")) {
        let scope = spec["scope"].as_str().unwrap_or_default();
        match scope {
            "" => errors.push(FieldError::required("spec.scope", "")),
            _ => errors.push(FieldError::not_supported("spec.scope", scope, &["Cluster", "Namespaced"])),
        }
    }
    if spec["preserveUnknownFields"] == true {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    check_versions(definition, old, &mut errors);
    super::conversion::check(spec, &mut errors);
    if let Some(old) = old {
        check_change(definition, old, &mut errors);
    }
    let verdict = fieldgate::validate_crd(spec, old.map(|old| &old["spec"]));
    errors.extend(verdict.errors.into_iter().map(gate_error));
    (errors, verdict.warnings)
}

fn gate_error(error: fieldgate::FieldError) -> FieldError {
    let fault = match error.fault.reason() {
        "FieldValueRequired" => Fault::Required,
        "FieldValueDuplicate" => Fault::Duplicate,
        "FieldValueForbidden" => Fault::Forbidden,
        "FieldValueNotSupported" => Fault::NotSupported,
        "FieldValueTooLong" => Fault::TooLong,
        "FieldValueTooMany" => Fault::TooMany,
        "FieldValueTypeInvalid" => Fault::TypeInvalid,
        _ => Fault::Invalid,
    };
    FieldError::new(fault, error.field, error.value.unwrap_or_default(), error.detail)
}

fn check_name(definition: &Value, errors: &mut Vec<FieldError>) {
    let spec = &definition["spec"];
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if let Err(why) = name::check_subdomain(group) {
        errors.push(FieldError::invalid("spec.group", group, why));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    check_group(definition, group, errors);
    let name = object::meta(definition, "name");
    if name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
}

/// Groups of the server itself are closed, as definitions in them would lie over its own objects; other groups of Kubernetes
/// need its word.
fn check_group(definition: &Value, group: &str, errors: &mut Vec<FieldError>) {
    const APPROVAL: &str = "api-approved.kubernetes.io";
    let protected =
        ["k8s.io", "kubernetes.io"].iter().any(|owner| group == *owner || group.ends_with(&format!(".{owner}")));
    if crate::builtin::GROUPS.contains(&group) {
        errors.push(FieldError::invalid("spec.group", group, "is a group of built-in kinds"));
    } else if protected && text(&definition["metadata"]["annotations"][APPROVAL]).is_empty() {
        let detail = format!(
            "protected groups must have approval annotation {APPROVAL:?}, see https://github.com/kubernetes/enhancements/pull/1111"
        );
        errors.push(FieldError::required(format!("metadata.annotations[{APPROVAL}]"), detail));
    }
}

fn check_names(names: &Value, errors: &mut Vec<FieldError>) {
    for (key, upper) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let (at, found) = (format!("spec.names.{key}"), text(&names[key]));
        let lower = found.to_lowercase();
        match name::check_label(if upper { &lower } else { found }) {
            _ if found.is_empty() => errors.push(FieldError::required(at, "")),
            Err(why) => errors.push(FieldError::invalid(at, found, why)),
            Ok(()) => {}
        }
    }
    if names["kind"] == names["listKind"] && !text(&names["kind"]).is_empty() {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", text(&names["listKind"]), detail));
    }
    for key in ["shortNames", "categories"] {
        for (index, short) in list(&names[key]).iter().enumerate() {
            if let Err(why) = name::check_label(text(short)) {
                errors.push(FieldError::invalid(format!("spec.names.{key}[{index}]"), text(short), why));
            }
        }
    }
}

fn old_version<'a>(old: Option<&'a Value>, version: &Value) -> Option<&'a Value> {
    super::versions(old?).iter().find(|old| old["name"] == version["name"])
}

fn check_versions(definition: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let versions = super::versions(definition);
    if versions.is_empty() {
        errors.push(FieldError::required("spec.versions", "must have at least one version"));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        if let Err(why) = name::check_label(text(&version["name"])) {
            errors.push(FieldError::invalid(format!("{at}.name"), text(&version["name"]), why));
        }
        if versions[..index].iter().any(|other| other["name"] == version["name"]) {
            errors.push(FieldError::invalid(format!("{at}.name"), text(&version["name"]), "must be unique"));
        }
        match version["schema"].get("openAPIV3Schema") {
            None => errors.push(FieldError::required(format!("{at}.schema.openAPIV3Schema"), "schemas are required")),
            Some(schema) => errors.extend(check_schema(schema, &format!("{at}.schema.openAPIV3Schema"))),
        }
        super::selectable::check(version, old_version(old, version), &format!("{at}.selectableFields"), errors);
        if version["subresources"]["scale"].is_object() {
            errors.extend(scale::check_paths(&version["subresources"]["scale"], &format!("{at}.subresources.scale")));
        }
        check_columns(&version["additionalPrinterColumns"], &format!("{at}.additionalPrinterColumns"), errors);
    }
    let storages = versions.iter().filter(|version| version["storage"] == true).count();
    if storages != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", definition["spec"]["versions"].clone(), detail));
    }
}

/// Rules are compiled with the schema's types, so a schema that is not sound comes first.
fn check_schema(schema: &Value, path: &str) -> Vec<FieldError> {
    let errors = schema::check(schema, path);
    if errors.is_empty() { rules::check(schema, path) } else { errors }
}

fn check_columns(columns: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, column) in list(columns).iter().enumerate() {
        let at = |key: &str| format!("{path}[{index}].{key}");
        if text(&column["name"]).is_empty() {
            errors.push(FieldError::required(at("name"), ""));
        }
        let kind = text(&column["type"]);
        if !TYPES.contains(&kind) {
            errors.push(FieldError::invalid(at("type"), kind, format!("must be one of {}", TYPES.join(","))));
        }
        let path = text(&column["jsonPath"]);
        match JsonPath::parse(path) {
            _ if path.is_empty() => errors.push(FieldError::required(at("jsonPath"), "")),
            Err(why) => errors.push(FieldError::invalid(at("jsonPath"), path, format!("is an invalid path: {why}"))),
            Ok(_) => {}
        }
    }
}

/// What a definition cannot become.
fn check_change(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    for key in ["group", "scope"] {
        if new["spec"][key] != old["spec"][key] {
            errors.push(FieldError::invalid(format!("spec.{key}"), new["spec"][key].clone(), "field is immutable"));
        }
    }
    for key in ["plural", "kind"] {
        let (wanted, had) = (&new["spec"]["names"][key], &old["spec"]["names"][key]);
        if wanted != had && super::is_established(old) {
            errors.push(FieldError::invalid(format!("spec.names.{key}"), wanted.clone(), "field is immutable"));
        }
    }
    let names: Vec<&Value> = super::versions(new).iter().map(|version| &version["name"]).collect();
    for (index, stored) in list(&old["status"]["storedVersions"]).iter().enumerate() {
        if !names.contains(&stored) {
            let detail = "missing from spec.versions; it was previously a storage version, and must remain in spec.versions \
                until a storage migration ensures no data remains persisted in the version and removes it from \
                status.storedVersions";
            errors.push(FieldError::invalid(format!("status.storedVersions[{index}]"), stored.clone(), detail));
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn definition() -> Value {
        let mut object = json!({"metadata": {"name": "foos.g.io"}, "spec": {"group": "g.io", "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
        super::super::fill(&mut object);
        object
    }

    #[test_case("/spec/scope", json!("Galaxy") => r#"spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced""#; "scope")]
    #[test_case("/metadata/name", json!("x.g.io") => r#"metadata.name: Invalid value: "x.g.io": must be spec.names.plural+"."+spec.group"#; "name")]
    #[test_case("/spec/versions", json!([]) => "spec.versions: Required value: must have at least one version"; "versions")]
    #[test_case("/spec/versions/0/schema", json!({}) => "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"; "schema")]
    #[test_case("/spec/scope", json!("Cluster") => ""; "sound")]
    fn says(pointer: &str, value: Value) -> String {
        let mut object = definition();
        *object.pointer_mut(pointer).unwrap() = value;
        let errors = validate(&object, None).0;
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }

    #[test]
    fn groups_of_others_are_closed() {
        let with_group = |group: &str| {
            let mut object = definition();
            object["spec"]["group"] = group.into();
            object["metadata"]["name"] = format!("foos.{group}").into();
            crate::field::join(&validate(&object, None).0)
        };
        let said = with_group("coordination.k8s.io");
        assert_eq!(said, r#"spec.group: Invalid value: "coordination.k8s.io": is a group of built-in kinds"#);
        assert!(
            with_group("x.k8s.io")
                .starts_with("metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups")
        );
    }

    #[test]
    fn scope_cannot_change() {
        let mut new = definition();
        new["spec"]["scope"] = json!("Cluster");
        let errors = validate(&new, Some(&definition())).0;
        assert_eq!(crate::field::join(&errors), r#"spec.scope: Invalid value: "Cluster": field is immutable"#);
    }
}
