//! JSON to message bytes, by the rules of Go's protojson with unknown fields dropped.

use std::collections::BTreeSet;

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use prost::encoding::{WireType, encode_key, encode_varint};

use super::{
    Error,
    token::{Token, TokenKind, Tokens, integer, number_length},
};
use crate::{
    schema::{Field, Kind, Schema},
    wire::DEPTH_MAX,
};

/// Appends the bytes of the message that `input`, one well-formed value, describes.
pub(super) fn decode(schema: &Schema, message: usize, input: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let mut decoder = Decoder { schema, tokens: Tokens::new(input) };
    decoder.message(message, out, 1)
}

struct Decoder<'a> {
    schema: &'a Schema,
    tokens: Tokens<'a>,
}

/// A scalar as it goes on the wire.
enum Scalar {
    Varint(u64),
    Bytes(Vec<u8>),
    /// An enum name we do not know: dropped, like an unknown field.
    Dropped,
}

impl Decoder<'_> {
    fn message(&mut self, message: usize, out: &mut Vec<u8>, depth: u32) -> Result<(), Error> {
        if depth > DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        let schema = self.schema;
        let message = &schema.messages[message];
        let open = self.tokens.read()?;
        if !matches!(open.kind, TokenKind::Open) {
            return Err(self.tokens.unexpected(&open));
        }
        let mut seen = Seen::default();
        loop {
            let token = self.tokens.read()?;
            match &token.kind {
                TokenKind::Close => return Ok(()),
                TokenKind::String(name) => match message.field_named(name) {
                    Some(field) => self.member(field, &token, &mut seen, out, depth)?,
                    None => self.tokens.skip_value()?,
                },
                _ => return Err(self.tokens.unexpected(&token)),
            }
        }
    }

    fn member<'s>(
        &mut self,
        field: &'s Field,
        name: &Token,
        seen: &mut Seen<'s>,
        out: &mut Vec<u8>,
        depth: u32,
    ) -> Result<(), Error> {
        if !seen.fields.insert(field.number) {
            return Err(self.tokens.value_error(name.at, format!("duplicate field {}", name.raw)));
        }
        if self.tokens.next_is(b'n') {
            return self.tokens.skip_value();
        }
        if field.repeated {
            return self.list(field, out, depth);
        }
        if let Some(oneof) = &field.oneof
            && !seen.oneofs.insert(oneof)
        {
            let what = format!("error parsing {}, oneof {oneof} is already set", name.raw);
            return Err(self.tokens.value_error(name.at, what));
        }
        self.value(field, out, depth)
    }

    fn list(&mut self, field: &Field, out: &mut Vec<u8>, depth: u32) -> Result<(), Error> {
        let open = self.tokens.read()?;
        if !matches!(open.kind, TokenKind::ListOpen) {
            return Err(self.tokens.unexpected(&open));
        }
        let mut run = Vec::new();
        while !self.tokens.next_is(b']') {
            if field.packed {
                match self.scalar(field)? {
                    Scalar::Varint(number) => encode_varint(number, &mut run),
                    Scalar::Bytes(_) | Scalar::Dropped => {}
                }
            } else {
                self.value(field, out, depth)?
            }
        }
        if !run.is_empty() {
            write_bytes(field.number, &run, out);
        }
        self.tokens.read().map(drop)
    }

    fn value(&mut self, field: &Field, out: &mut Vec<u8>, depth: u32) -> Result<(), Error> {
        if let Kind::Message(inner) = field.kind {
            let mut bytes = Vec::new();
            self.message(inner, &mut bytes, depth + 1)?;
            write_bytes(field.number, &bytes, out);
            return Ok(());
        }
        // A zero is not written unless it can be told from nothing.
        let keep_zero = field.presence || field.repeated;
        match self.scalar(field)? {
            Scalar::Varint(0) if !keep_zero => {}
            Scalar::Varint(number) => {
                encode_key(field.number, WireType::Varint, out);
                encode_varint(number, out);
            }
            Scalar::Bytes(bytes) if bytes.is_empty() && !keep_zero => {}
            Scalar::Bytes(bytes) => write_bytes(field.number, &bytes, out),
            Scalar::Dropped => {}
        }
        Ok(())
    }

    fn scalar(&mut self, field: &Field) -> Result<Scalar, Error> {
        let token = self.tokens.read()?;
        self.scalar_of(field.kind, &token).ok_or_else(|| {
            let what = format!("invalid value for {} field {}: {}", kind_name(field.kind), field.json_name, token.raw);
            self.tokens.value_error(token.at, what)
        })
    }

    fn scalar_of(&self, kind: Kind, token: &Token) -> Option<Scalar> {
        let varint = match (kind, &token.kind) {
            (Kind::Bool, TokenKind::Bool(value)) => u64::from(*value),
            (Kind::Int32, _) => i64::from(i32::try_from(number(token)?).ok()?) as u64,
            (Kind::Int64, _) => i64::try_from(number(token)?).ok()? as u64,
            (Kind::Uint32, _) => u64::from(u32::try_from(number(token)?).ok()?),
            (Kind::Uint64, _) => u64::try_from(number(token)?).ok()?,
            (Kind::String, TokenKind::String(text)) => return Some(Scalar::Bytes(text.as_bytes().to_vec())),
            (Kind::Bytes, TokenKind::String(text)) => return base64_bytes(text).map(Scalar::Bytes),
            (Kind::Enum(index), TokenKind::String(name)) => {
                let known = self.schema.enums[index].values.iter().find(|value| value.1 == **name);
                return Some(known.map_or(Scalar::Dropped, |value| Scalar::Varint(i64::from(value.0) as u64)));
            }
            (Kind::Enum(_), TokenKind::Number) => i64::from(i32::try_from(integer(token.raw)?).ok()?) as u64,
            _ => return None,
        };
        Some(Scalar::Varint(varint))
    }
}

#[derive(Default)]
struct Seen<'s> {
    fields: BTreeSet<u32>,
    oneofs: BTreeSet<&'s str>,
}

/// An integer, as a number or as a string that starts with one.
fn number(token: &Token) -> Option<i128> {
    match &token.kind {
        TokenKind::Number => integer(token.raw),
        TokenKind::String(text) if text.trim() == text => match number_length(text.as_bytes()) {
            0 => None,
            length => integer(&text[..length]),
        },
        _ => None,
    }
}

/// Both alphabets, with padding or without; line breaks are ignored.
fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    let alphabet = if text.contains(['-', '_']) { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    let padding =
        if text.len().is_multiple_of(4) { DecodePaddingMode::RequireCanonical } else { DecodePaddingMode::RequireNone };
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true).with_decode_padding_mode(padding);
    let engine = GeneralPurpose::new(alphabet, config);
    if text.contains(['\r', '\n']) {
        return engine.decode(text.replace(['\r', '\n'], "")).ok();
    }
    engine.decode(text).ok()
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Uint32 => "uint32",
        Kind::Uint64 => "uint64",
        Kind::String => "string",
        Kind::Bytes => "bytes",
        Kind::Enum(_) => "enum",
        Kind::Message(_) => "message",
    }
}

fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
