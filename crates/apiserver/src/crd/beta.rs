//! Definitions in the form in which Kubernetes stores them: it serves `v1`, but still writes `v1beta1` (as of 1.36), which has
//! in one place what is the same for all versions.

use serde_json::{Map, Value, json};

const BETA: &str = "apiextensions.k8s.io/v1beta1";
const STABLE: &str = "apiextensions.k8s.io/v1";
/// What all versions share there, and its name within a version.
const SHARED: [(&str, &str); 4] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// A definition of the store, in the form in which it is served, whoever wrote it.
pub(crate) fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    let mut object: Value = serde_json::from_slice(bytes)?;
    if object["apiVersion"] == BETA {
        object["apiVersion"] = STABLE.into();
        if let Some(spec) = object["spec"].as_object_mut() {
            to_stable(spec);
        }
    }
    Ok(object)
}

fn to_stable(spec: &mut Map<String, Value>) {
    let only = spec.remove("version");
    let versions = spec.entry("versions").or_insert_with(|| json!([]));
    if let (Some(list), Some(name)) = (versions.as_array_mut(), only)
        && list.is_empty()
    {
        list.push(json!({"name": name, "served": true, "storage": true}));
    }
    for (shared, own) in SHARED {
        if let Some(value) = spec.remove(shared) {
            each_version(spec, |version| {
                version.entry(own).or_insert_with(|| value.clone());
            });
        }
    }
    each_version(spec, rename_columns);
    if spec.get("preserveUnknownFields").is_some_and(|value| value == false) {
        spec.remove("preserveUnknownFields");
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        gather_webhook(conversion);
    }
}

fn each_version(spec: &mut Map<String, Value>, mut change: impl FnMut(&mut Map<String, Value>)) {
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
    versions.into_iter().flatten().filter_map(Value::as_object_mut).for_each(&mut change);
}

fn rename_columns(version: &mut Map<String, Value>) {
    let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(path) = column.remove("JSONPath") {
            column.insert("jsonPath".to_owned(), path);
        }
    }
}

fn gather_webhook(conversion: &mut Map<String, Value>) {
    let parts = [("webhookClientConfig", "clientConfig"), ("conversionReviewVersions", "conversionReviewVersions")];
    let found = parts.iter().filter_map(|(old, new)| Some(((*new).to_owned(), conversion.remove(*old)?)));
    let webhook: Map<String, Value> = found.collect();
    if !webhook.is_empty() {
        conversion.insert("webhook".to_owned(), webhook.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a real kube-apiserver stored and served them, without the version, managers and annotations.
    const BY_KUBERNETES: &str = include_str!("testdata/kube-apiserver-1.36.3.json");

    #[test]
    fn what_kubernetes_stores_is_read_as_it_serves_it() {
        let rows: Vec<Value> = serde_json::from_str(BY_KUBERNETES).unwrap();
        assert_eq!(rows.len(), 3);
        for row in rows {
            assert_eq!(row["stored"]["apiVersion"], BETA);
            assert_eq!(parse(row["stored"].to_string().as_bytes()).unwrap(), row["served"]);
            // What is in that form already stays as it is.
            assert_eq!(parse(row["served"].to_string().as_bytes()).unwrap(), row["served"]);
        }
    }

    #[test]
    fn a_version_alone_is_the_only_one() {
        let old = json!({"apiVersion": BETA, "spec": {"version": "v2", "preserveUnknownFields": true}});
        let spec =
            json!({"versions": [{"name": "v2", "served": true, "storage": true}], "preserveUnknownFields": true});
        assert_eq!(parse(old.to_string().as_bytes()).unwrap(), json!({"apiVersion": STABLE, "spec": spec}));
        assert!(parse(b"k8s").is_err());
    }
}
