//! Whether a body is an object of a kind at all, in the words of Kubernetes' decoder, which names Go's types.

mod bytes;
mod definition;
mod embedded;
mod metadata;
mod syntax;
mod time;
mod typed;

use serde_json::Value;

pub(crate) use self::syntax::too_large;
pub(crate) use self::{
    definition::prune_schema,
    metadata::{METADATA, of_item, prune_items},
};
use crate::{
    field::FieldError,
    patch,
    schema::Schema,
    status::{Name, Result, Status},
};

pub(crate) const HEADER: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// What an object should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    /// Kubernetes has a type of its own for it, so that it need not say what it is.
    pub typed: bool,
}

/// How an object came to be: faults are told in other words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sent<'a> {
    Whole(&'a [u8]),
    Patched,
}

/// Why something is no object of a kind.
enum Misform {
    /// What it is cannot be told.
    Unrecognized(String),
    /// It cannot be what it says it is.
    Unfit(String),
}

/// Refuses what is no object of this kind, and brings its metadata into the form that is kept.
pub(crate) fn check(object: &mut Value, kind: &Kind<'_>, sent: Sent<'_>) -> Result<()> {
    // Kubernetes then takes it for something of which it knows no field.
    let nameless =
        kind.typed && matches!(sent, Sent::Patched) && object["kind"] == kind.kind && object["apiVersion"].is_null();
    let fits =
        header(object, kind, sent).and_then(|()| metadata::check(&object["metadata"], kind).map_err(Misform::Unfit));
    fits.and_then(|()| read_typed(object, kind)).map_err(|why| refusal(why, object, kind, sent))?;
    metadata::tidy(object, kind.typed);
    if nameless {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let why = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(Status::bad_request(why));
    }
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (found, expected) = (text("apiVersion"), kind.api_version);
    if found != expected {
        let why = format!("the API version in the data ({found}) does not match the expected API version ({expected})");
        return Err(Status::bad_request(why));
    }
    let found = text("kind");
    if found == kind.kind { Ok(()) } else { Err(other_kind(object, &found, kind)) }
}

/// Refuses objects within the object whose header or metadata have wrong types, and brings theirs into form too.
pub(crate) fn check_embedded(object: &mut Value, schema: &Schema, kind: &Kind<'_>, sent: Sent<'_>) -> Result<()> {
    let fits = embedded_fault(schema, object).map_err(|error| Misform::Unfit(error.to_string()));
    fits.map_err(|why| refusal(why, object, kind, sent))
}

/// The first fault of embedded objects in a part of an object.
pub(crate) fn embedded_fault(schema: &Schema, value: &mut Value) -> std::result::Result<(), FieldError> {
    embedded::check(schema, value, "")
}

/// What the store holds may have been put there by anybody: leaves of headers and metadata, also of embedded objects, what can be
/// that. True if they all could.
pub(crate) fn keep_fit(schema: &Schema, object: &mut Value) -> bool {
    embedded::keep_fit(schema, object)
}

/// Whether a text is a time as metadata has them.
pub(crate) fn is_time(text: &str) -> bool {
    time::second(text).is_ok()
}

fn read_typed(object: &mut Value, kind: &Kind<'_>) -> std::result::Result<(), Misform> {
    if !kind.typed {
        return Ok(());
    }
    definition::check(object, kind.kind).and_then(|()| typed::read(object, kind.kind)).map_err(Misform::Unfit)
}

/// The same of a configuration to apply, of which every word counts.
pub(crate) fn check_applied(object: &Value, kind: &Kind<'_>) -> Result<()> {
    if !object.is_object() && !object.is_null() {
        let why = patch::unlike(object, "Go value of type map[string]interface {}");
        let why = format!("error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}");
        return Err(Status::bad_request(why));
    }
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    if (text("apiVersion"), text("kind")) != (kind.api_version, kind.kind) {
        let version = match text("apiVersion") {
            version if version.contains('/') => version.to_owned(),
            version => format!("/{version}"),
        };
        return Err(Status::bad_request(format!("invalid object type: {version}, Kind={}", text("kind"))));
    }
    let unfit = |why: String| unfit(kind.api_version, kind.kind, kind.kind, &why);
    let typed = if kind.typed { definition::check(object, kind.kind) } else { Ok(()) };
    metadata::check(&object["metadata"], kind).and(typed).map_err(unfit)
}

/// What an apply has made of an object, read as if it had been sent: bytes and times must be some, and what says nothing is not kept.
/// Kubernetes has this text with a code of 500.
pub(crate) fn check_made(object: &mut Value, kind: &Kind<'_>) -> Result<()> {
    if kind.typed {
        let version = match kind.api_version {
            version if version.contains('/') => version.to_owned(),
            version => format!("/{version}"),
        };
        let what = format!("{version}, Kind={}", kind.kind);
        let refuse = |why: String| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let why = format!("unable to convert unstructured object to {what}: {why}");
            Status::bad_request(format!("failed to convert new object (/{name}; {what}) to proper version: {why}"))
        };
        let mut made = object.clone();
        typed::read(&mut made, kind.kind).map_err(refuse)?;
        *object = made;
    }
    metadata::tidy(object, kind.typed);
    Ok(())
}

/// For a body that is not even JSON.
pub(crate) fn unrecognized(error: &serde_json::Error, body: &[u8], kind: &Kind<'_>) -> Box<Status> {
    if let Some(number) = syntax::too_large(error, body) {
        return unfit(kind.api_version, kind.kind, kind.kind, &out_of_range(&number, "Go value"));
    }
    let why = format!("couldn't get version/kind; json parse error: {}", syntax::fault(error, body));
    unrecognizable(&why, body, kind.kind)
}

pub(crate) fn out_of_range(number: &str, target: &str) -> String {
    format!("json: cannot unmarshal number {number} into {target} of type float64")
}

/// What is wrong with JSON, in Go's words.
pub(crate) fn json_fault(error: &serde_json::Error, body: &[u8]) -> String {
    syntax::fault(error, body)
}

/// The same of one that is not YAML.
pub(crate) fn unrecognized_yaml(error: &dyn std::fmt::Display, body: &[u8], kind: &str) -> Box<Status> {
    unrecognizable(&format!("yaml: {error}"), body, kind)
}

fn header(object: &mut Value, kind: &Kind<'_>, sent: Sent<'_>) -> std::result::Result<(), Misform> {
    let parse = |why: String| Misform::Unrecognized(format!("couldn't get version/kind; json parse error: {why}"));
    if !object.is_object() && !object.is_null() {
        return Err(parse(patch::unlike(object, &format!("Go value of type {HEADER}"))));
    }
    for key in ["apiVersion", "kind"] {
        match &object[key] {
            Value::String(_) | Value::Null => {}
            other => return Err(parse(patch::unlike(other, &format!("Go struct field .{key} of type string")))),
        }
    }
    if let Some(version) = object["apiVersion"].as_str().filter(|version| version.matches('/').count() > 1) {
        return Err(Misform::Unrecognized(format!("unexpected GroupVersion string: {version}")));
    }
    // The group that has no name need not be left out.
    if let Some(version) = object["apiVersion"].as_str().and_then(|version| version.strip_prefix('/')) {
        object["apiVersion"] = version.to_owned().into();
    }
    let is_missing = |key: &str| object[key].as_str().unwrap_or_default().is_empty();
    if !kind.typed && is_missing("kind") {
        let text = match sent {
            Sent::Whole(body) if body.starts_with(b"{") => String::from_utf8_lossy(body).into_owned(),
            _ => object.to_string(),
        };
        return Err(Misform::Unrecognized(format!("Object 'Kind' is missing in '{text}'")));
    }
    let missing: Vec<_> = [("apiVersion", kind.api_version), ("kind", kind.kind)]
        .into_iter()
        .filter(|(key, _)| kind.typed && is_missing(key))
        .collect();
    for (key, value) in missing {
        object[key] = value.into();
    }
    Ok(())
}

fn refusal(why: Misform, object: &Value, kind: &Kind<'_>, sent: Sent<'_>) -> Box<Status> {
    match (sent, why) {
        (Sent::Patched, Misform::Unrecognized(why) | Misform::Unfit(why)) => {
            Status::invalid(&Name::new("", ""), "", &[FieldError::invalid("patch", object.to_string(), why)])
        }
        (Sent::Whole(body), Misform::Unrecognized(why)) => unrecognizable(&why, body, kind.kind),
        (Sent::Whole(_), Misform::Unfit(why)) => {
            unfit(kind.api_version, object["kind"].as_str().unwrap_or(kind.kind), kind.kind, &why)
        }
    }
}

/// What is of one kind and cannot be taken for another.
pub(crate) fn unfit(api_version: &str, found: &str, kind: &str, why: &str) -> Box<Status> {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    Status::bad_request(format!("{found} in version {version:?} cannot be handled as a {kind}: {why}"))
}

fn unrecognizable(why: &str, body: &[u8], kind: &str) -> Box<Status> {
    let excerpt = syntax::excerpt(body);
    Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({excerpt})"))
}

fn other_kind(object: &Value, found: &str, kind: &Kind<'_>) -> Box<Status> {
    if kind.typed {
        return unfit(kind.api_version, found, kind.kind, "unknown conversion");
    }
    let group = kind.api_version.split_once('/').map_or("", |(group, _)| group);
    let error = FieldError::invalid("kind", found, format!("must be {}", kind.kind));
    Status::invalid(&Name::new(group, found), object["metadata"]["name"].as_str().unwrap_or_default(), &[error])
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    const THING: Kind<'_> = Kind { api_version: "g.io/v1", kind: "Thing", typed: false };
    const MAP: Kind<'_> = Kind { api_version: "v1", kind: "ConfigMap", typed: true };

    fn refused(body: &str, kind: &Kind<'_>) -> String {
        let mut object = serde_json::from_str(body).unwrap();
        check(&mut object, kind, Sent::Whole(body.as_bytes())).unwrap_err().message
    }

    /// Texts of kube-apiserver 1.37.
    #[test_case("[]" => r#"the object provided is unrecognized (must be of type Thing): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)"#; "a list")]
    #[test_case("null" => "the object provided is unrecognized (must be of type Thing): Object 'Kind' is missing in 'null' (6e756c6c)"; "null")]
    #[test_case("{}" => "the object provided is unrecognized (must be of type Thing): Object 'Kind' is missing in '{}' ({})"; "empty")]
    #[test_case(r#"{"apiVersion": 7, "kind": "Thing"}"# => r#"the object provided is unrecognized (must be of type Thing): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string ({"apiVersion": 7, "kind": "Thi ...)"#; "no version")]
    #[test_case(r#"{"kind": "Thing"}"# => "the API version in the data () does not match the expected API version (g.io/v1)"; "missing version")]
    #[test_case(r#"{"apiVersion": "v1", "kind": "Thing"}"# => "the API version in the data (v1) does not match the expected API version (g.io/v1)"; "another version")]
    #[test_case(r#"{"apiVersion": "g.io/v1", "kind": "Other", "metadata": {"name": "x"}}"# => r#"Other.g.io "x" is invalid: kind: Invalid value: "Other": must be Thing"#; "another kind")]
    #[test_case(r#"{"apiVersion": "g.io/v1", "kind": "Thing", "metadata": 7}"# => r#"Thing in version "v1" cannot be handled as a Thing: json: cannot unmarshal number into Go value of type v1.ObjectMeta"#; "no metadata")]
    fn custom(body: &str) -> String {
        refused(body, &THING)
    }

    #[test]
    fn what_has_a_type_need_not_say_what_it_is() {
        let mut object = json!({"metadata": {"name": "a"}});
        check(&mut object, &MAP, Sent::Whole(b"")).unwrap();
        assert_eq!(object, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
        let other = refused(r#"{"apiVersion": "v1", "kind": "Secret"}"#, &MAP);
        assert_eq!(other, r#"Secret in version "v1" cannot be handled as a ConfigMap: unknown conversion"#);
    }

    #[test]
    fn a_patch_that_makes_no_object_is_invalid() {
        let mut made = json!({"apiVersion": "g.io/v1"});
        let status = check(&mut made, &THING, Sent::Patched).unwrap_err();
        let text = r#" "" is invalid: patch: Invalid value: "{\"apiVersion\":\"g.io/v1\"}": Object 'Kind' is missing in '{"apiVersion":"g.io/v1"}'"#;
        assert_eq!((status.code, status.message.as_str()), (422, text));
    }
}
