//! What is wrong with JSON, as Go's decoder tells it.

const EXCERPT_BYTES_MAX: usize = 30;

/// The fault, and the character where it showed.
pub(super) fn fault(error: &serde_json::Error, body: &[u8]) -> String {
    let text = error.to_string();
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let places = [
        ("trailing characters", "after top-level value"),
        ("expected value", "looking for beginning of value"),
        ("key must be a string", "looking for beginning of object key string"),
        ("trailing comma", "looking for beginning of value"),
        ("expected `:`", "after object key"),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `,` or `]`", "after array element"),
    ];
    match (places.iter().find(|(start, _)| text.starts_with(start)), character(error, body)) {
        (Some((_, place)), Some(found)) => format!("invalid character {found} {place}"),
        // Without the place, which Kubernetes does not tell.
        _ => text.split(" at line ").next().unwrap_or_default().to_owned(),
    }
}

/// The number that is too large for any that is kept, if that is what is wrong.
pub(crate) fn too_large(error: &serde_json::Error, body: &[u8]) -> Option<String> {
    if !error.to_string().starts_with("number out of range") {
        return None;
    }
    let line = body.split(|byte| *byte == b'\n').nth(error.line().checked_sub(1)?)?;
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    // The fault shows within the number, or right behind it.
    let at = error.column().min(line.len());
    let start = line[..at].iter().rposition(|byte| !is_part(byte)).map_or(0, |at| at + 1);
    let end = line[at..].iter().position(|byte| !is_part(byte)).map_or(line.len(), |more| at + more);
    Some(String::from_utf8_lossy(&line[start..end]).into_owned())
}

/// One byte is one character to Go's decoder.
fn character(error: &serde_json::Error, body: &[u8]) -> Option<String> {
    let line = body.split(|byte| *byte == b'\n').nth(error.line().checked_sub(1)?)?;
    let byte = *line.get(error.column().checked_sub(1)?)?;
    Some(match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        byte => format!("{:?}", char::from(byte)),
    })
}

/// The beginning of a body: as text if it may be JSON.
pub(super) fn excerpt(body: &[u8]) -> String {
    let start = &body[..body.len().min(EXCERPT_BYTES_MAX)];
    let more = if body.len() > start.len() { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => {
            let text: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
            text + more
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(r#"{"a":1e400}"# => "1e400")]
    #[test_case("{\"a\":\n [-1.5E+999, 2]}" => "-1.5E+999")]
    #[test_case("1e999" => "1e999")]
    #[test_case("[1 2]" => "")]
    fn numbers(body: &str) -> String {
        let error = crate::decode::json(body.as_bytes()).err().expect("no JSON");
        too_large(&error, body.as_bytes()).unwrap_or_default()
    }

    /// As kube-apiserver 1.37 says them.
    #[test_case("" => "unexpected end of JSON input (<empty>)")]
    #[test_case("{" => "unexpected end of JSON input ({)")]
    #[test_case("x" => "invalid character 'x' looking for beginning of value (78)")]
    #[test_case("{\"a\":1}x" => "invalid character 'x' after top-level value ({\"a\":1}x)")]
    #[test_case("{a:1}" => "invalid character 'a' looking for beginning of object key string ({a:1})")]
    #[test_case("{\"a\" 1}" => "invalid character '1' after object key ({\"a\" 1})")]
    #[test_case("{\"a\":1 \"b\"}" => "invalid character '\"' after object key:value pair ({\"a\":1 \"b\"})")]
    #[test_case("[1 2]" => "invalid character '2' after array element (5b3120325d)")]
    fn faults(body: &str) -> String {
        let error = crate::decode::json(body.as_bytes()).err().expect("no JSON");
        format!("{} ({})", fault(&error, body.as_bytes()), excerpt(body.as_bytes()))
    }
}
