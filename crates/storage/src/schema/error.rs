//! What is wrong with a value of the file.

use super::Bucket;

/// A key or value of the file that is not what the schema says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bucket {}, key {key}: expected {expected}, found {found}", bucket.name())]
pub struct DecodeError {
    pub bucket: Bucket,
    /// As text where it is text, else in hex.
    pub key: String,
    pub expected: &'static str,
    pub found: String,
}

impl DecodeError {
    pub(crate) fn new(bucket: Bucket, key: &[u8], expected: &'static str, found: impl ToString) -> Self {
        DecodeError { bucket, key: printable(key), expected, found: found.to_string() }
    }

    /// For a value of the wrong form: shows the start of it.
    pub(crate) fn value(bucket: Bucket, key: &[u8], expected: &'static str, value: &[u8]) -> Self {
        let head = &value[..value.len().min(32)];
        let more = if value.len() > head.len() { "…" } else { "" };
        let found = format!("{} bytes: {}{more}", value.len(), printable(head));
        DecodeError::new(bucket, key, expected, found)
    }
}

/// Quoted where it is printable ASCII, else hex.
pub(crate) fn printable(bytes: &[u8]) -> String {
    if !bytes.is_empty() && bytes.iter().all(|b| (0x20..0x7f).contains(b)) {
        return format!("\"{}\"", String::from_utf8_lossy(bytes));
    }
    bytes.iter().fold(String::from("0x"), |mut out, b| {
        use std::fmt::Write;
        let _ = write!(out, "{b:02x}");
        out
    })
}

/// The 8 bytes of a number written big endian.
pub(crate) fn u64_of(bucket: Bucket, key: &[u8], value: &[u8]) -> Result<u64, DecodeError> {
    let bytes: [u8; 8] =
        value.try_into().map_err(|_| DecodeError::value(bucket, key, "a number of 8 bytes, big endian", value))?;
    Ok(u64::from_be_bytes(bytes))
}
