//! Bodies as JSON values, with the names of fields that come twice.

mod yaml;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub(crate) use self::yaml::yaml;
use crate::field::child;

/// Deeper than any object of sense, and far from the end of the stack.
pub(crate) const DEPTH_MAX: usize = 100;

pub(crate) struct Decoded {
    pub value: Value,
    pub twice: Twice,
}

/// Fields that were given more than once. The last one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Twice {
    /// In JSON, as `spec.list[0].field`.
    pub paths: Vec<String>,
    /// In YAML, where the parser of Kubernetes tells lines, as `line 3: key "a" already set in map`.
    pub lines: Vec<String>,
}

impl Twice {
    /// Without what is at or below one of these paths.
    pub(crate) fn beside(&self, passed: &[String]) -> Twice {
        let is_in = |path: &str, passed: &String| {
            path.strip_prefix(passed.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let paths = self.paths.iter().filter(|path| !passed.iter().any(|passed| is_in(path, passed)));
        Twice { paths: paths.cloned().collect(), lines: self.lines.clone() }
    }

    /// Each of them.
    pub(crate) fn told(&self) -> Vec<String> {
        self.paths.iter().map(|path| format!("duplicate field {path:?}")).chain(self.lines.iter().cloned()).collect()
    }

    /// The same as parts of a refusal, for which lines are one.
    pub(crate) fn faults(&self) -> Vec<String> {
        if self.lines.is_empty() {
            self.told()
        } else {
            vec![format!("yaml: unmarshal errors:\n  {}", self.lines.join("\n  "))]
        }
    }
}

pub(crate) fn json(bytes: &[u8]) -> Result<Decoded, serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Seed { path: String::new(), depth: 0, duplicates: &mut duplicates }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Decoded { value, twice: Twice { paths: duplicates, lines: Vec::new() } })
}

/// A number with a fraction or an exponent. One that is whole is an integer from then on, as in Kubernetes: clients with types of their
/// own read no `1.0` into an integer.
fn number(value: f64) -> Value {
    /// Up to here every integer has a float of its own.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= WHOLE_MAX {
        (value as i64).into()
    } else {
        Number::from_f64(value).map_or(Value::Null, Value::Number)
    }
}

/// How many maps and lists are within each other.
pub(crate) fn depth(value: &Value) -> usize {
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
        Ok(number(value))
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
    use test_case::test_case;

    use super::*;

    #[test]
    fn fields_that_come_twice_are_named() {
        let decoded =
            json(br#"{"a": 1, "spec": {"x": 1, "x": 2, "l": [{"y": 1, "y": 2}]}, "a": {"b": null}}"#).unwrap();
        assert_eq!(decoded.twice.paths, ["spec.x", "spec.l[0].y", "a"]);
        assert_eq!(decoded.value["spec"]["x"], 2);
    }

    /// As Kubernetes stores them, but for what is beyond 64 bits, which it rounds.
    #[test_case("1e3" => "1000")]
    #[test_case("1.0" => "1")]
    #[test_case("-0" => "0")]
    #[test_case("-0.0" => "0")]
    #[test_case("-3.0e0" => "-3")]
    #[test_case("0.5" => "0.5")]
    #[test_case("1e300" => "1e+300")]
    #[test_case("9223372036854775807" => "9223372036854775807")]
    #[test_case("9007199254740993" => "9007199254740993")]
    fn numbers(text: &str) -> String {
        let yaml = yaml(format!("a: {text}").as_bytes()).unwrap().value["a"].to_string();
        assert_eq!(json(text.as_bytes()).unwrap().value.to_string(), yaml);
        yaml
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for bad in ["", "{", "{} x", "{\"a\":}", &"[".repeat(1000)] {
            assert!(json(bad.as_bytes()).is_err(), "{bad:.20}");
        }
    }
}
