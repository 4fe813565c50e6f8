//! What a definition must be.

use serde_json::Value;

use super::approval::{self, Approval};
use crate::{
    field::{Fault, FieldError},
    name, object,
};

/// All that is wrong with a definition, and what its author should know about its gates.
pub(crate) fn validate(definition: &Value, old: Option<&Value>) -> (Vec<FieldError>, Vec<String>) {
    let spec = &definition["spec"];
    let mut errors = Vec::new();
    check_name(definition, old, &mut errors);
    if !matches!(spec["scope"].as_str(), Some("Cluster" | "Namespaced")) {
        let scope = spec["scope"].as_str().unwrap_or_default();
        match scope {
            "" => errors.push(FieldError::required("spec.scope", "")),
            _ => errors.push(FieldError::not_supported("spec.scope", scope, &["Cluster", "Namespaced"])),
        }
    }
    let parts = super::parts::check(definition, old);
    errors.extend(parts.of_versions);
    check_names(&spec["names"], &mut errors);
    errors.extend(parts.of_all);
    super::conversion::check(spec, old, &mut errors);
    if let Some(old) = old {
        check_change(definition, old, &mut errors);
    }
    check_stored(definition, old, &mut errors);
    check_group(definition, old, &mut errors);
    if spec["preserveUnknownFields"] == true {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    let verdict = fieldgate::validate_crd(spec, old.map(|old| &old["spec"]));
    errors.extend(verdict.errors.into_iter().map(gate_error));
    let warnings = super::parts::unknown_formats(definition, old).into_iter().chain(verdict.warnings);
    (errors, warnings.collect())
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

fn check_name(definition: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let spec = &definition["spec"];
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if let Err(why) = name::check_subdomain(group) {
        errors.push(FieldError::invalid("spec.group", group, why));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    let name = object::meta(definition, "name");
    if old.is_none() && !name.is_empty() && name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
}

/// Groups of the server itself are closed, as definitions in them would lie over its own objects; other groups of Kubernetes
/// need its word, and who has none may go on without.
fn check_group(definition: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let group = text(&definition["spec"]["group"]);
    if crate::builtin::GROUPS.contains(&group) {
        errors.push(FieldError::invalid("spec.group", group, "is a group of built-in kinds"));
        return;
    }
    let Some(approval) = Approval::of(definition) else { return };
    if old.and_then(Approval::of).is_some_and(|old| old.reason == approval.reason) {
        return;
    }
    let at = format!("metadata.annotations[{}]", approval::ANNOTATION);
    match approval.reason {
        "MissingAnnotation" => errors.push(FieldError::required(at, approval.message)),
        "InvalidAnnotation" => errors.push(FieldError::invalid(at, approval.annotation, approval.message)),
        _ => {}
    }
}

fn check_names(names: &Value, errors: &mut Vec<FieldError>) {
    const KEYS: [(&str, bool); 4] = [("plural", false), ("singular", false), ("kind", true), ("listKind", true)];
    for (key, _) in KEYS.into_iter().filter(|(key, _)| text(&names[*key]).is_empty()) {
        errors.push(FieldError::required(format!("spec.names.{key}"), ""));
    }
    for (key, mixed) in KEYS.into_iter().filter(|(key, _)| !text(&names[*key]).is_empty()) {
        let (at, found) = (format!("spec.names.{key}"), text(&names[key]));
        let lower = found.to_lowercase();
        if let Err(why) = name::check_dns1035(if mixed { &lower } else { found }) {
            let before = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
            errors.push(FieldError::invalid(at, found, format!("{before}{why}")));
        }
    }
    if names["kind"] == names["listKind"] && !text(&names["kind"]).is_empty() {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", text(&names["listKind"]), detail));
    }
    for key in ["shortNames", "categories"] {
        for (index, short) in list(&names[key]).iter().enumerate() {
            if let Err(why) = name::check_dns1035(text(short)) {
                errors.push(FieldError::invalid(format!("spec.names.{key}[{index}]"), text(short), why));
            }
        }
    }
}

/// What a definition cannot become.
fn check_change(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let fixed = [("scope", false), ("names/kind", false), ("group", true), ("names/plural", true)];
    // Until it is served, a definition may still change what its objects are.
    for (key, _) in fixed.into_iter().filter(|(_, always)| *always || super::is_established(old)) {
        let of = |definition: &Value| {
            definition.pointer(&format!("/spec/{key}")).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        if of(new) != of(old) {
            let at = format!("spec.{}", key.replace('/', "."));
            errors.push(FieldError::invalid(at, of(new), "field is immutable"));
        }
    }
}

/// Objects may be stored in the version that is there to store in, and in those that once were.
fn check_stored(definition: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let versions = super::versions(definition);
    let mut stored: Vec<&Value> =
        old.map(|old| list(&old["status"]["storedVersions"]).iter().collect()).unwrap_or_default();
    let storage = versions.iter().find(|version| version["storage"] == true).map(|version| &version["name"]);
    stored.extend(storage.filter(|name| !stored.contains(name)));
    let at = "status.storedVersions";
    if stored.is_empty() {
        errors.push(FieldError::invalid(at, Value::Null, "must have at least one stored version"));
        return;
    }
    for version in versions.iter().filter(|version| version["storage"] == true && !stored.contains(&&version["name"])) {
        let detail = format!("must have the storage version {}", text(&version["name"]));
        errors.push(FieldError::invalid(at, stored.iter().copied().cloned().collect::<Vec<_>>(), detail));
    }
    let missing = |name: &Value| !versions.iter().any(|version| version["name"] == *name);
    for (index, version) in stored.iter().enumerate().filter(|(_, version)| missing(version)) {
        let name = text(version);
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage \
             migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(format!("{at}[{index}]"), name, detail));
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
    #[test_case("/spec/versions", json!([]) => "[spec.versions: Invalid value: []: must have exactly one version marked as storage version, status.storedVersions: Invalid value: null: must have at least one stored version]"; "versions")]
    #[test_case("/spec/versions/0/schema", json!({}) => "spec.versions[0].schema.openAPIV3Schema: Required value"; "schema")]
    #[test_case("/spec/scope", json!("Cluster") => ""; "sound")]
    fn says(pointer: &str, value: Value) -> String {
        let mut object = definition();
        *object.pointer_mut(pointer).unwrap() = value;
        let errors = validate(&object, None).0;
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }

    /// As Kubernetes has it within: what all versions share is looked at once, under a name of its own.
    #[test]
    fn what_versions_share_is_named_once() {
        let mut object = definition();
        let version = |name: &str, replicas: &str| {
            json!({"name": name, "served": true, "storage": name == "v1", "subresources": {"scale": {"specReplicasPath": replicas,
                "statusReplicasPath": ".status.n"}}, "additionalPrinterColumns": [{"name": "A", "type": "x", "jsonPath": ".a"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}})
        };
        object["spec"]["versions"] = json!([version("v1", "a"), version("v2", ".spec.n")]);
        let fields: Vec<String> = validate(&object, None).0.into_iter().map(|error| error.field).collect();
        assert_eq!(
            fields,
            [
                "spec.versions[0].subresources.scale.specReplicasPath",
                "spec.validation.openAPIV3Schema.properties[spec].type",
                "spec.additionalPrinterColumns[0].type"
            ]
        );
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
        let mut old = definition();
        assert!(validate(&new, Some(&old)).0.is_empty(), "nobody has any objects yet");
        old["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        let errors = validate(&new, Some(&old)).0;
        assert_eq!(crate::field::join(&errors), r#"spec.scope: Invalid value: "Cluster": field is immutable"#);
    }
}
