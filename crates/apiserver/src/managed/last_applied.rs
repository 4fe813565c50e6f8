//! The annotation in which kubectl keeps what it applied from the client.

use serde_json::Value;

use super::{compare::compare, node::Node, own::fields, set::Set, value};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The fields that were applied from the client and are still as they were applied.
pub(super) fn unchanged(node: &Node, live: &Value, api_version: &str) -> Option<Set> {
    let text = live["metadata"]["annotations"][ANNOTATION].as_str().filter(|text| !text.is_empty())?;
    let applied: Value = serde_json::from_str(text).ok()?;
    if applied["apiVersion"] != api_version {
        return None;
    }
    let changes = compare(node, &applied, live);
    let set = fields(node, &applied).difference(&changes.modified);
    Some(set.difference(&changes.added).difference(&changes.removed))
}

/// Puts the new configuration into an annotation that is there, so that applies from the client find what they left.
pub(super) fn sync(object: &mut Value, config: &Value) {
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else { return };
    if annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(own) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        own.remove(ANNOTATION);
    }
    annotations.insert(ANNOTATION.to_owned(), format!("{}\n", value::print(&config)).into());
    let bytes = annotations.iter().map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len());
    if bytes.sum::<usize>() > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}
