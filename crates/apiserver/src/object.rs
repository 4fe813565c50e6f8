//! Objects as JSON values: the metadata that every one has.

use serde_json::{Map, Value, json};

use crate::{field::FieldError, name};

const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub fn meta<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"][key].as_str().unwrap_or_default()
}

pub fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object["metadata"][key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The metadata, made if it is missing. `form::check` has seen that it is an object.
pub fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"].as_object_mut().expect("metadata was just made an object")
}

pub fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    meta_mut(object).insert(key.to_owned(), value.into());
}

/// Takes a field of the metadata from another object: what it has, or nothing.
pub fn keep(object: &mut Value, key: &str, from: &Value) {
    match from["metadata"].get(key) {
        Some(value) => set(object, key, value.clone()),
        None => drop(meta_mut(object).remove(key)),
    }
}

pub fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_default()
}

pub fn is_deleting(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// Which rule the name of an object follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    Label,
    Subdomain,
}

/// What is wrong with the metadata of an object about to be stored.
pub fn check_metadata(object: &Value, namespaced: bool, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = meta(object, "name");
    let max = match rule {
        NameRule::Label => name::LABEL_CHARS_MAX,
        NameRule::Subdomain => name::SUBDOMAIN_CHARS_MAX,
    };
    let prefix = meta(object, "generateName");
    if prefix.len() > max {
        errors.push(FieldError::invalid("metadata.generateName", prefix, name::too_long(max)));
    }
    let fits = match rule {
        NameRule::Label => name::check_label(name),
        NameRule::Subdomain => name::check_subdomain(name),
    };
    match fits {
        _ if name.is_empty() => errors.push(FieldError::required("metadata.name", "name or generateName is required")),
        Err(why) => errors.push(FieldError::invalid("metadata.name", name, why)),
        Ok(()) => {}
    }
    if !namespaced && !meta(object, "namespace").is_empty() {
        errors.push(FieldError::forbidden("metadata.namespace", "not allowed on this type"));
    }
    check_labels(object, &mut errors);
    check_finalizers(object, &mut errors);
    check_owners(object, &mut errors);
    errors
}

fn check_labels(object: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        if let Err(why) = name::check_qualified(key) {
            errors.push(FieldError::invalid("metadata.labels", key.as_str(), why));
        }
        let value = value.as_str().unwrap_or_default();
        if let Err(why) = name::check_label_value(value) {
            errors.push(FieldError::invalid("metadata.labels", value, why));
        }
    }
    let mut total = 0;
    for (key, value) in object["metadata"]["annotations"].as_object().into_iter().flatten() {
        if let Err(why) = name::check_qualified(&key.to_lowercase()) {
            errors.push(FieldError::invalid("metadata.annotations", key.as_str(), why));
        }
        total += key.len() + value.as_str().unwrap_or_default().len();
    }
    if total > ANNOTATIONS_BYTES_MAX {
        let detail = format!("may not be more than {ANNOTATIONS_BYTES_MAX} bytes");
        errors.push(FieldError::new(crate::field::Fault::TooLong, "metadata.annotations", Value::Null, detail));
    }
}

fn check_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    for finalizer in list(object, "finalizers").iter().filter_map(Value::as_str) {
        if let Err(why) = name::check_qualified(finalizer) {
            errors.push(FieldError::invalid("metadata.finalizers", finalizer, why));
        }
    }
    let finalizers = list(object, "finalizers");
    if ["orphan", "foregroundDeletion"].iter().all(|name| finalizers.iter().any(|finalizer| finalizer == name)) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", finalizers, detail));
    }
}

/// Finalizers of a custom resource that others may well have chosen too, as texts for a warning.
pub fn doubtful_finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(|old| list(old, "finalizers")).unwrap_or_default();
    let new = list(object, "finalizers").iter().filter(|name| !known.contains(name)).filter_map(Value::as_str);
    let standard = ["foregroundDeletion", "orphan", "kubernetes"];
    let doubtful = new.filter(|name| !name.contains('/') && !standard.contains(name));
    let text = |name: &str| {
        let path = if name.contains('.') { "including a path (/) " } else { "" };
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name {path}to avoid accidental conflicts with \
             other finalizer writers"
        )
    };
    doubtful.map(text).collect()
}

fn check_owners(object: &Value, errors: &mut Vec<FieldError>) {
    let owners = list(object, "ownerReferences");
    for (index, owner) in owners.iter().enumerate() {
        let at = format!("metadata.ownerReferences[{index}]");
        for key in ["apiVersion", "kind", "name", "uid"] {
            match owner[key].as_str().unwrap_or_default() {
                "" => errors.push(FieldError::required(format!("{at}.{key}"), "must not be empty")),
                version if key == "apiVersion" && (version.matches('/').count() > 1 || version.ends_with('/')) => {
                    let why = "must be <group>/<version> or <version>";
                    errors.push(FieldError::invalid(format!("{at}.{key}"), version, why));
                }
                _ => {}
            }
        }
        // Events come and go by themselves.
        if owner["apiVersion"] == "v1" && owner["kind"] == "Event" {
            errors.push(FieldError::invalid(at, owner.clone(), "/v1, Kind=Event is disallowed from being an owner"));
        }
    }
    check_controllers(owners, errors);
}

fn check_controllers(owners: &[Value], errors: &mut Vec<FieldError>) {
    let text = |owner: &Value, key: &str| owner[key].as_str().unwrap_or_default().to_owned();
    let mut controllers = owners.iter().filter(|owner| owner["controller"] == true);
    let Some(first) = controllers.next() else { return };
    for other in controllers {
        let [first, other] = [first, other].map(|owner| format!("{}/{}", text(owner, "kind"), text(owner, "name")));
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {other}"
        );
        errors.push(FieldError::invalid("metadata.ownerReferences", owners, detail));
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(json!({"name": "a"}) => ""; "sound")]
    #[test_case(json!({}) => "metadata.name: Required value: name or generateName is required"; "no name")]
    #[test_case(json!({"name": "a", "finalizers": ["/x"]}) => "metadata.finalizers: Invalid value: \"/x\": prefix part must be non-empty"; "finalizer")]
    #[test_case(json!({"name": "a", "namespace": "n"}) => "metadata.namespace: Forbidden: not allowed on this type"; "namespace")]
    #[test_case(json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n"}]}) => "metadata.ownerReferences[0].uid: Required value: must not be empty"; "owner")]
    #[test_case(json!({"name": "a", "ownerReferences": [{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}]}) => "metadata.ownerReferences[0].apiVersion: Invalid value: \"a/b/c\": must be <group>/<version> or <version>"; "version of an owner")]
    #[test_case(json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}]}) => r#"metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}: /v1, Kind=Event is disallowed from being an owner"#; "an event")]
    #[test_case(json!({"name": "a".repeat(254)}) => format!("metadata.name: Invalid value: \"{}\": must be no more than 253 characters", "a".repeat(254)); "long name")]
    #[test_case(json!({"name": "a", "generateName": "a".repeat(254)}) => format!("metadata.generateName: Invalid value: \"{}\": must be no more than 253 characters", "a".repeat(254)); "long prefix")]
    #[test_case(json!({"name": "a", "labels": {format!("{}/x", "a".repeat(254)): ""}}) => format!("metadata.labels: Invalid value: \"{}/x\": prefix part must be no more than 253 bytes", "a".repeat(254)); "long key")]
    fn metadata(metadata: Value) -> String {
        let errors = check_metadata(&json!({"metadata": metadata}), false, NameRule::Subdomain);
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }
}
