//! Patches: a changed copy of an object from the object and what a client sent.

mod merge;
mod operations;
mod shape;
mod strategic;

use http::HeaderMap;
use serde_json::{Map, Value};

pub(crate) use self::shape::unlike;

use crate::{
    decode::{self, DEPTH_MAX, depth},
    field::FieldError,
    form,
    serve::query::FieldValidation,
    status::{Name, Result, Status},
};

pub(crate) const JSON: &str = "application/json-patch+json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

#[derive(Clone, Debug)]
pub(crate) struct Patch {
    change: Change,
    mode: FieldValidation,
    /// What is not as it should be and does no harm: fields that come twice, and those of operations that nobody knows.
    pub faults: Vec<String>,
}

/// What was sent, as far as it is JSON.
#[derive(Clone, Debug)]
enum Change {
    Json(Value),
    Merge(Value),
    Strategic(Value),
}

/// Which media types a resource takes.
pub(crate) fn accepted(strategic: bool) -> &'static [&'static str] {
    if strategic { &[JSON, MERGE, STRATEGIC, APPLY] } else { &[JSON, MERGE, APPLY] }
}

/// Built-in kinds are behind routes, which look for themselves at what they are sent: one of several types will do.
pub(crate) fn check_route(headers: &HeaderMap, strategic: bool) -> Result<()> {
    let name = |part: &str| part.split(';').next().unwrap_or_default().trim_matches(' ').to_owned();
    if media(headers).split(',').any(|part| accepted(strategic).contains(&name(part).as_str())) {
        Ok(())
    } else {
        Err(Status::no_route_takes())
    }
}

/// Whether a resource takes patches of this type.
pub(crate) fn check_media(headers: &HeaderMap, strategic: bool) -> Result<()> {
    if accepted(strategic).contains(&named(media(headers))) {
        Ok(())
    } else {
        Err(Status::unsupported_media_type(accepted(strategic)))
    }
}

/// Whether a body is a configuration to apply rather than a patch.
pub(crate) fn is_apply(content_type: &str) -> bool {
    named(content_type) == APPLY
}

/// The type of a body, as it is told.
pub(crate) fn media(headers: &HeaderMap) -> &str {
    headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// A type without what follows it.
fn named(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default()
}

impl Patch {
    /// Whether a patch is one at all shows when there is an object to change, as in Kubernetes.
    pub(crate) fn parse(content_type: &str, body: &[u8], strategic: bool, mode: FieldValidation) -> Result<Patch> {
        let media = named(content_type);
        if media == APPLY || !accepted(strategic).contains(&media) {
            return Err(Status::unsupported_media_type(accepted(strategic)));
        }
        let decoded = decode::json(body).map_err(|error| not_json(&error, body, media))?;
        let faults = decoded.twice.told();
        if media == JSON {
            let unknown = unknown_members(&decoded.value);
            let faults = faults.into_iter().chain(unknown).map(|fault| format!("json patch {fault}")).collect();
            return Ok(Patch { change: Change::Json(decoded.value), mode, faults });
        }
        let change = if media == MERGE { Change::Merge(decoded.value) } else { Change::Strategic(decoded.value) };
        Ok(Patch { change, mode, faults })
    }

    /// What the object becomes with the patch applied, which may be no object.
    pub(crate) fn apply(&self, object: &Value) -> Result<Value> {
        let mut changed = object.clone();
        match &self.change {
            Change::Json(patch) => {
                operations::apply(&mut changed, shape::list(patch, self.mode)?).map_err(|_| Status::rejected())?;
            }
            Change::Merge(patch) => match (changed.as_object_mut(), shape::map(patch, self.mode)?) {
                (Some(object), Some(patch)) => merge::merge(object, patch),
                _ => changed = patch.clone(),
            },
            Change::Strategic(patch) => match patch {
                Value::Object(_) => strategic::merge(&mut changed, patch)?,
                Value::Null => {}
                other => {
                    return Err(Status::bad_request(shape::unlike(other, "Go value of type map[string]interface {}")));
                }
            },
        }
        // Each part may be shallow enough, and what they make together could be stored and never be read again.
        if !is_deep(&changed) { Ok(changed) } else { Err(misshapen("exceeded max depth")) }
    }
}

/// The faults of JSON in Kubernetes' words are those of Go's decoder, which clients do not look at.
fn not_json(error: &serde_json::Error, body: &[u8], media: &str) -> Box<Status> {
    if let Some(number) = form::too_large(error, body) {
        let target = if media == JSON { "Go struct field jsonPatchOp.value" } else { "Go value" };
        let why = form::out_of_range(&number, target);
        return Status::bad_request(format!("error decoding patch: {why}"));
    }
    if error.is_data() {
        Status::bad_request("error decoding patch: exceeded max depth")
    } else {
        Status::bad_request("invalid JSON patch")
    }
}

/// A patch of one form that has made an object of another.
fn misshapen(why: &str) -> Box<Status> {
    Status::invalid(&Name::new("", ""), "", &[FieldError::invalid("patch", Value::Null, why)])
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn parse(media: &str, patch: &str) -> Patch {
        Patch::parse(media, patch.as_bytes(), true, FieldValidation::Warn).unwrap()
    }

    fn apply(media: &str, patch: Value, object: Value) -> Value {
        parse(media, &patch.to_string()).apply(&object).unwrap()
    }

    #[test]
    fn json_and_merge_patches() {
        let patched = apply(JSON, json!([{"op": "replace", "path": "/a", "value": 2}]), json!({"a": 1}));
        assert_eq!(patched, json!({"a": 2}));
        assert_eq!(apply(MERGE, json!({"a": null, "b": [1]}), json!({"a": 1, "b": [2, 3]})), json!({"b": [1]}));
        let first = json!([{"op": "test", "path": "/f", "value": null}, {"op": "add", "path": "/f", "value": ["x"]}]);
        assert_eq!(apply(JSON, first, json!({})), json!({"f": ["x"]}));
    }

    #[test_case(MERGE, r#"{"a": 1, "a": {"b": 1, "b": 2}}"# => vec![r#"duplicate field "a.b""#, r#"duplicate field "a""#]; "merge")]
    #[test_case(JSON, r#"[{"op": "add", "path": "/x", "path": "/a", "value": 1, "why": 1}]"#
        => vec![r#"json patch duplicate field "[0].path""#, r#"json patch unknown field "[0].why""#]; "operations")]
    #[test_case(STRATEGIC, r#"{"a": 1}"# => Vec::<String>::new(); "none")]
    fn what_a_patch_says_twice_or_in_vain(media: &str, text: &str) -> Vec<String> {
        parse(media, text).faults
    }

    /// Found by reading: what is nested deeper than a reader takes would be refused by every read, alone and in lists.
    #[test]
    fn parts_that_are_shallow_make_nothing_deep() {
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
        let path = "/a".repeat(60);
        let add = json!([{"op": "add", "path": format!("{path}/b"), "value": nested(60)}]);
        let deep = parse(JSON, &add.to_string()).apply(&nested(61)).unwrap_err();
        assert_eq!(
            (deep.code, deep.message.as_str()),
            (422, r#" "" is invalid: patch: Invalid value: null: exceeded max depth"#)
        );
        let deep = Patch::parse(MERGE, nested(120).to_string().as_bytes(), false, FieldValidation::Warn).unwrap_err();
        assert_eq!((deep.code, deep.message.as_str()), (400, "error decoding patch: exceeded max depth"));
        let managed = json!({"metadata": {"managedFields": [nested(101)]}, "spec": nested(99)});
        assert!(parse(MERGE, r#"{"spec": {"b": 1}}"#).apply(&managed).is_ok());
    }

    #[test_case(STRATEGIC => 415; "a custom resource")]
    #[test_case("application/apply-patch+cbor" => 415; "a form we do not have")]
    #[test_case("application/json" => 415; "no patch")]
    fn what_is_not_taken(media: &str) -> u16 {
        Patch::parse(media, b"{}", false, FieldValidation::Warn).unwrap_err().code
    }

    /// Codes and texts of kube-apiserver 1.37 (where a fault in an operation was found by what it does: 422, and no more).
    #[test_case(JSON, "Warn", "[", 400, "invalid JSON patch")]
    #[test_case(
        JSON,
        "Warn",
        "{}",
        400,
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    )]
    #[test_case(JSON, "Ignore", "{}", 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch")]
    #[test_case(
        JSON,
        "Warn",
        "[1]",
        400,
        "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"
    )]
    #[test_case(JSON, "Ignore", "[1]", 400, "json: cannot unmarshal number into Go value of type jsonpatch.Operation")]
    #[test_case(
        JSON,
        "Warn",
        r#"[{"op":1,"path":"/a"}]"#,
        400,
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"
    )]
    #[test_case(JSON, "Ignore", r#"[{"op":1,"path":"/a"}]"#, 422, REJECTED)]
    #[test_case(JSON, "Warn", r#"[{"OP":"remove","path":"/a"}]"#, 422, REJECTED)]
    #[test_case(JSON, "Warn", "[null]", 422, REJECTED)]
    #[test_case(MERGE, "Warn", "{", 400, "invalid JSON patch")]
    #[test_case(
        MERGE,
        "Warn",
        "[]",
        400,
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
    )]
    #[test_case(MERGE, "Warn", "null", 400, "Invalid JSON Patch")]
    #[test_case(MERGE, "Ignore", "7", 400, "Invalid JSON Patch")]
    #[test_case(
        STRATEGIC,
        "Warn",
        "[]",
        400,
        "json: cannot unmarshal array into Go value of type map[string]interface {}"
    )]
    fn refused(media: &str, mode: &str, patch: &str, code: u16, message: &str) {
        let mode = if mode == "Ignore" { FieldValidation::Ignore } else { FieldValidation::Warn };
        let parsed = Patch::parse(media, patch.as_bytes(), true, mode);
        let refused = parsed.and_then(|patch| patch.apply(&json!({"a": 1}))).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (code, message));
    }

    const REJECTED: &str = "the server rejected our request due to an error in our request";

    #[test]
    fn operations_are_counted() {
        let many = Value::Array(vec![json!({"op": "remove", "path": "/a"}); shape::OPERATIONS_MAX + 1]);
        assert_eq!(parse(JSON, &many.to_string()).apply(&json!({"a": 1})).unwrap_err().code, 413);
    }
}
