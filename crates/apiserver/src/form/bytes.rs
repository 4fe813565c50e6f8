//! Bytes in JSON, read as leniently as Go reads them.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Bits beyond the last byte do not count.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The same bytes in the one form in which they are kept, or where they stop being base64.
pub(super) fn canonical(text: &str) -> Result<String, String> {
    // Line ends are passed over.
    let plain: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match LENIENT.decode(&plain) {
        Ok(bytes) => Ok(LENIENT.encode(bytes)),
        Err(_) => Err(format!("illegal base64 data at input byte {}", fault(text.as_bytes()))),
    }
}

/// The place that Go names: of the sign that is none, or of the group of four that is not whole.
fn fault(text: &[u8]) -> usize {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut in_group = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\r' | b'\n' => {}
            b'=' if in_group >= 2 => return after_padding(text, at, in_group),
            byte if is_sign(*byte) => in_group = (in_group + 1) % 4,
            _ => return at,
        }
    }
    text.len() - in_group
}

/// What follows the first `=` of a group that has two signs or three.
fn after_padding(text: &[u8], at: usize, in_group: usize) -> usize {
    let mut rest = text.iter().enumerate().skip(at + 1).filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    if in_group == 2 {
        match rest.next() {
            None => return text.len(),
            Some((at, byte)) if *byte != b'=' => return at,
            Some(_) => {}
        }
    }
    rest.next().map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    /// Places of Go's encoding/base64.
    #[test_case("" => "")]
    #[test_case("YWI=\n" => "YWI=")]
    #[test_case("YW\r\nI=" => "YWI=")]
    #[test_case("YWJ=" => "YWI="; "more bits than bytes")]
    #[test_case("!!" => "0")]
    #[test_case("YQ" => "0")]
    #[test_case("YWJjYQ" => "4")]
    #[test_case("YWJjY!" => "5")]
    #[test_case("=" => "0")]
    #[test_case("Y===" => "1")]
    #[test_case("YQ=" => "3")]
    #[test_case("YQ=x" => "3")]
    #[test_case("YQ==x" => "4")]
    fn read(text: &str) -> String {
        canonical(text).unwrap_or_else(|why| why.rsplit(' ').next().unwrap_or_default().to_owned())
    }
}
