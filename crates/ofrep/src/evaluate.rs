//! Answers of the protocol (OpenAPI 0.3.0), as status and body.

use featureset::{canonical::digest_of, gate::STORE_PREFIX};
use serde_json::{Value, json};

use crate::{
    refusal::Refusal,
    serve::EVENTS,
    sets, store,
    view::{Source, View},
};

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// `None` for 304.
    pub body: Option<Value>,
    pub etag: Option<String>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: Value) -> Answer {
        Answer { status, body: Some(body), etag: None }
    }
}

/// One gate: of the store, or of feature sets for the version that the context names, else for the one the cluster is
/// to run.
pub fn single(view: &View, key: &str, body: &[u8]) -> Answer {
    let flag = version_of(body).and_then(|version| match key.strip_prefix(STORE_PREFIX) {
        // A store has no rows: the version plays no part there.
        Some(name) => store::flag(&view.store, name),
        None => sets::flag(&view.sets, version.as_deref(), key),
    });
    match flag {
        Ok(flag) => Answer::new(200, flag),
        Err(refusal) => refusal.answer(Some(key)),
    }
}

/// All gates. `if_none_match` is the header; an answer that would be the same is 304.
///
/// All or nothing: in half an answer the gates of the other half would pass for gates that nobody knows.
pub fn bulk(view: &View, body: &[u8], if_none_match: Option<&str>) -> Answer {
    let body = match version_of(body).and_then(|version| all(view, version.as_deref())) {
        Ok(body) => body,
        Err(refusal) => return refusal.answer(None),
    };
    let etag = format!("\"{}\"", digest_of(&body));
    if if_none_match.is_some_and(|header| matches(header, &etag)) {
        return Answer { status: 304, body: None, etag: Some(etag) };
    }
    Answer { status: 200, body: Some(body), etag: Some(etag) }
}

fn all(view: &View, version: Option<&str>) -> Result<Value, Refusal> {
    let (mut flags, mut metadata) = (Vec::new(), json!({}));
    if view.sets != Source::NotFollowed {
        sets::flags(&view.sets, version, &mut flags, &mut metadata)?;
    }
    if view.store != Source::NotFollowed {
        store::flags(&view.store, &mut flags, &mut metadata)?;
    }
    Ok(json!({
        "flags": flags,
        "metadata": metadata,
        "eventStreams": [{"type": "sse", "endpoint": {"requestUri": EVENTS}, "inactivityDelaySec": 120}],
    }))
}

/// DISABLED is not for a gate that is off: it would mean that the gate does not work.
pub(crate) fn boolean(key: &str, value: bool, metadata: Value) -> Value {
    let variant = if value { "on" } else { "off" };
    json!({"key": key, "value": value, "reason": "STATIC", "variant": variant, "metadata": metadata})
}

/// A list of tags, weak ones too, or any.
fn matches(header: &str, etag: &str) -> bool {
    header.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

/// The version in the context. An empty body and a context without a targeting key are fine.
fn version_of(body: &[u8]) -> Result<Option<String>, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::Caller("PARSE_ERROR", format!("the body is not JSON: {error}")))?;
    let invalid = |what: &str| Refusal::Caller("INVALID_CONTEXT", what.to_owned());
    let fields =
        body.as_object().ok_or_else(|| Refusal::Caller("PARSE_ERROR", "the body is not an object".to_owned()))?;
    match fields.get("context") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(context)) => match context.get("version") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(version)) => Ok(Some(version.clone())),
            Some(_) => Err(invalid("version in the context must be a text")),
        },
        Some(_) => Err(invalid("the context must be an object")),
    }
}
