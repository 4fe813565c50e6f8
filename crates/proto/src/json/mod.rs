//! JSON of any message, by its descriptor, as etcd's gateway reads and writes it.
//!
//! Out: names as in the .proto file and in its order, unset fields left out, 64-bit integers as strings, bytes as
//! standard base64, enums by name. In: also lowerCamelCase names, integers as numbers or strings, either base64
//! alphabet, enums by number; unknown fields and unknown enum names are dropped. Error texts are those of the Go
//! libraries behind etcd's gateway, since its clients see them.

mod decode;
mod encode;
mod scan;
mod token;

use prost::Name;

pub use scan::Values;

use crate::{WireError, schema::schema};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no message is named {0:?}; the right form is package.Message")]
    UnknownMessage(String),
    #[error("{0}")]
    Syntax(String),
    #[error("unexpected EOF")]
    UnexpectedEof,
    #[error("proto: unexpected EOF")]
    UnexpectedEofInString,
    #[error("unexpected end of JSON input")]
    UnexpectedEndOfInput,
    #[error("proto: (line {line}:{column}): {what}")]
    Value { line: usize, column: usize, what: String },
    #[error("proto: syntax error (line {line}:{column}): {what}")]
    Token { line: usize, column: usize, what: String },
    #[error("proto: exceeded max recursion depth")]
    TooDeep,
    #[error("failed to read {message}")]
    Wire { message: String, source: WireError },
    #[error("failed to decode the message that the JSON described")]
    Message(#[from] prost::DecodeError),
}

/// The bytes of the message `full_name` that one JSON value describes.
pub fn decode(full_name: &str, json: &[u8]) -> Result<Vec<u8>, Error> {
    let message = message(full_name)?;
    scan::check(json)?;
    let mut out = Vec::with_capacity(json.len());
    decode::decode(schema(), message, json, &mut out)?;
    Ok(out)
}

/// The JSON object of the message `full_name` that `bytes` encode.
pub fn encode(full_name: &str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let message = message(full_name)?;
    let mut out = Vec::with_capacity(bytes.len() * 2);
    encode::encode(schema(), message, bytes, &mut out)?;
    Ok(out)
}

/// Reads a message from JSON.
pub fn from_slice<M: Name + Default>(json: &[u8]) -> Result<M, Error> {
    Ok(M::decode(decode(&M::full_name(), json)?.as_slice())?)
}

/// Writes a message as JSON.
pub fn to_vec<M: Name>(message: &M) -> Result<Vec<u8>, Error> {
    encode(&M::full_name(), &message.encode_to_vec())
}

/// A JSON string with its quotes.
pub fn string(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    encode::write_string(text, &mut out);
    out
}

fn message(full_name: &str) -> Result<usize, Error> {
    schema().message(full_name).ok_or_else(|| Error::UnknownMessage(full_name.to_owned()))
}
