//! Answers as bytes: JSON, text, streams, warnings.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::Stream;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER},
};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::Value;

use crate::status::Status;

pub type Body = UnsyncBoxBody<Bytes, Infallible>;

const WARNING: HeaderName = HeaderName::from_static("warning");
/// Beyond this many characters in all, each warning is cut, so that headers stay small.
const WARNINGS_CHARS_MAX: usize = 4096;
const WARNING_CHARS_MAX: usize = 256;

pub const JSON: &str = "application/json";

pub fn json(code: u16, value: &Value) -> Response<Body> {
    bytes_of(code, JSON, print(value))
}

pub fn print(value: &Value) -> Bytes {
    let mut text = value.to_string();
    text.push('\n');
    text.into()
}

pub fn text(code: u16, text: impl Into<String>) -> Response<Body> {
    bytes_of(code, "text/plain; charset=utf-8", text.into().into())
}

pub fn bytes_of(code: u16, content_type: &str, bytes: Bytes) -> Response<Body> {
    let body = Full::new(bytes).boxed_unsync();
    respond(code, content_type, body)
}

pub fn stream(events: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    use futures_util::StreamExt;
    let frames = events.map(|bytes| Ok(Frame::data(bytes)));
    respond(200, "application/json", StreamBody::new(frames).boxed_unsync())
}

fn respond(code: u16, content_type: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(content_type) {
        headers.insert(CONTENT_TYPE, value);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

pub fn refusal(status: &Status) -> Response<Body> {
    let mut response = match status.plain {
        true => text(status.code, format!("{}\n", status.message)),
        false => json(status.code, &status.to_json()),
    };
    if let Some(seconds) = status.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// What a client should know although its request was done. Each text once.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    texts: Vec<String>,
    /// Gates that have held something back, once for each field.
    suppressed: Vec<String>,
}

impl Warnings {
    pub fn add(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }

    pub fn suppress(&mut self, gate: &str) {
        self.suppressed.push(gate.to_owned());
    }

    pub fn suppressed(&self) -> &[String] {
        &self.suppressed
    }

    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    pub fn write(&self, response: &mut Response<Body>) {
        let total: usize = self.texts.iter().map(|text| text.chars().count()).sum();
        for text in &self.texts {
            let cut = if total > WARNINGS_CHARS_MAX { WARNING_CHARS_MAX } else { usize::MAX };
            if let Ok(value) = HeaderValue::from_bytes(warning(text, cut).as_bytes()) {
                response.headers_mut().append(WARNING, value);
            }
        }
    }
}

fn warning(text: &str, cut: usize) -> String {
    let clean = text.chars().take(cut).map(|c| if c.is_control() { ' ' } else { c });
    let mut quoted = String::from("299 - \"");
    for c in clean {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted_deduplicated_and_bounded() {
        let mut warnings = Warnings::default();
        warnings.add("unknown field \"spec.x\"");
        warnings.add("unknown field \"spec.x\"");
        warnings.add("two\nlines");
        let mut response = text(200, "ok");
        warnings.write(&mut response);
        let values: Vec<_> = response.headers().get_all(WARNING).iter().collect();
        assert_eq!(values, [r#"299 - "unknown field \"spec.x\"""#, r#"299 - "two lines""#]);
        let mut many = Warnings::default();
        (0..20).for_each(|i| many.add(format!("{i}{}", "x".repeat(500))));
        let mut response = text(200, "ok");
        many.write(&mut response);
        assert!(response.headers().get_all(WARNING).iter().all(|value| value.len() < 300));
    }
}
