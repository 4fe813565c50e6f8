//! Answers as bytes: JSON, text, streams, warnings.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::Stream;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::Value;

use super::style::Style;
use crate::status::Status;

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

const WARNING: HeaderName = HeaderName::from_static("warning");
/// Beyond this many characters in all, each warning is cut and no more are told than these have room for, so that headers stay small.
const WARNINGS_CHARS_MAX: usize = 4096;
const WARNING_CHARS_MAX: usize = 256;

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

pub(crate) const JSON: &str = "application/json";

pub(crate) fn print(value: &Value) -> Bytes {
    let mut text = Vec::with_capacity(1024);
    write(value, &mut text);
    text.push(b'\n');
    text.into()
}

/// Prints into bytes, which is a third cheaper than by way of a formatter.
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) {
    // Neither memory nor keys that are texts can fail.
    let _ = serde_json::to_writer(out, value);
}

pub(crate) fn text(code: u16, text: impl Into<String>) -> Response<Body> {
    let mut response = bytes_of(code, "text/plain; charset=utf-8", text.into().into());
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

/// An answer without a word.
pub(crate) fn empty(code: u16) -> Response<Body> {
    let mut response = bytes_of(code, "", Bytes::new());
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// What is told as JSON, in the style a client wants.
pub(crate) fn styled(code: u16, json: Bytes, style: Style) -> Response<Body> {
    bytes_of(code, style.media(), style.print(json))
}

pub(crate) fn bytes_of(code: u16, content_type: &str, bytes: Bytes) -> Response<Body> {
    let body = Full::new(bytes).boxed_unsync();
    respond(code, content_type, body)
}

pub(crate) fn stream(events: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
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

pub(crate) fn refusal(status: &Status, style: Style) -> Response<Body> {
    let mut response = if status.plain {
        text(status.code, format!("{}\n", status.message))
    } else {
        styled(status.code, print(&status.to_json()), style)
    };
    if status.at_door {
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    }
    if let Some(seconds) = status.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// What a client should know although its request was done. Each text once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings {
    texts: Vec<String>,
    /// Gates that have held something back, once for each field.
    suppressed: Vec<String>,
}

impl Warnings {
    pub(crate) fn add(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }

    pub(crate) fn suppress(&mut self, gate: &str) {
        self.suppressed.push(gate.to_owned());
    }

    pub(crate) fn suppressed(&self) -> &[String] {
        &self.suppressed
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    pub(crate) fn write(&self, response: &mut Response<Body>) {
        for text in self.told() {
            if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
                response.headers_mut().append(WARNING, value);
            }
        }
    }

    fn told(&self) -> Vec<String> {
        let chars = |text: &String| text.chars().count();
        if self.texts.iter().map(chars).sum::<usize>() <= WARNINGS_CHARS_MAX {
            return self.texts.iter().map(|text| warning(text, usize::MAX)).collect();
        }
        let mut room = WARNINGS_CHARS_MAX;
        let fit = self.texts.iter().take_while(|text| {
            let any_left = room > 0;
            room = room.saturating_sub(chars(text).min(WARNING_CHARS_MAX));
            any_left
        });
        fit.map(|text| warning(text, WARNING_CHARS_MAX)).collect()
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
        let told: Vec<_> = response.headers().get_all(WARNING).iter().collect();
        assert!(told.iter().all(|value| value.len() < 300));
        assert_eq!(told.len(), 16, "no more than there is room for");
    }
}
