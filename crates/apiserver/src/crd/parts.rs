//! What each version of a definition has: schema, subresources, columns and fields to select by.
//!
//! Kubernetes judges what is the same in all versions once, as a part of the whole definition, and names it so.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::{FieldError, child},
    gotext, name, scale, schema,
};

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// The parts, and where they stand if all versions have the same.
const PARTS: [(&str, &str); 4] = [
    ("schema", "spec.validation"),
    ("subresources", "spec.subresources"),
    ("additionalPrinterColumns", "spec.additionalPrinterColumns"),
    ("selectableFields", "spec.selectableFields"),
];

/// What is wrong, in the order in which it is told.
pub(super) struct Faults {
    pub of_versions: Vec<FieldError>,
    pub of_all: Vec<FieldError>,
}

/// What was wrong with an old schema already is not told again, so that stricter rules lock nobody out.
pub(super) fn check(definition: &Value, old: Option<&Value>) -> Faults {
    let mut found = find(definition, old);
    if let Some(old) = old {
        let known = find(old, Some(old));
        let is_new = |error: &FieldError| !known.of_versions.contains(error) && !known.of_all.contains(error);
        found.of_versions.retain(is_new);
        found.of_all.retain(is_new);
    }
    found
}

fn find(definition: &Value, old: Option<&Value>) -> Faults {
    let versions = super::versions(definition);
    let same = |part: &str| versions.iter().all(|version| version.get(part) == versions[0].get(part));
    let mut faults = Faults { of_versions: Vec::new(), of_all: Vec::new() };
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        if version["schema"].get("openAPIV3Schema").is_none_or(Value::is_null) {
            faults.of_versions.push(FieldError::required(format!("{at}.schema.openAPIV3Schema"), ""));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        if let Err(why) = name::check_dns1035(text(&version["name"])) {
            faults.of_versions.push(FieldError::invalid(format!("{at}.name"), text(&version["name"]), why));
        }
        check_deprecation(version, &at, &mut faults.of_versions);
        for (part, _) in PARTS.iter().filter(|(part, _)| !same(part)) {
            let status = has_status(version);
            check_part(part, version, status, old_version(old, version), &child(&at, part), &mut faults.of_versions);
        }
    }
    check_set(&definition["spec"]["versions"], versions, same, &mut faults.of_versions);
    // The first was a field of its own once.
    if let Some((first, why)) = versions.first().and_then(|first| {
        let name = text(&first["name"]);
        Some((name, name::check_dns1035(name).err().filter(|_| !name.is_empty())?))
    }) {
        faults.of_versions.push(FieldError::invalid("spec.version", first, why));
    }
    for (part, at) in PARTS.iter().filter(|(part, _)| !versions.is_empty() && same(part)) {
        let (version, status) = (&versions[0], versions.iter().any(has_status));
        check_part(part, version, status, old_version(old, version), at, &mut faults.of_all);
    }
    faults
}

fn old_version<'a>(old: Option<&'a Value>, version: &Value) -> Option<&'a Value> {
    super::versions(old?).iter().find(|old| old["name"] == version["name"])
}

fn has_status(version: &Value) -> bool {
    version["subresources"]["status"].is_object()
}

fn check_part(part: &str, version: &Value, status: bool, old: Option<&Value>, at: &str, errors: &mut Vec<FieldError>) {
    match part {
        "schema" => {
            if let Some(schema) = version["schema"].get("openAPIV3Schema").filter(|schema| !schema.is_null()) {
                errors.extend(schema::check(schema, &child(at, "openAPIV3Schema"), status));
            }
        }
        "subresources" if version["subresources"]["scale"].is_object() => {
            errors.extend(scale::check_paths(&version["subresources"]["scale"], &child(at, "scale")));
        }
        "additionalPrinterColumns" => check_columns(&version["additionalPrinterColumns"], at, errors),
        "selectableFields" => super::selectable::check(version, old, at, errors),
        _ => {}
    }
}

fn check_deprecation(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let at = child(at, "deprecationWarning");
    let mut refuse = |detail: String| errors.push(FieldError::invalid(at.clone(), warning, detail));
    if version["deprecated"] != true {
        return refuse("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > 256 {
        refuse("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        refuse("must not be an empty string".to_owned());
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        refuse(format!("must only contain printable UTF-8 characters; non-printable character found at index {index}"));
    }
}

fn check_set(given: &Value, versions: &[Value], same: impl Fn(&str) -> bool, errors: &mut Vec<FieldError>) {
    let shown = || shown(given, versions, &same);
    let twice =
        |(index, version): (usize, &Value)| versions[..index].iter().any(|other| other["name"] == version["name"]);
    if versions.iter().enumerate().any(twice) {
        errors.push(FieldError::invalid_as("spec.versions", &shown(), "must contain unique version names"));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid_as("spec.versions", &shown(), detail));
    }
}

/// Versions as Kubernetes shows them: all fields in its order, without what is the same in all.
fn shown(given: &Value, versions: &[Value], same: impl Fn(&str) -> bool) -> String {
    if versions.is_empty() {
        return given.to_string();
    }
    let part = |version: &Value, key: &str| if same(key) { "null".to_owned() } else { gotext::json(&version[key]) };
    let flag = |version: &Value, key: &str| version[key] == true;
    let one = |version: &Value| {
        format!(
            "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\
             \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
            gotext::json(&version["name"]),
            flag(version, "served"),
            flag(version, "storage"),
            flag(version, "deprecated"),
            gotext::json(&version["deprecationWarning"]),
            part(version, "schema"),
            part(version, "subresources"),
            part(version, "additionalPrinterColumns"),
            part(version, "selectableFields"),
        )
    };
    format!("[{}]", versions.iter().map(one).collect::<Vec<_>>().join(","))
}

fn check_columns(columns: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let at = |key: &str| format!("{path}[{index}].{key}");
        if text(&column["name"]).is_empty() {
            errors.push(FieldError::required(at("name"), ""));
        }
        let (kind, detail) = (text(&column["type"]), format!("must be one of {}", TYPES.join(",")));
        if kind.is_empty() {
            errors.push(FieldError::required(at("type"), detail));
        } else if !TYPES.contains(&kind) {
            errors.push(FieldError::invalid(at("type"), kind, detail));
        }
        let format = text(&column["format"]);
        if !format.is_empty() && !FORMATS.contains(&format) {
            errors.push(FieldError::invalid(at("format"), format, format!("must be one of {}", FORMATS.join(","))));
        }
        check_column_path(text(&column["jsonPath"]), &at("JSONPath"), errors);
    }
}

/// A path that begins well is taken, as in Kubernetes; one that then cannot be read shows nothing.
fn check_column_path(path: &str, at: &str, errors: &mut Vec<FieldError>) {
    if path.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else if !path.starts_with('.') {
        errors.push(FieldError::invalid(at, path, "must be a simple json path starting with ."));
    }
}

/// Formats that say nothing, as warnings; those that were there before are not told again.
pub(super) fn unknown_formats(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let of = |definition: &Value| {
        let mut found = BTreeSet::new();
        for version in super::versions(definition) {
            schema::unknown_formats(&version["schema"]["openAPIV3Schema"], &mut found);
        }
        found
    };
    let known = old.map(of).unwrap_or_default();
    of(definition).difference(&known).map(|format| format!("unrecognized format {}", gotext::quote(format))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
