//! HTTP headers to gRPC metadata and back, by grpc-gateway's rules.
//!
//! In: `Authorization` as it is; `Grpc-Metadata-X` as `x`; well-known headers as `grpcgateway-…`; who forwarded the
//! request. Out: response metadata `x` as `Grpc-Metadata-X`.

use std::{net::SocketAddr, time::Duration};

use axum::extract::ConnectInfo;
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts};
use tonic::{Code, Status, metadata::MetadataMap};

use crate::{required, status};

const PREFIX: &str = "grpc-metadata-";

/// Request headers that are passed on as `grpcgateway-…`.
const WELL_KNOWN: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-language",
    "accept-ranges",
    "authorization",
    "cache-control",
    "content-type",
    "cookie",
    "date",
    "expect",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-schedule-tag-match",
    "if-unmodified-since",
    "max-forwards",
    "origin",
    "pragma",
    "referer",
    "user-agent",
    "via",
    "warning",
];

/// The gRPC request headers for an HTTP request.
pub(super) fn incoming(parts: &Parts) -> Result<HeaderMap, Status> {
    let mut out = HeaderMap::new();
    for (name, value) in &parts.headers {
        if name == header::AUTHORIZATION {
            append(&mut out, "authorization", value);
        }
        if let Some(value) = requirement(name, value)? {
            out.append(required::KEY, value);
        } else if let Some(key) = name.as_str().strip_prefix(PREFIX) {
            check_binary(name, key, value)?;
            append(&mut out, key, value);
        } else if WELL_KNOWN.contains(&name.as_str()) {
            append(&mut out, &format!("grpcgateway-{name}"), value);
        }
    }
    forwarded(parts, &mut out);
    // Set last, so that no header of the client takes their place.
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    out.insert(header::TE, HeaderValue::from_static("trailers"));
    Ok(out)
}

/// What a call requires must not get lost on the way, as other metadata does that cannot be passed on. It may come with
/// the prefix of metadata or without.
fn requirement(name: &HeaderName, value: &HeaderValue) -> Result<Option<HeaderValue>, Status> {
    if name.as_str().strip_prefix(PREFIX).unwrap_or(name.as_str()) != required::KEY.as_str() {
        return Ok(None);
    }
    if is_printable(value) { Ok(Some(value.clone())) } else { Err(status::bad_requirement("no text")) }
}

/// The HTTP response headers for the metadata of a gRPC response.
pub(super) fn outgoing(metadata: &HeaderMap) -> HeaderMap {
    let mut out = HeaderMap::new();
    for (name, value) in metadata {
        let transport =
            [header::CONTENT_LENGTH, header::DATE, header::TRAILER, header::TRANSFER_ENCODING].contains(name);
        if !transport
            && !name.as_str().starts_with("grpc-")
            && let Ok(name) = HeaderName::try_from(format!("{PREFIX}{name}"))
        {
            out.append(name, value.clone());
        }
    }
    out
}

/// What of the metadata of an error is passed on: that the server heeds required features. etcd passes on nothing.
pub(super) fn echoed(metadata: &MetadataMap) -> HeaderMap {
    let mut echo = HeaderMap::new();
    for value in metadata.as_ref().get_all(required::KEY) {
        echo.append(required::KEY, value.clone());
    }
    outgoing(&echo)
}

/// The time a client gives the call with `Grpc-Timeout`, such as `500m` or `2S`; zero and none are no limit.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    if text.is_empty() {
        return Ok(None);
    }
    let invalid = || Status::new(Code::InvalidArgument, format!("invalid grpc-timeout: {text}"));
    let unit = text.chars().next_back().ok_or_else(invalid)?;
    let nanos: u64 = match unit {
        'H' => 3_600_000_000_000,
        'M' => 60_000_000_000,
        'S' => 1_000_000_000,
        'm' => 1_000_000,
        'u' => 1_000,
        'n' => 1,
        _ => return Err(invalid()),
    };
    let count: i64 = text[..text.len() - 1].parse().map_err(|_| invalid())?;
    // A time that has already passed still is a limit.
    Ok((count != 0).then(|| Duration::from_nanos(nanos.saturating_mul(count.max(0).unsigned_abs()))))
}

fn is_printable(value: &HeaderValue) -> bool {
    value.as_bytes().iter().all(|b| (0x20..=0x7e).contains(b))
}

fn append(out: &mut HeaderMap, key: &str, value: &HeaderValue) {
    // What gRPC keeps for itself is not for clients to set.
    let reserved = key.starts_with("grpc-") || ["te", "user-agent", "content-type", "connection"].contains(&key);
    if !reserved
        && is_printable(value)
        && let Ok(name) = HeaderName::try_from(key)
    {
        out.append(name, value.clone());
    }
}

/// Values of `…-bin` are base64; services could not read any other.
fn check_binary(name: &HeaderName, key: &str, value: &HeaderValue) -> Result<(), Status> {
    if !key.ends_with("-bin") {
        return Ok(());
    }
    let text = value.as_bytes();
    let padding =
        if text.len().is_multiple_of(4) { DecodePaddingMode::RequireCanonical } else { DecodePaddingMode::RequireNone };
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(padding).with_decode_allow_trailing_bits(true);
    let decoded = GeneralPurpose::new(&alphabet::STANDARD, config).decode(text);
    decoded.map(drop).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            _ => text.len(),
        };
        let message =
            format!("invalid binary header {}: illegal base64 data at input byte {at}", go_name(name.as_str()));
        Status::new(Code::InvalidArgument, message)
    })
}

/// A header name as Go writes it: `grpc-metadata-x` is `Grpc-Metadata-X`.
fn go_name(name: &str) -> String {
    let capital = |part: &str| {
        let (first, rest) = part.split_at(part.len().min(1));
        first.to_ascii_uppercase() + rest
    };
    name.split('-').map(capital).collect::<Vec<_>>().join("-")
}

/// `x-forwarded-host` and `x-forwarded-for`, to which the client's address is added.
fn forwarded(parts: &Parts, out: &mut HeaderMap) {
    let host = parts.headers.get("x-forwarded-host").or_else(|| parts.headers.get(header::HOST));
    if let Some(host) = host {
        append(out, "x-forwarded-host", host);
    }
    let mut way: Vec<String> = parts
        .headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|value| value.to_str().ok().map(str::to_owned))
        .collect();
    way.extend(parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|client| client.0.ip().to_string()));
    if let Ok(value) = HeaderValue::from_str(&way.join(", "))
        && !way.is_empty()
    {
        append(out, "x-forwarded-for", &value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("2S" => Ok(Some(Duration::from_secs(2))); "seconds")]
    #[test_case("5m" => Ok(Some(Duration::from_millis(5))); "milliseconds")]
    #[test_case("0S" => Ok(None); "none")]
    #[test_case("-1S" => Ok(Some(Duration::ZERO)); "passed")]
    #[test_case("1x" => Err("invalid grpc-timeout: 1x".to_owned()); "no unit")]
    #[test_case("S" => Err("invalid grpc-timeout: S".to_owned()); "no number")]
    fn timeouts(text: &str) -> Result<Option<Duration>, String> {
        let headers = HeaderMap::from_iter([(HeaderName::from_static("grpc-timeout"), text.parse().unwrap())]);
        timeout(&headers).map_err(|status| status.message().to_owned())
    }

    #[test]
    fn what_is_required_is_passed_on_or_refused() {
        let incoming = |name: &str, value: &[u8]| {
            let request = http::Request::builder().header(name, value).body(()).unwrap();
            incoming(&request.into_parts().0).map(|out| out.get_all(required::KEY).iter().cloned().collect::<Vec<_>>())
        };
        for name in ["Grpc-Metadata-Require-Feature", "require-feature"] {
            assert_eq!(incoming(name, b"AtomicIncrement").unwrap(), ["AtomicIncrement"]);
            assert_eq!(incoming(name, b"").unwrap(), [""]);
            assert_eq!(incoming(name, b"\xff").unwrap_err().code(), Code::InvalidArgument);
        }
    }

    #[test]
    fn headers_become_metadata() {
        let request = http::Request::builder()
            .header("Authorization", "token")
            .header("Grpc-Metadata-Hasleader", "true")
            .header("Grpc-Metadata-Grpc-Encoding", "gzip")
            .header("Grpc-Metadata-Content-Type", "text/plain")
            .header("User-Agent", "curl")
            .header("Host", "here:2379")
            .header("X-Forwarded-For", "1.2.3.4")
            .header("X-Other", "dropped")
            .extension(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 5))))
            .body(())
            .unwrap();
        let headers = incoming(&request.into_parts().0).unwrap();
        let mut found: Vec<_> = headers.iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
        found.sort();
        let expected = [
            "authorization: token",
            "content-type: application/grpc",
            "grpcgateway-authorization: token",
            "grpcgateway-host: here:2379",
            "grpcgateway-user-agent: curl",
            "hasleader: true",
            "te: trailers",
            "x-forwarded-for: 1.2.3.4, 127.0.0.1",
            "x-forwarded-host: here:2379",
        ];
        assert_eq!(found, expected);
    }
}
