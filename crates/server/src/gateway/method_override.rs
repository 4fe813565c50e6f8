//! `X-HTTP-Method-Override`. Go's gateway reads it with posted forms alone: it takes the form out of the body and goes on with
//! the other method, for which etcd has no routes.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
};
use http::{HeaderMap, Method, header};
use tonic::{Code, Status};

const FORM: &str = "application/x-www-form-urlencoded";
const HEADER: &str = "x-http-method-override";

/// The request as it goes on.
pub(super) async fn apply(request: Request, bytes_max: usize) -> Result<Request, Status> {
    let Some(method) = wanted(request.method(), request.headers()) else { return Ok(request) };
    let (mut parts, body) = request.into_parts();
    let invalid = |text: String| Status::new(Code::InvalidArgument, text);
    let body = to_bytes(body, bytes_max).await.map_err(|_| invalid("http: POST too large".to_owned()))?;
    check_form(&body).map_err(invalid)?;
    check_form(parts.uri.query().unwrap_or_default().as_bytes()).map_err(invalid)?;
    parts.method = method;
    Ok(Request::from_parts(parts, Body::empty()))
}

fn wanted(method: &Method, headers: &HeaderMap) -> Option<Method> {
    let text = |name| headers.get(name).map(|value| value.as_bytes());
    let wanted = text(HEADER).filter(|wanted| !wanted.is_empty())?;
    let is_form = *method == Method::POST && text(header::CONTENT_TYPE.as_str()) == Some(FORM.as_bytes());
    // What is no name of a method has no routes either.
    is_form.then(|| Method::from_bytes(&wanted.to_ascii_uppercase()).unwrap_or(Method::OPTIONS))
}

/// What Go says of a form that it cannot read.
fn check_form(form: &[u8]) -> Result<(), String> {
    let mut complaint = None;
    for pair in form.split(|byte| *byte == b'&') {
        if pair.contains(&b';') {
            complaint = Some("invalid semicolon separator in query".to_owned());
            continue;
        }
        let bad = pair.splitn(2, |byte| *byte == b'=').find_map(bad_escape);
        complaint = complaint.or_else(|| bad.map(|escape| format!("invalid URL escape {escape:?}")));
    }
    complaint.map_or(Ok(()), Err)
}

/// The first `%` that two hexadecimal digits do not follow, with what does.
fn bad_escape(text: &[u8]) -> Option<String> {
    let starts = text.iter().enumerate().filter(|(_, byte)| **byte == b'%').map(|(at, _)| at);
    let escape = |at: usize| &text[at..text.len().min(at + 3)];
    let mut escapes = starts.map(escape);
    let bad = escapes.find(|escape| escape.len() < 3 || !escape[1..].iter().all(u8::is_ascii_hexdigit))?;
    Some(String::from_utf8_lossy(bad).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("" => None; "nothing")]
    #[test_case("a=b&c=%41+d" => None; "a form")]
    #[test_case("a=%z" => Some("invalid URL escape \"%z\"".to_owned()); "cut escape")]
    #[test_case("%zz=1&%" => Some("invalid URL escape \"%zz\"".to_owned()); "first escape")]
    #[test_case("%&a;b" => Some("invalid semicolon separator in query".to_owned()); "semicolon")]
    fn forms(text: &str) -> Option<String> {
        check_form(text.as_bytes()).err()
    }

    #[test_case("POST", FORM, "delete" => Some(Method::DELETE); "form")]
    #[test_case("POST", FORM, "" => None; "empty")]
    #[test_case("POST", "application/json", "GET" => None; "no form")]
    #[test_case("PUT", FORM, "POST" => None; "not posted")]
    fn methods(method: &str, content_type: &'static str, to: &'static str) -> Option<Method> {
        let headers = [(header::CONTENT_TYPE.as_str(), content_type), (HEADER, to)];
        let headers =
            headers.map(|(name, value)| (name.parse().expect("a name"), http::HeaderValue::from_static(value)));
        wanted(&method.parse().expect("a method"), &HeaderMap::from_iter(headers))
    }
}
