//! Takes one part out of a value and leaves every other byte as it is.

use prost::encoding::{DecodeContext, decode_key, skip_field};
use serde::{
    Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;

/// The object without the key `name`; the others keep their order and their bytes.
pub(super) fn cut_json(value: &[u8], name: &str) -> Result<Vec<u8>, String> {
    let mut pairs = serde_json::Deserializer::from_slice(value).deserialize_map(Object).map_err(|e| e.to_string())?;
    pairs.0.retain(|(key, _)| key != name);
    super::go_json::to_vec(&pairs).map_err(|e| e.to_string())
}

/// The message without the field `number`.
pub(super) fn cut_proto(value: &[u8], number: u32) -> Result<Vec<u8>, String> {
    let (mut rest, mut out) = (value, Vec::with_capacity(value.len()));
    while !rest.is_empty() {
        let begin = rest;
        let (tag, wire_type) = decode_key(&mut rest).map_err(|e| e.to_string())?;
        skip_field(wire_type, tag, &mut rest, DecodeContext::default()).map_err(|e| e.to_string())?;
        if tag != number {
            out.extend_from_slice(&begin[..begin.len() - rest.len()]);
        }
    }
    Ok(out)
}

/// Keys and values in the order in which they stand.
struct Pairs(Vec<(String, Box<RawValue>)>);

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Pairs;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use proto::leasepb::Lease;

    use super::*;

    #[test]
    fn the_rest_of_an_object_keeps_its_bytes() {
        let json = br#"{"id":17088423831775458271,"zone":{"a":[1,2]},"name":"x\u0026y","peerURLs":["http://a:1"]}"#;
        let cut = cut_json(json, "zone").unwrap();
        let expected = r#"{"id":17088423831775458271,"name":"x\u0026y","peerURLs":["http://a:1"]}"#;
        assert_eq!(String::from_utf8(cut.clone()).unwrap(), expected);
        assert_eq!(cut_json(&cut, "zone").unwrap(), cut);
        assert!(cut_json(b"[1]", "zone").is_err());
    }

    #[test]
    fn the_rest_of_a_message_keeps_its_bytes() {
        let lease = Lease { id: 5, ttl: 60, remaining_ttl: 30 };
        let cut = cut_proto(&lease.encode_to_vec(), 3).unwrap();
        assert_eq!(cut, Lease { remaining_ttl: 0, ..lease }.encode_to_vec());
        assert!(cut_proto(&[0x0a, 0x05, 1], 1).is_err());
    }
}
