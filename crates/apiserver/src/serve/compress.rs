//! Large answers, for clients that take them compressed.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue, Response,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY},
};

use super::{
    answer::{self, Body},
    style::Style,
};

/// Smaller answers are sent as they are, as in Kubernetes: packing them takes longer than sending.
const BYTES_MIN: usize = 128 * 1024;

/// An answer in JSON.
pub(crate) async fn json(code: u16, bytes: Bytes, headers: &HeaderMap, style: Style) -> Response<Body> {
    let bytes = style.print(bytes);
    if bytes.len() <= BYTES_MIN || !is_wanted(headers) {
        return answer::bytes_of(code, style.media(), bytes);
    }
    // It takes milliseconds, in which others want to be served.
    let plain = bytes.clone();
    let packed = tokio::task::spawn_blocking(move || pack(&plain)).await;
    let Ok(Ok(packed)) = packed else { return answer::bytes_of(code, style.media(), bytes) };
    let mut response = answer::bytes_of(code, style.media(), packed);
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

fn pack(bytes: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish().map(Bytes::from)
}

fn is_wanted(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let refused = |part: &str| {
            part.strip_prefix("q=").is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0))
        };
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip")) && !parts.any(refused)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use test_case::test_case;

    use super::*;

    #[test_case("gzip" => true)]
    #[test_case("deflate, gzip;q=1.0" => true)]
    #[test_case("gzip;q=0" => false)]
    #[test_case("br, gzip2" => false)]
    #[test_case("" => false)]
    fn wanted(value: &str) -> bool {
        is_wanted(&HeaderMap::from_iter([(ACCEPT_ENCODING, value.parse().unwrap())]))
    }

    #[test]
    fn what_is_packed_can_be_unpacked() {
        let plain = b"lockgate ".repeat(100_000);
        let packed = pack(&plain).unwrap();
        assert!(packed.len() < plain.len() / 50);
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain);
    }
}
