//! Bodies as JSON values, with the names of fields that come twice.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::field::child;

/// Deeper than any object of sense, and far from the end of the stack.
pub const DEPTH_MAX: usize = 100;

pub struct Decoded {
    pub value: Value,
    /// Paths of fields that were given more than once; the last one counts.
    pub duplicates: Vec<String>,
}

pub fn json(bytes: &[u8]) -> Result<Decoded, serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Seed { path: String::new(), depth: 0, duplicates: &mut duplicates }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Decoded { value, duplicates })
}

/// JSON or YAML; of keys that come twice the last one counts here too.
pub fn yaml(bytes: &[u8]) -> Result<Decoded, String> {
    if let Ok(decoded) = json(bytes) {
        return Ok(decoded);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let lenient = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let value: Value = serde_saphyr::from_str_with_options(text, lenient).map_err(|error| error.to_string())?;
    let strict = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error };
    let fault = serde_saphyr::from_str_with_options::<Value>(text, strict).err();
    if depth(&value) > DEPTH_MAX {
        return Err("exceeded max depth".to_owned());
    }
    Ok(Decoded { value, duplicates: fault.map(|fault| fault.to_string()).into_iter().collect() })
}

/// How many maps and lists are within each other.
pub fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Object(map) => map.values().map(depth).max(),
        Value::Array(list) => list.iter().map(depth).max(),
        _ => return 0,
    };
    below.unwrap_or_default() + 1
}

struct Seed<'a> {
    path: String,
    depth: usize,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > DEPTH_MAX {
            return Err(serde::de::Error::custom("exceeded max depth"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            let seed = Seed { path, depth: self.depth + 1, duplicates: self.duplicates };
            match seq.next_element_seed(seed)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = child(&self.path, &key);
            let seed = Seed { path: path.clone(), depth: self.depth + 1, duplicates: self.duplicates };
            let value = access.next_value_seed(seed)?;
            if map.insert(key, value).is_some() && !self.duplicates.contains(&path) {
                self.duplicates.push(path);
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_come_twice_are_named() {
        let decoded =
            json(br#"{"a": 1, "spec": {"x": 1, "x": 2, "l": [{"y": 1, "y": 2}]}, "a": {"b": null}}"#).unwrap();
        assert_eq!(decoded.duplicates, ["spec.x", "spec.l[0].y", "a"]);
        assert_eq!(decoded.value["spec"]["x"], 2);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for bad in ["", "{", "{} x", "{\"a\":}", &"[".repeat(1000)] {
            assert!(json(bad.as_bytes()).is_err(), "{bad:.20}");
        }
    }

    #[test]
    fn yaml_is_as_deep_as_json_may_be() {
        let nested = |depth: usize| (0..depth).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<String>();
        assert!(yaml(nested(30).as_bytes()).is_ok());
        for depth in [102, 120, 1000] {
            assert!(yaml(nested(depth).as_bytes()).is_err(), "{depth}");
        }
    }
}
