//! Kubernetes' protobuf form of the built-in kinds, read only: clients with types of their own send it, and a kube-apiserver
//! on the same store has written it. Tables name the fields; what they do not name is passed over.

mod definition;
mod tables;
mod wire;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use self::wire::{Reader, Wire, time};
use crate::decode::{DEPTH_MAX, depth};

pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// How a field is read. Go writes zeros where JSON leaves a field out, unless it tells zero from nothing (a pointer).
#[derive(Clone, Copy)]
enum Kind {
    /// Left out if empty.
    Text,
    /// Also if empty.
    Given,
    /// Left out if zero.
    Int,
    /// Also if zero.
    Count,
    /// Left out if false.
    Flag,
    /// Also if false.
    Bool,
    Double,
    Bytes,
    Time,
    MicroTime,
    /// JSON as text within a message of its own.
    Json,
    Message(&'static [Field]),
    /// A message whose fields are the parent's in JSON.
    Inline(&'static [Field]),
    /// A message that is something else in JSON.
    Shaped(&'static [Field], fn(Value) -> Value),
    List(&'static Kind),
    Map(&'static Kind),
}

type Field = (u64, &'static str, Kind);

/// The object in an envelope as JSON; `None` for what is damaged, too deep or of a kind not known here.
pub(crate) fn decode(bytes: &[u8]) -> Option<Value> {
    let (mut about, mut raw) = (Value::Null, &bytes[..0]);
    let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => about = message(bytes, ABOUT, 0)?,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let mut object = message(raw, tables::table(about["kind"].as_str()?)?, 0)?;
    object["apiVersion"] = about["apiVersion"].clone();
    object["kind"] = about["kind"].clone();
    (depth(&object) <= DEPTH_MAX).then_some(object)
}

const ABOUT: &[Field] = &[(1, "apiVersion", Kind::Text), (2, "kind", Kind::Text)];

/// `level` is how many messages it lies in.
fn message(bytes: &[u8], fields: &[Field], level: usize) -> Option<Value> {
    if level > DEPTH_MAX {
        return None;
    }
    let mut map = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let Some((_, name, kind)) = fields.iter().find(|field| field.0 == number) {
            insert(&mut map, name, *kind, wire, level)?;
        }
    }
    Some(Value::Object(map))
}

fn insert(map: &mut Map<String, Value>, name: &str, kind: Kind, wire: Wire<'_>, level: usize) -> Option<()> {
    match (kind, wire) {
        (Kind::List(item), wire) => {
            if let (Value::Array(list), Some(item)) =
                (map.entry(name).or_insert_with(|| json!([])), value(*item, wire, level)?)
            {
                list.push(item);
            }
        }
        (Kind::Map(item), Wire::Bytes(bytes)) => {
            let (key, item_bytes) = entry(bytes)?;
            let item = value(*item, Wire::Bytes(item_bytes), level)?;
            map.entry(name).or_insert_with(|| json!({}))[std::str::from_utf8(key).ok()?] = item?;
        }
        (Kind::Inline(fields), Wire::Bytes(bytes)) => match message(bytes, fields, level + 1)? {
            Value::Object(inner) => map.extend(inner),
            _ => return None,
        },
        (kind, wire) => drop(value(kind, wire, level)?.map(|value| map.insert(name.to_owned(), value))),
    }
    Some(())
}

/// Nothing within for a value that is left out in JSON.
fn value(kind: Kind, wire: Wire<'_>, level: usize) -> Option<Option<Value>> {
    let value = match (kind, wire) {
        (Kind::Text, Wire::Bytes(b"")) | (Kind::Int | Kind::Flag, Wire::Varint(0)) => return Some(None),
        (Kind::Text | Kind::Given, Wire::Bytes(bytes)) => std::str::from_utf8(bytes).ok()?.into(),
        (Kind::Int | Kind::Count, Wire::Varint(number)) => (number as i64).into(),
        (Kind::Flag | Kind::Bool, Wire::Varint(number)) => (number != 0).into(),
        (Kind::Double, Wire::Fixed64(bits)) => double(f64::from_bits(bits)),
        (Kind::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Kind::Time | Kind::MicroTime, Wire::Bytes(bytes)) => {
            return Some(time(bytes, matches!(kind, Kind::MicroTime))?.map(Value::String));
        }
        (Kind::Json, Wire::Bytes(bytes)) => json_text(bytes)?,
        (Kind::Message(fields), Wire::Bytes(bytes)) => message(bytes, fields, level + 1)?,
        (Kind::Shaped(fields, shape), Wire::Bytes(bytes)) => shape(message(bytes, fields, level + 1)?),
        _ => return None,
    };
    Some(Some(value))
}

/// Go writes a whole number without a fraction.
fn double(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e18 { (number as i64).into() } else { number.into() }
}

fn json_text(bytes: &[u8]) -> Option<Value> {
    let mut text = &b"null"[..];
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            text = bytes;
        }
    }
    serde_json::from_slice(text).ok()
}

fn entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut key, mut value) = (&bytes[..0], &bytes[..0]);
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => key = bytes,
            (2, Wire::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    #[test]
    fn a_config_map_as_clients_send_it() {
        let about = [piece(1, b"v1"), piece(2, b"ConfigMap")].concat();
        let meta = [piece(1, b"greeting"), piece(2, b""), vec![7 << 3, 0], piece(8, b"")].concat();
        let data = [piece(1, b"text"), piece(2, b"hello")].concat();
        let raw = [piece(1, &meta), piece(2, &data), vec![4 << 3, 1]].concat();
        let envelope = [MAGIC.to_vec(), piece(1, &about), piece(2, &raw), piece(3, b""), piece(4, b"")].concat();
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting"},
            "data": {"text": "hello"}, "immutable": true});
        assert_eq!(decode(&envelope), Some(expected));
        // Cut anywhere it is damaged or says less, and never more than that.
        for end in 0..envelope.len() {
            let _ = decode(&envelope[..end]);
        }
        assert_eq!(decode(b"k8s\0\xff"), None);
    }

    /// As Kubernetes' typed client (0.37.2) encodes them. What is empty is left out in protobuf.
    #[test]
    fn definitions_as_the_typed_client_sends_them() {
        let rows: Vec<Value> = serde_json::from_str(include_str!("testdata/definitions.json")).unwrap();
        assert_eq!(rows.len(), 2);
        for row in rows {
            let bytes = STANDARD.decode(row["protobuf"].as_str().unwrap()).unwrap();
            assert_eq!(decode(&bytes).unwrap(), row["object"]);
            for end in 0..bytes.len() {
                let _ = decode(&bytes[..end]);
            }
        }
    }

    /// Messages within messages must not end the stack, nor be stored so deep that nobody could read them again.
    #[test]
    fn what_is_too_deep_is_refused() {
        let long = |number: u8, bytes: &[u8]| {
            let (low, high) = (bytes.len() as u64 & 0x7f | 0x80, bytes.len() as u64 >> 7);
            let length = [low as u8, (high & 0x7f | 0x80) as u8, (high >> 7) as u8];
            [&[(number << 3 | 2) & 0x7f | 0x80, number >> 4], &length[..], bytes].concat()
        };
        let of = |levels: usize| {
            // `not` of `not` of ...
            let schema = (0..levels).fold(Vec::new(), |inner, _| long(28, &inner));
            let version = long(4, &long(1, &schema));
            let about = [piece(1, b"apiextensions.k8s.io/v1"), piece(2, b"CustomResourceDefinition")].concat();
            [MAGIC.to_vec(), piece(1, &about), long(2, &long(2, &long(7, &version)))].concat()
        };
        let read = decode(&of(90)).unwrap();
        assert!(read["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["not"]["not"].is_object());
        assert_eq!(decode(&of(98)), None);
        assert_eq!(decode(&of(5_000)), None);
    }

    /// Rules of policies lie in messages within messages, and in one object in JSON.
    #[test]
    fn a_policy_as_another_server_stores_it() {
        let about = [piece(1, b"admissionregistration.k8s.io/v1"), piece(2, b"ValidatingAdmissionPolicy")].concat();
        let rule = [piece(1, b""), piece(2, b"v1"), piece(3, b"configmaps"), piece(4, b"*")].concat();
        let rule =
            [piece(1, b"a"), piece(2, &[piece(1, b"CREATE"), piece(1, b"UPDATE"), piece(2, &rule)].concat())].concat();
        let constraints = [piece(1, b""), piece(2, b""), piece(3, &rule), piece(7, b"Exact")].concat();
        let validation = [piece(1, b"false"), piece(2, b"no"), piece(4, b"")].concat();
        let spec = [piece(2, &constraints), piece(3, &validation), piece(4, b"Fail")].concat();
        let raw = [piece(1, &piece(1, b"p")), piece(2, &spec)].concat();
        let envelope = [MAGIC.to_vec(), piece(1, &about), piece(2, &raw)].concat();
        let expected = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
            "spec": {"failurePolicy": "Fail", "validations": [{"expression": "false", "message": "no"}], "matchConstraints": {
                "namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Exact", "resourceRules": [{"resourceNames": ["a"],
                    "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "scope": "*"}]}}});
        assert_eq!(decode(&envelope), Some(expected));
    }
}
