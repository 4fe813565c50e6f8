//! Patches: a changed copy of an object from the object and what a client sent.

use json_patch::PatchOperation;
use serde_json::{Map, Value};

use crate::{
    decode::{self, DEPTH_MAX, depth},
    status::{Result, Status},
};

pub const JSON: &str = "application/json-patch+json";
pub const MERGE: &str = "application/merge-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";
const OPERATIONS_MAX: usize = 10_000;
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Patch {
    change: Change,
    /// What is not as it should be and does no harm: fields that come twice, and those of operations that nobody knows.
    pub faults: Vec<String>,
}

#[derive(Clone, Debug)]
enum Change {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

/// Which media types a resource takes.
pub fn accepted(strategic: bool) -> &'static [&'static str] {
    if strategic { &[JSON, MERGE, STRATEGIC, APPLY] } else { &[JSON, MERGE, APPLY] }
}

/// Whether a body is a configuration to apply rather than a patch.
pub fn is_apply(content_type: &str) -> bool {
    content_type.split(';').next().unwrap_or_default().trim() == APPLY
}

impl Patch {
    pub fn parse(content_type: &str, body: &[u8], strategic: bool) -> Result<Patch> {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        if media == APPLY || !accepted(strategic).contains(&media) {
            return Err(Status::unsupported_media_type(accepted(strategic)));
        }
        let bad = |error: serde_json::Error| Status::bad_request(format!("error decoding patch: {error}"));
        let decoded = decode::json(body).map_err(bad)?;
        let faults = decoded.twice.told();
        if media == JSON {
            let unknown = unknown_members(&decoded.value);
            let faults = faults.into_iter().chain(unknown).map(|fault| format!("json patch {fault}")).collect();
            return Ok(Patch { change: Change::Json(operations(decoded.value)?), faults });
        }
        if !decoded.value.is_object() {
            return Err(Status::bad_request("error decoding patch: a merge patch must be a JSON object"));
        }
        let change = if media == MERGE { Change::Merge(decoded.value) } else { Change::Strategic(decoded.value) };
        Ok(Patch { change, faults })
    }

    /// The object with the patch applied; the error says why it does not fit.
    pub fn apply(&self, object: &Value) -> std::result::Result<Value, String> {
        let mut changed = object.clone();
        match &self.change {
            Change::Json(patch) => apply_operations(&mut changed, patch)?,
            Change::Merge(patch) => json_patch::merge(&mut changed, patch),
            Change::Strategic(patch) => merge_strategically(&mut changed, patch, ""),
        }
        // Each part may be shallow enough, and what they make together could be stored and never be read again.
        match is_deep(&changed) {
            true => Err(format!("the patch makes an object of more than {DEPTH_MAX} levels")),
            false => Ok(changed),
        }
    }
}

fn operations(patch: Value) -> Result<json_patch::Patch> {
    let patch: json_patch::Patch =
        serde_json::from_value(patch).map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    let found = patch.0.len();
    if found > OPERATIONS_MAX {
        let why = format!("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {found}");
        return Err(Status::too_large(why));
    }
    Ok(patch)
}

fn unknown_members(operations: &Value) -> Vec<String> {
    let operations = operations.as_array().into_iter().flatten().enumerate();
    let names = operations.flat_map(|(index, operation)| {
        operation.as_object().into_iter().flat_map(Map::keys).map(move |name| (index, name))
    });
    let unknown = names.filter(|(_, name)| !["op", "path", "from", "value"].contains(&name.as_str()));
    unknown.map(|(index, name)| format!("unknown field {:?}", format!("[{index}].{name}"))).collect()
}

/// Metadata does not count: it is as deep as the rest, by the fields that managers have, and a bit more.
fn is_deep(object: &Value) -> bool {
    let members = object.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata");
    members.into_iter().any(|(_, value)| depth(value) >= DEPTH_MAX)
}

/// One by one, as copies could grow and nest without end.
fn apply_operations(object: &mut Value, patch: &json_patch::Patch) -> std::result::Result<(), String> {
    let mut copied = 0;
    for operation in &patch.0 {
        if tests_for_nothing(object, operation) {
            continue;
        }
        let source = match operation {
            PatchOperation::Copy(copy) => Some(&copy.from),
            PatchOperation::Move(r#move) => Some(&r#move.from),
            _ => None,
        };
        if let Some(value) = source.and_then(|from| object.pointer(from.as_str())) {
            copied += if matches!(operation, PatchOperation::Copy(_)) { value.to_string().len() } else { 0 };
            if copied > COPIED_BYTES_MAX || depth(value) > DEPTH_MAX {
                return Err(format!("copies of more than {COPIED_BYTES_MAX} bytes or {DEPTH_MAX} levels are not made"));
            }
        }
        if operation.path().as_str().matches('/').count() > DEPTH_MAX {
            return Err(format!("a path of more than {DEPTH_MAX} levels is not followed"));
        }
        json_patch::patch(object, std::slice::from_ref(operation))
            .map_err(|error| format!("the server rejected our request due to an error in our request: {error}"))?;
    }
    Ok(())
}

/// A test for null holds where there is nothing: controllers ask so for a first finalizer.
fn tests_for_nothing(object: &Value, operation: &PatchOperation) -> bool {
    matches!(operation, PatchOperation::Test(test) if test.value.is_null() && object.pointer(test.path.as_str()).is_none())
}

/// Like a merge patch, but some lists are sets or are keyed, and directives say what to do with the rest.
fn merge_strategically(target: &mut Value, patch: &Value, name: &str) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_maps(target, patch),
        (Value::Array(target), Value::Array(patch)) if name == "finalizers" => {
            patch
                .iter()
                .filter(|item| !target.contains(item))
                .cloned()
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|item| target.push(item));
        }
        (Value::Array(target), Value::Array(patch)) if list_key(name).is_some() => {
            merge_keyed(target, patch, list_key(name).unwrap_or_default());
        }
        (target, patch) => *target = without_directives(patch),
    }
}

/// Lists of the built-in kinds that are merged by a key.
fn list_key(name: &str) -> Option<&'static str> {
    match name {
        "ownerReferences" => Some("uid"),
        "conditions" => Some("type"),
        "matchConditions" | "variables" => Some("name"),
        _ => None,
    }
}

fn merge_maps(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    if patch.get("$patch").and_then(Value::as_str) == Some("replace") {
        target.clear();
    }
    for (key, value) in patch {
        match (key.strip_prefix("$deleteFromPrimitiveList/"), value) {
            (Some(list), Value::Array(gone)) => {
                if let Some(Value::Array(list)) = target.get_mut(list) {
                    list.retain(|item| !gone.contains(item));
                }
            }
            // Which keys stay is nothing that the built-in kinds here depend on; order is brought in below.
            _ if key.starts_with('$') => {}
            (_, Value::Null) => drop(target.remove(key)),
            (_, value) if value.get("$patch").and_then(Value::as_str) == Some("delete") => drop(target.remove(key)),
            (_, value) => match target.get_mut(key) {
                Some(old) => merge_strategically(old, value, key),
                None => drop(target.insert(key.clone(), without_directives(value))),
            },
        }
    }
    for (name, order) in patch.iter().filter_map(|(key, order)| key.strip_prefix("$setElementOrder/").zip(Some(order)))
    {
        if let (Some(key), Some(Value::Array(list)), Some(order)) =
            (list_key(name), target.get_mut(name), order.as_array())
        {
            let at = |item: &Value| order.iter().position(|wanted| wanted.get(key) == item.get(key));
            // What the client does not know of stays behind what it knows.
            list.sort_by_key(|item| at(item).unwrap_or(order.len()));
        }
    }
}

fn merge_keyed(target: &mut Vec<Value>, patch: &[Value], key: &str) {
    for item in patch {
        let found = target.iter().position(|old| old.get(key) == item.get(key));
        let delete = item.get("$patch").and_then(Value::as_str) == Some("delete");
        match found {
            Some(index) if delete => drop(target.remove(index)),
            Some(index) => merge_strategically(&mut target[index], item, ""),
            None if delete => {}
            None => target.push(without_directives(item)),
        }
    }
}

/// What is new comes without nulls, which delete, and without directives, which are no data.
fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| !key.starts_with('$') && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_directives(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(without_directives).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn apply(media: &str, patch: Value, object: Value) -> Value {
        Patch::parse(media, patch.to_string().as_bytes(), true).unwrap().apply(&object).unwrap()
    }

    #[test_case(json!({"data": {"b": "2"}}) => json!({"data": {"a": "1", "b": "2"}}); "maps merge")]
    #[test_case(json!({"data": {"a": null}}) => json!({"data": {}}); "null deletes")]
    #[test_case(json!({"data": {"$patch": "replace", "c": "3"}}) => json!({"data": {"c": "3"}}); "replace")]
    #[test_case(json!({"data": {"$patch": "delete"}}) => json!({}); "delete")]
    #[test_case(json!({"$setElementOrder/x": ["a"], "n": {"in": null, "b": 1}}) => json!({"data": {"a": "1"}, "n": {"b": 1}}); "directives are no data")]
    fn strategic(patch: Value) -> Value {
        apply(STRATEGIC, patch, json!({"data": {"a": "1"}}))
    }

    #[test]
    fn strategic_lists_of_metadata_are_sets_and_keyed() {
        let object = json!({"metadata": {"finalizers": ["a/1"], "ownerReferences": [{"uid": "u", "name": "x"}]}});
        let patch =
            json!({"metadata": {"finalizers": ["b/2"], "ownerReferences": [{"uid": "u", "name": "y"}, {"uid": "v"}]}});
        let merged = apply(STRATEGIC, patch, object);
        assert_eq!(merged["metadata"]["finalizers"], json!(["a/1", "b/2"]));
        assert_eq!(merged["metadata"]["ownerReferences"], json!([{"uid": "u", "name": "y"}, {"uid": "v"}]));
        let removed = apply(STRATEGIC, json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}}), merged);
        assert_eq!(removed["metadata"]["finalizers"], json!(["b/2"]));
    }

    #[test]
    fn json_and_merge_patches() {
        let patched = apply(JSON, json!([{"op": "replace", "path": "/a", "value": 2}]), json!({"a": 1}));
        assert_eq!(patched, json!({"a": 2}));
        assert_eq!(apply(MERGE, json!({"a": null, "b": [1]}), json!({"a": 1, "b": [2, 3]})), json!({"b": [1]}));
        let test = Patch::parse(JSON, br#"[{"op": "test", "path": "/a", "value": 9}]"#, false).unwrap();
        assert!(test.apply(&json!({"a": 1})).is_err());
        let first = json!([{"op": "test", "path": "/f", "value": null}, {"op": "add", "path": "/f", "value": ["x"]}]);
        assert_eq!(apply(JSON, first, json!({})), json!({"f": ["x"]}));
    }

    #[test_case(MERGE, r#"{"a": 1, "a": {"b": 1, "b": 2}}"# => vec![r#"duplicate field "a.b""#, r#"duplicate field "a""#]; "merge")]
    #[test_case(JSON, r#"[{"op": "add", "path": "/x", "path": "/a", "value": 1, "why": 1}]"#
        => vec![r#"json patch duplicate field "[0].path""#, r#"json patch unknown field "[0].why""#]; "operations")]
    #[test_case(STRATEGIC, r#"{"a": 1}"# => Vec::<String>::new(); "none")]
    fn what_a_patch_says_twice_or_in_vain(media: &str, text: &str) -> Vec<String> {
        Patch::parse(media, text.as_bytes(), true).unwrap().faults
    }

    #[test]
    fn copies_do_not_grow_without_end() {
        let mut operations = vec![json!({"op": "add", "path": "/a", "value": "x".repeat(1000)})];
        operations.extend((0..40).map(|i| json!({"op": "copy", "from": "", "path": format!("/b{i}")})));
        let patch = Patch::parse(JSON, Value::Array(operations).to_string().as_bytes(), false).unwrap();
        assert!(patch.apply(&json!({})).is_err_and(|why| why.contains("copies of more than")));
    }

    /// Found by reading: what is nested deeper than a reader takes would be refused by every read, alone and in lists.
    #[test]
    fn parts_that_are_shallow_make_nothing_deep() {
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
        let path = "/a".repeat(60);
        let add = json!([{"op": "add", "path": format!("{path}/b"), "value": nested(60)}]);
        let patch = Patch::parse(JSON, add.to_string().as_bytes(), false).unwrap();
        assert!(patch.apply(&nested(61)).is_err_and(|why| why.contains("more than 100 levels")));
        assert_eq!(Patch::parse(MERGE, nested(120).to_string().as_bytes(), false).unwrap_err().code, 400);
        let managed = json!({"metadata": {"managedFields": [nested(101)]}, "spec": nested(99)});
        let merge = Patch::parse(MERGE, br#"{"spec": {"b": 1}}"#, false).unwrap();
        assert!(merge.apply(&managed).is_ok());
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        assert_eq!(Patch::parse(STRATEGIC, b"{}", false).unwrap_err().code, 415);
        assert_eq!(Patch::parse("application/apply-patch+cbor", b"{}", true).unwrap_err().code, 415);
        assert_eq!(Patch::parse(MERGE, b"[]", false).unwrap_err().code, 400);
        assert_eq!(Patch::parse(JSON, b"{}", false).unwrap_err().code, 400);
        let many = Value::Array(vec![json!({"op": "remove", "path": "/a"}); OPERATIONS_MAX + 1]);
        assert_eq!(Patch::parse(JSON, many.to_string().as_bytes(), false).unwrap_err().code, 413);
    }
}
