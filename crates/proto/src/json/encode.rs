//! Message bytes to JSON, in the form of Go's protojson with .proto names and without unset fields.

use base64::{Engine, prelude::BASE64_STANDARD};

use super::Error;
use crate::{
    WireError,
    schema::{Field, Kind, Message, Schema},
    wire::{self, DEPTH_MAX, Value},
};

/// Appends the JSON object of the message that `bytes` encode.
pub(super) fn encode(schema: &Schema, message: usize, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    Encoder { schema, out }.message(message, &[bytes], 1)
}

struct Encoder<'a> {
    schema: &'a Schema,
    out: &'a mut Vec<u8>,
}

/// A field with all its values on the wire, in order.
struct Present<'s, 'b> {
    field: &'s Field,
    values: Vec<Value<'b>>,
}

impl Encoder<'_> {
    /// A message that came in several pieces is their sequence: that is how protobuf merges.
    fn message(&mut self, message: usize, pieces: &[&[u8]], depth: u32) -> Result<(), Error> {
        let schema = self.schema;
        let message = &schema.messages[message];
        let fail = |source| Error::Wire { message: message.name.clone(), source };
        if depth > DEPTH_MAX {
            return Err(fail(WireError::TooDeep(DEPTH_MAX)));
        }
        let mut present = collect(message, pieces).map_err(fail)?;
        present.sort_by_key(|p| p.field.declared);
        self.out.push(b'{');
        let start = self.out.len();
        for Present { field, values } in present {
            let before = self.out.len();
            if before > start {
                self.out.push(b',');
            }
            self.string(&field.name);
            self.out.push(b':');
            let set =
                if field.repeated { self.list(field, &values, depth)? } else { self.single(field, &values, depth)? };
            if !set {
                self.out.truncate(before);
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn list(&mut self, field: &Field, values: &[Value], depth: u32) -> Result<bool, Error> {
        self.out.push(b'[');
        let start = self.out.len();
        for value in values {
            match (field.kind, *value) {
                (Kind::Message(inner), Value::Bytes(bytes)) => {
                    self.comma(start);
                    self.message(inner, &[bytes], depth + 1)?;
                }
                (Kind::String | Kind::Bytes, _) | (_, Value::Varint(_)) => {
                    self.comma(start);
                    self.scalar(field, *value)?;
                }
                (_, Value::Bytes(mut run)) => {
                    while !run.is_empty() {
                        let number = wire::varint(&mut run).map_err(|source| wire_error(field, source))?;
                        self.comma(start);
                        self.scalar(field, Value::Varint(number))?;
                    }
                }
                (_, other) => return Err(wire_error(field, other.mismatch(0))),
            }
        }
        let set = self.out.len() > start;
        self.out.push(b']');
        Ok(set)
    }

    fn single(&mut self, field: &Field, values: &[Value], depth: u32) -> Result<bool, Error> {
        if let Kind::Message(inner) = field.kind {
            let pieces: Result<Vec<_>, _> = values.iter().map(|v| bytes_of(field, *v)).collect();
            self.message(inner, &pieces?, depth + 1)?;
            return Ok(true);
        }
        let Some(last) = values.last() else { return Ok(false) };
        self.scalar(field, *last)?;
        Ok(field.presence || !matches!(last, Value::Varint(0) | Value::Bytes([])))
    }

    fn scalar(&mut self, field: &Field, value: Value) -> Result<(), Error> {
        let number = match field.kind {
            Kind::String => {
                let text = std::str::from_utf8(bytes_of(field, value)?);
                self.string(text.map_err(|_| wire_error(field, WireError::NotUtf8))?);
                return Ok(());
            }
            Kind::Bytes => {
                let text = BASE64_STANDARD.encode(bytes_of(field, value)?);
                self.string(&text);
                return Ok(());
            }
            _ => match value {
                Value::Varint(number) => number,
                other => return Err(wire_error(field, other.mismatch(0))),
            },
        };
        let text = match field.kind {
            Kind::Bool => (number != 0).to_string(),
            Kind::Int32 => (number as i32).to_string(),
            Kind::Uint32 => (number as u32).to_string(),
            Kind::Int64 => format!("\"{}\"", number as i64),
            Kind::Enum(index) => match self.schema.enums[index].value(number as i32) {
                Some((_, name, _)) => format!("\"{name}\""),
                None => (number as i32).to_string(),
            },
            Kind::Uint64 | Kind::String | Kind::Bytes | Kind::Message(_) => format!("\"{number}\""),
        };
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn comma(&mut self, start: usize) {
        if self.out.len() > start {
            self.out.push(b',');
        }
    }

    fn string(&mut self, text: &str) {
        write_string(text, self.out);
    }
}

/// Appends a JSON string; only what JSON requires is escaped.
pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            0x08 => out.extend(b"\\b"),
            0x0c => out.extend(b"\\f"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0..=0x1f => out.extend(format!("\\u{byte:04x}").bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// The known fields of a message. Of a oneof the member that came last stays.
fn collect<'s, 'b>(message: &'s Message, pieces: &[&'b [u8]]) -> Result<Vec<Present<'s, 'b>>, WireError> {
    let mut present: Vec<Present> = Vec::new();
    for piece in pieces {
        let mut bytes = *piece;
        while let Some((number, value)) = wire::next_field(&mut bytes)? {
            let Some(field) = message.field(number) else { continue };
            if field.oneof.is_some() {
                present.retain(|p| p.field.oneof != field.oneof || p.field.number == number);
            }
            match present.iter_mut().rev().find(|p| p.field.number == number) {
                Some(known) => known.values.push(value),
                None => present.push(Present { field, values: vec![value] }),
            }
        }
    }
    Ok(present)
}

fn bytes_of<'b>(field: &Field, value: Value<'b>) -> Result<&'b [u8], Error> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        other => Err(wire_error(field, other.mismatch(2))),
    }
}

fn wire_error(field: &Field, source: WireError) -> Error {
    Error::Wire { message: field.name.clone(), source }
}
