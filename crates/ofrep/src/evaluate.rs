//! Answers of the protocol (OpenAPI 0.3.0), as status and body.

use featureset::{Row, canonical::digest_of};
use serde_json::{Value, json};

use crate::{serve::EVENTS, view::View};

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// `None` for 304.
    pub body: Option<Value>,
    pub etag: Option<String>,
}

impl Answer {
    fn new(status: u16, body: Value) -> Answer {
        Answer { status, body: Some(body), etag: None }
    }
}

/// One gate, for the version that the context names, else for the one the cluster is to run.
pub fn single(view: &View, key: &str, body: &[u8]) -> Answer {
    let row = match row_for(view, body) {
        Ok(row) => row,
        Err(Refusal::Caller(code, details)) => {
            return Answer::new(400, json!({"key": key, "errorCode": code, "errorDetails": details}));
        }
        Err(Refusal::Server(details)) => return Answer::new(500, json!({"errorDetails": details})),
    };
    match flag(view, row, key) {
        Some(flag) => Answer::new(200, flag),
        None => {
            let details = format!("version {:?} does not know the gate {key:?}", row.version);
            Answer::new(404, json!({"key": key, "errorCode": "FLAG_NOT_FOUND", "errorDetails": details}))
        }
    }
}

/// All gates. `if_none_match` is the header; an answer that would be the same is 304.
pub fn bulk(view: &View, body: &[u8], if_none_match: Option<&str>) -> Answer {
    let row = match row_for(view, body) {
        Ok(row) => row,
        Err(Refusal::Caller(code, details)) => {
            return Answer::new(400, json!({"errorCode": code, "errorDetails": details}));
        }
        Err(Refusal::Server(details)) => return Answer::new(500, json!({"errorDetails": details})),
    };
    let names = row.enabled.iter().chain(&row.disabled).collect::<std::collections::BTreeSet<_>>();
    let flags: Vec<Value> = names.into_iter().filter_map(|name| flag(view, row, name)).collect();
    let body = json!({
        "flags": flags,
        "metadata": {"version": row.version, "featureSet": view.feature_set},
        "eventStreams": [{"type": "sse", "endpoint": {"requestUri": EVENTS}, "inactivityDelaySec": 120}],
    });
    let etag = format!("\"{}\"", digest_of(&body));
    if if_none_match.is_some_and(|header| matches(header, &etag)) {
        return Answer { status: 304, body: None, etag: Some(etag) };
    }
    Answer { status: 200, body: Some(body), etag: Some(etag) }
}

/// A list of tags, weak ones too, or any.
fn matches(header: &str, etag: &str) -> bool {
    header.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

enum Refusal {
    Caller(&'static str, String),
    Server(String),
}

fn row_for<'a>(view: &'a View, body: &[u8]) -> Result<&'a Row, Refusal> {
    let named = version_of(body)?;
    if view.rows.is_empty() {
        return Err(Refusal::Server("the cluster has no row of gates yet".to_owned()));
    }
    let rows = || format!("there are rows for {:?}", view.versions());
    match (named, &view.desired) {
        (Some(version), _) => view.row(&version).ok_or_else(|| {
            Refusal::Caller("INVALID_CONTEXT", format!("there is no row for version {version:?}; {}", rows()))
        }),
        (None, Some(desired)) => view.row(desired).ok_or_else(|| {
            let why = format!("the cluster is to run {desired:?}, which has no row yet; {}", rows());
            Refusal::Server(why)
        }),
        (None, None) => {
            Err(Refusal::Caller("INVALID_CONTEXT", format!("name your version in the context; {}", rows())))
        }
    }
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

/// DISABLED is not for a gate that is off: it would mean that the gate does not work.
fn flag(view: &View, row: &Row, key: &str) -> Option<Value> {
    let value = row.get(key)?;
    let mut metadata = json!({"version": row.version, "featureSet": view.feature_set, "digest": row.digest()});
    if let Some(info) = view.info(&row.version, key) {
        metadata["stage"] = info.stage.clone().into();
        metadata["owner"] = info.owner.clone().into();
    }
    let variant = if value { "on" } else { "off" };
    Some(json!({"key": key, "value": value, "reason": "STATIC", "variant": variant, "metadata": metadata}))
}
