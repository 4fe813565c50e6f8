//! What a webhook is asked, and what it may answer.

use serde_json::{Map, Value, json};

use crate::object;

pub(super) fn request(review: &str, uid: &str, desired: &str, objects: &[Value]) -> Value {
    json!({"apiVersion": format!("apiextensions.k8s.io/{review}"), "kind": "ConversionReview",
           "request": {"uid": uid, "desiredAPIVersion": desired, "objects": objects}})
}

/// The converted objects, if the answer is sound: as many, of the version that was asked for, each the same object as before.
pub(super) fn converted(
    answer: &Value,
    review: &str,
    uid: &str,
    desired: &str,
    before: &[Value],
) -> Result<Vec<Value>, String> {
    let failed = |why: String| format!("failed: {why}");
    // Kubernetes has never looked at these in v1beta1, and there are webhooks that rely on it.
    let exact = review == "v1";
    if exact && (answer["apiVersion"] != "apiextensions.k8s.io/v1" || answer["kind"] != "ConversionReview") {
        let (version, kind) = (&answer["apiVersion"], &answer["kind"]);
        return Err(failed(format!(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {}, Kind={}",
            version.as_str().unwrap_or_default(),
            kind.as_str().unwrap_or_default()
        )));
    }
    let response = &answer["response"];
    if !response.is_object() {
        return Err(failed("no response provided".to_owned()));
    }
    if exact && response["uid"] != uid {
        return Err(failed(format!("expected response.uid={uid:?}, got {}", response["uid"])));
    }
    if response["result"]["status"] != "Success" {
        return Err(failed(match response["result"]["message"].as_str() {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => {
                let status = response["result"]["status"].as_str().unwrap_or_default();
                format!("response.result.status was '{status}', not 'Success'")
            }
        }));
    }
    let objects = response["convertedObjects"].as_array().cloned().unwrap_or_default();
    if objects.len() != before.len() {
        return Err(format!("returned {} objects, expected {}", objects.len(), before.len()));
    }
    let pairs = objects.into_iter().zip(before).enumerate();
    pairs.map(|(index, (object, before))| one(object, before, desired, index)).collect()
}

fn one(mut object: Value, before: &Value, desired: &str, index: usize) -> Result<Value, String> {
    let place = format!("returned invalid converted object at index {index}");
    for (key, word, wanted) in [("apiVersion", "groupVersion", desired), ("kind", "kind", text(before, "kind"))] {
        let found = text(&object, key);
        if found != wanted {
            return Err(format!("{place}: invalid {word} (expected {wanted}, received {found})"));
        }
    }
    for (key, word) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (wanted, found) = (object::meta(before, key), object::meta(&object, key));
        if wanted != found {
            return Err(format!("{place}: must have the same {word}: {wanted} != {found}"));
        }
    }
    let metadata = metadata(&object["metadata"], &before["metadata"])
        .map_err(|why| format!("returned invalid metadata in object at index {index}: {why}"))?;
    object["metadata"] = metadata;
    Ok(object)
}

/// The metadata of before: a webhook has a say in labels and annotations alone.
fn metadata(found: &Value, before: &Value) -> Result<Value, String> {
    if !found.is_object() {
        return Err("missing metadata in converted object".to_owned());
    }
    let mut metadata = before.clone();
    for key in ["labels", "annotations"] {
        let own = match found.get(key) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(own)) => own.clone(),
            Some(_) => return Err(format!("invalid metadata.{key} in converted object: it must be an object")),
        };
        if let Some((name, _)) = own.iter().find(|(_, value)| !value.is_string()) {
            return Err(format!("metadata.{key}[{name}] must be a string"));
        }
        if own.is_empty() {
            drop(metadata.as_object_mut().map(|metadata| metadata.remove(key)))
        } else {
            metadata[key] = Value::Object(own)
        }
    }
    Ok(metadata)
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn before() -> Value {
        json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "uid": "u", "generation": 3, "labels": {"a": "b"}}})
    }

    fn answer(object: Value) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
               "response": {"uid": "1", "result": {"status": "Success"}, "convertedObjects": [object]}})
    }

    #[test_case("/response", json!(null) => "failed: no response provided"; "nothing")]
    #[test_case("/response/uid", json!("2") => "failed: expected response.uid=\"1\", got \"2\""; "uid")]
    #[test_case("/response/result", json!({"status": "Failure", "message": "too bad"}) => "failed: too bad"; "failure")]
    #[test_case("/response/result", json!({}) => "failed: response.result.status was '', not 'Success'"; "no status")]
    #[test_case("/response/convertedObjects", json!([]) => "returned 0 objects, expected 1"; "count")]
    #[test_case("/response/convertedObjects/0/apiVersion", json!("g/v3") => "returned invalid converted object at index 0: invalid groupVersion (expected g/v2, received g/v3)"; "version")]
    #[test_case("/response/convertedObjects/0/kind", json!("L") => "returned invalid converted object at index 0: invalid kind (expected K, received L)"; "kind")]
    #[test_case("/response/convertedObjects/0/metadata/name", json!("m") => "returned invalid converted object at index 0: must have the same name: n != m"; "name")]
    #[test_case("/response/convertedObjects/0/metadata/uid", json!("v") => "returned invalid converted object at index 0: must have the same UID: u != v"; "object's uid")]
    #[test_case("/response/convertedObjects/0/metadata/labels", json!({"a": 1}) => "returned invalid metadata in object at index 0: metadata.labels[a] must be a string"; "labels")]
    #[test_case("/response/result/status", json!("Success") => ""; "sound")]
    fn says(pointer: &str, value: Value) -> String {
        let mut object = before();
        object["apiVersion"] = "g/v2".into();
        let mut answer = answer(object);
        *answer.pointer_mut(pointer).unwrap() = value;
        converted(&answer, "v1", "1", "g/v2", &[before()]).err().unwrap_or_default()
    }

    #[test]
    fn old_reviews_need_neither_name_nor_uid() {
        let mut object = before();
        object["apiVersion"] = "g/v2".into();
        let bare = json!({"response": {"result": {"status": "Success"}, "convertedObjects": [object]}});
        assert!(converted(&bare, "v1beta1", "1", "g/v2", &[before()]).is_ok());
        assert!(converted(&bare, "v1", "1", "g/v2", &[before()]).is_err());
        assert_eq!(request("v1beta1", "1", "g/v2", &[])["apiVersion"], "apiextensions.k8s.io/v1beta1");
    }

    #[test]
    fn only_labels_and_annotations_are_the_webhooks() {
        let object = json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": "n", "uid": "u", "generation": 9,
            "annotations": {"x": "y"}, "finalizers": ["f"]}, "spec": {"b": 1}});
        let found = converted(&answer(object), "v1", "1", "g/v2", &[before()]).unwrap();
        assert_eq!(
            found,
            [json!({"apiVersion": "g/v2", "kind": "K", "spec": {"b": 1},
                "metadata": {"name": "n", "uid": "u", "generation": 3, "annotations": {"x": "y"}}})]
        );
    }
}
