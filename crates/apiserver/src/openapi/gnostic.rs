//! The older form as protobuf: `openapi.v2.Document` of gnostic, which kubectl asks for.
//!
//! The tables below are the only place for its field numbers. What a table does not name is left out, but for extensions
//! (`x-…`), which are kept as YAML, of which JSON is a part.

use serde_json::Value;

/// What clients ask for, in both ways to write it; answers carry the second, as a `@` is not allowed in a content type.
pub(crate) const MEDIA: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];

/// The key in JSON, the field's number, and how its value is written.
type Field = (&'static str, u32, fn(&mut Vec<u8>, u32, &Value));

/// A message: its fields, and the number of its extensions.
struct Message(&'static [Field], u32);

const DOCUMENT: Message =
    Message(&[("swagger", 1, text), ("info", 2, info), ("paths", 8, paths), ("definitions", 9, definitions)], 16);
const INFO: Message = Message(&[("title", 1, text), ("version", 2, text), ("description", 3, text)], 7);
const PATH: Message = Message(
    &[
        ("get", 2, operation),
        ("put", 3, operation),
        ("post", 4, operation),
        ("delete", 5, operation),
        ("options", 6, operation),
        ("head", 7, operation),
        ("patch", 8, operation),
        ("parameters", 9, parameters),
    ],
    10,
);
const OPERATION: Message = Message(
    &[
        ("tags", 1, texts),
        ("summary", 2, text),
        ("description", 3, text),
        ("operationId", 5, text),
        ("produces", 6, texts),
        ("consumes", 7, texts),
        ("parameters", 8, parameters),
        ("responses", 9, responses),
        ("schemes", 10, texts),
        ("deprecated", 11, flag),
    ],
    13,
);
const QUERY: Message = Message(
    &[
        ("required", 1, flag),
        ("in", 2, text),
        ("description", 3, text),
        ("name", 4, text),
        ("type", 6, text),
        ("format", 7, text),
        ("uniqueItems", 20, flag),
    ],
    23,
);
const PATH_PARAMETER: Message = Message(
    &[
        ("required", 1, flag),
        ("in", 2, text),
        ("description", 3, text),
        ("name", 4, text),
        ("type", 5, text),
        ("format", 6, text),
        ("uniqueItems", 19, flag),
    ],
    22,
);
const BODY: Message = Message(
    &[("description", 1, text), ("name", 2, text), ("in", 3, text), ("required", 4, flag), ("schema", 5, schema)],
    6,
);
const RESPONSE: Message = Message(&[("description", 1, text), ("schema", 2, answered)], 5);
const SCHEMA: Message = Message(
    &[
        ("$ref", 1, text),
        ("format", 2, text),
        ("title", 3, text),
        ("description", 4, text),
        ("default", 5, any),
        ("multipleOf", 6, double),
        ("maximum", 7, double),
        ("exclusiveMaximum", 8, flag),
        ("minimum", 9, double),
        ("exclusiveMinimum", 10, flag),
        ("maxLength", 11, whole),
        ("minLength", 12, whole),
        ("pattern", 13, text),
        ("maxItems", 14, whole),
        ("minItems", 15, whole),
        ("uniqueItems", 16, flag),
        ("maxProperties", 17, whole),
        ("minProperties", 18, whole),
        ("required", 19, texts),
        ("enum", 20, anys),
        ("additionalProperties", 21, additional),
        ("type", 22, kinds),
        ("items", 23, items),
        ("allOf", 24, schemas),
        ("properties", 25, definitions),
        ("readOnly", 27, flag),
        ("example", 30, any),
    ],
    31,
);

pub(super) fn encode(document: &Value) -> Vec<u8> {
    body(&DOCUMENT, document)
}

fn body(message: &Message, value: &Value) -> Vec<u8> {
    let Message(fields, extensions) = message;
    let mut out = Vec::new();
    for (key, number, write) in *fields {
        if let Some(value) = value.get(key) {
            write(&mut out, *number, value);
        }
    }
    let own = value.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-"));
    for (name, value) in own {
        nested(&mut out, *extensions, &named(name, |out| any(out, 2, value)));
    }
    out
}

fn info(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, &body(&INFO, value));
}

fn operation(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, &body(&OPERATION, value));
}

fn schema(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, &body(&SCHEMA, value));
}

fn schemas(out: &mut Vec<u8>, number: u32, value: &Value) {
    value.as_array().into_iter().flatten().for_each(|value| schema(out, number, value));
}

fn paths(out: &mut Vec<u8>, number: u32, value: &Value) {
    let mut inner = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        nested(&mut inner, 2, &named(name, |out| nested(out, 2, &body(&PATH, value))));
    }
    nested(out, number, &inner);
}

/// Schemas by name: definitions and properties alike.
fn definitions(out: &mut Vec<u8>, number: u32, value: &Value) {
    let mut inner = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        nested(&mut inner, 1, &named(name, |out| schema(out, 2, value)));
    }
    nested(out, number, &inner);
}

/// A parameter is one of several messages, by where it is: each in the fields of those that hold it.
fn parameters(out: &mut Vec<u8>, number: u32, value: &Value) {
    for value in value.as_array().into_iter().flatten() {
        let mut parameter = Vec::new();
        match value["in"].as_str() {
            Some("body") => nested(&mut parameter, 1, &body(&BODY, value)),
            place => {
                let (field, message) = if place == Some("path") { (4, &PATH_PARAMETER) } else { (3, &QUERY) };
                nested(&mut parameter, 2, &wrapped(field, &body(message, value)));
            }
        }
        nested(out, number, &wrapped(1, &parameter));
    }
}

fn responses(out: &mut Vec<u8>, number: u32, value: &Value) {
    let mut inner = Vec::new();
    for (code, value) in value.as_object().into_iter().flatten() {
        nested(&mut inner, 1, &named(code, |out| nested(out, 2, &wrapped(1, &body(&RESPONSE, value)))));
    }
    nested(out, number, &inner);
}

fn answered(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, &wrapped(1, &body(&SCHEMA, value)));
}

fn additional(out: &mut Vec<u8>, number: u32, value: &Value) {
    match value {
        Value::Bool(open) => {
            // One of two, so that false is written too.
            let mut inner = Vec::new();
            key(&mut inner, 2, 0);
            inner.push(u8::from(*open));
            nested(out, number, &inner);
        }
        value => nested(out, number, &wrapped(1, &body(&SCHEMA, value))),
    }
}

fn kinds(out: &mut Vec<u8>, number: u32, value: &Value) {
    let mut inner = Vec::new();
    match value {
        Value::Array(_) => texts(&mut inner, 1, value),
        value => text(&mut inner, 1, value),
    }
    nested(out, number, &inner);
}

fn items(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, &wrapped(1, &body(&SCHEMA, value)));
}

fn any(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, &wrapped(2, value.to_string().as_bytes()));
}

fn anys(out: &mut Vec<u8>, number: u32, value: &Value) {
    value.as_array().into_iter().flatten().for_each(|value| any(out, number, value));
}

fn text(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(text) = value.as_str() {
        nested(out, number, text.as_bytes());
    }
}

fn texts(out: &mut Vec<u8>, number: u32, value: &Value) {
    value.as_array().into_iter().flatten().for_each(|value| text(out, number, value));
}

fn flag(out: &mut Vec<u8>, number: u32, value: &Value) {
    if value.as_bool() == Some(true) {
        key(out, number, 0);
        out.push(1);
    }
}

fn double(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(value) = value.as_f64() {
        key(out, number, 1);
        out.extend(value.to_le_bytes());
    }
}

fn whole(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(value) = value.as_i64() {
        key(out, number, 0);
        varint(out, value as u64);
    }
}

/// A message with a name (1) and what `write` puts beside it.
fn named(name: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = wrapped(1, name.as_bytes());
    write(&mut out);
    out
}

/// A message that holds another in one field.
fn wrapped(number: u32, inner: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(inner.len() + 8);
    nested(&mut out, number, inner);
    out
}

fn nested(out: &mut Vec<u8>, number: u32, inner: &[u8]) {
    key(out, number, 2);
    varint(out, inner.len() as u64);
    out.extend_from_slice(inner);
}

fn key(out: &mut Vec<u8>, number: u32, wire: u32) {
    varint(out, u64::from(number << 3 | wire));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Bytes that gnostic's own code (v0.6.9) writes for the same document.
    #[test]
    fn bytes_are_those_of_gnostic() {
        let document = json!({"swagger": "2.0", "info": {"title": "T", "version": "1"},
            "paths": {"/a": {"get": {"operationId": "o", "parameters": [{"name": "q", "in": "query", "type": "string", "uniqueItems": true}],
                "responses": {"200": {"description": "OK"}}}}},
            "definitions": {"D": {"type": "object", "required": ["p"], "properties": {"p": {"type": "integer", "maximum": 300.5, "maxLength": 200},
                "l": {"type": "array", "items": {"$ref": "#/definitions/D"}}, "m": {"type": "object", "additionalProperties": {"type": "string"}}}}}});
        let hex: String = encode(&document).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, include_str!("testdata/gnostic.hex").trim());
    }

    #[test]
    fn extensions_and_values_are_yaml() {
        let bytes = body(&SCHEMA, &json!({"enum": [1], "x-k": {"a": 1}}));
        assert_eq!(bytes, b"\xa2\x01\x03\x12\x011\xfa\x01\x10\x0a\x03x-k\x12\x09\x12\x07{\"a\":1}");
    }
}
