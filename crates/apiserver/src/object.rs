//! Objects as JSON values: the metadata that every one has.

use serde_json::{Map, Value, json};

use crate::{field::FieldError, name};

const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) fn meta<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"][key].as_str().unwrap_or_default()
}

pub(crate) fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object["metadata"][key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The metadata, made if it is missing. `form::check` has seen that it is an object.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"].as_object_mut().expect("metadata was just made an object")
}

pub(crate) fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    meta_mut(object).insert(key.to_owned(), value.into());
}

/// Leaves out what an object is, where a list says it for all.
pub(crate) fn untype(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|key, _| key != "apiVersion" && key != "kind");
    }
}

/// Takes a field of the metadata from another object: what it has, or nothing.
pub(crate) fn keep(object: &mut Value, key: &str, from: &Value) {
    match from["metadata"].get(key) {
        Some(value) => set(object, key, value.clone()),
        None => drop(meta_mut(object).remove(key)),
    }
}

pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_default()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// Which rule the name of an object follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    Label,
    Subdomain,
    /// Anything that can be a part of a path.
    Segment,
}

/// What is wrong with the metadata of an object about to be stored.
pub(crate) fn check_metadata(object: &Value, namespaced: bool, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = meta(object, "name");
    let max = match rule {
        NameRule::Label => name::LABEL_CHARS_MAX,
        NameRule::Subdomain => name::SUBDOMAIN_CHARS_MAX,
        NameRule::Segment => usize::MAX,
    };
    let check = |name: &str| match rule {
        NameRule::Label => name::check_label(name),
        NameRule::Subdomain => name::check_subdomain(name),
        NameRule::Segment => name::check_segment(name),
    };
    let prefix = meta(object, "generateName");
    // A prefix may end in what a name may not.
    let begun = prefix.strip_suffix('-').filter(|start| !start.is_empty()).unwrap_or(prefix);
    match check(begun) {
        _ if prefix.is_empty() => {}
        _ if prefix.len() > max => {
            errors.push(FieldError::invalid("metadata.generateName", prefix, name::too_long(max)));
        }
        Err(why) => errors.push(FieldError::invalid("metadata.generateName", prefix, why)),
        Ok(()) => {}
    }
    let fits = check(name);
    match fits {
        _ if name.is_empty() => errors.push(FieldError::required("metadata.name", "name or generateName is required")),
        Err(why) => errors.push(FieldError::invalid("metadata.name", name, why)),
        Ok(()) => {}
    }
    if generation(object) < 0 {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", generation(object), why));
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
        let faults = name::qualified_faults(key).into_iter();
        errors.extend(faults.map(|why| FieldError::invalid("metadata.labels", key.as_str(), why)));
        let value = value.as_str().unwrap_or_default();
        if let Err(why) = name::check_label_value(value) {
            errors.push(FieldError::invalid("metadata.labels", value, why));
        }
    }
    let mut total = 0;
    for (key, value) in object["metadata"]["annotations"].as_object().into_iter().flatten() {
        let faults = name::qualified_faults(&key.to_lowercase()).into_iter();
        errors.extend(faults.map(|why| FieldError::invalid("metadata.annotations", key.as_str(), why)));
        total += key.len() + value.as_str().unwrap_or_default().len();
    }
    if total > ANNOTATIONS_BYTES_MAX {
        let detail = format!("may not be more than {ANNOTATIONS_BYTES_MAX} bytes");
        errors.push(FieldError::new(crate::field::Fault::TooLong, "metadata.annotations", Value::Null, detail));
    }
}

fn check_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    for finalizer in list(object, "finalizers").iter().filter_map(Value::as_str) {
        let faults = name::qualified_faults(finalizer).into_iter();
        errors.extend(faults.map(|why| FieldError::invalid("metadata.finalizers", finalizer, why)));
    }
    let finalizers = list(object, "finalizers");
    if ["orphan", "foregroundDeletion"].iter().all(|name| finalizers.iter().any(|finalizer| finalizer == name)) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", finalizers, detail));
    }
}

/// Finalizers that Kubernetes has itself.
const FINALIZERS: [&str; 3] = ["foregroundDeletion", "orphan", "kubernetes"];

const VAGUE: &str = "name is neither a standard finalizer name nor is it fully qualified";

/// Those of its metadata that are not.
pub(crate) fn check_vague(object: &Value) -> Vec<FieldError> {
    let names = list(object, "finalizers").iter().filter_map(Value::as_str).enumerate();
    let vague = names.filter(|(_, name)| is_vague(name));
    vague.map(|(index, name)| FieldError::invalid(format!("metadata.finalizers[{index}]"), name, VAGUE)).collect()
}

/// What is wrong with the name of a finalizer of a built-in kind.
pub(crate) fn finalizer_faults(name: &str) -> Vec<String> {
    let vague = is_vague(name).then(|| VAGUE.to_owned());
    name::qualified_faults(name).into_iter().chain(vague).collect()
}

fn is_vague(name: &str) -> bool {
    !name.contains('/') && !FINALIZERS.contains(&name)
}

/// Takes out owners that are named twice, and tells which.
pub(crate) fn dedup_owners(object: &mut Value) -> Option<String> {
    let owners = list(object, "ownerReferences");
    let (mut kept, mut twice) = (Vec::new(), Vec::new());
    for owner in owners {
        if kept.contains(owner) {
            twice.push(owner["uid"].as_str().unwrap_or_default())
        } else {
            kept.push(owner.clone())
        }
    }
    if twice.is_empty() {
        return None;
    }
    let said = format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such \
         requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        twice.join(", ")
    );
    set(object, "ownerReferences", kept);
    Some(said)
}

/// Finalizers of a custom resource that others may well have chosen too, as texts for a warning.
pub(crate) fn doubtful_finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(|old| list(old, "finalizers")).unwrap_or_default();
    let new = list(object, "finalizers").iter().filter(|name| !known.contains(name)).filter_map(Value::as_str);
    let doubtful = new.filter(|name| !name.contains('/') && !FINALIZERS.contains(name));
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
    for owner in owners {
        let at = "metadata.ownerReferences";
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        let version = text("apiVersion");
        // What cannot be read has no version at all.
        if version.matches('/').count() > 1 || version.ends_with('/') || version.is_empty() {
            errors.push(FieldError::invalid(format!("{at}.apiVersion"), version, "version must not be empty"));
        }
        for key in ["kind", "name", "uid"].into_iter().filter(|key| text(key).is_empty()) {
            errors.push(FieldError::invalid(format!("{at}.{key}"), "", "must not be empty"));
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
    #[test_case(json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n"}]}) => "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"; "owner")]
    #[test_case(json!({"name": "a", "ownerReferences": [{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}]}) => "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty"; "version of an owner")]
    #[test_case(json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}]}) => r#"metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}: /v1, Kind=Event is disallowed from being an owner"#; "an event")]
    #[test_case(json!({"name": "a".repeat(254)}) => format!("metadata.name: Invalid value: \"{}\": must be no more than 253 characters", "a".repeat(254)); "long name")]
    #[test_case(json!({"name": "a", "generateName": "a".repeat(254)}) => format!("metadata.generateName: Invalid value: \"{}\": must be no more than 253 characters", "a".repeat(254)); "long prefix")]
    #[test_case(json!({"name": "a", "labels": {format!("{}/x", "a".repeat(254)): ""}}) => format!("metadata.labels: Invalid value: \"{}/x\": prefix part must be no more than 253 bytes", "a".repeat(254)); "long key")]
    fn metadata(metadata: Value) -> String {
        let errors = check_metadata(&json!({"metadata": metadata}), false, NameRule::Subdomain);
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }
}
