//! From JSON to values, by the type that a schema gives them.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value as Json;

use super::{
    library,
    types::{ListKind, Type},
    value::{List, Map, Text, Value},
};

impl<'a> Value<'a> {
    /// A value of JSON as one of this type. Objects have been validated before; what still does not fit is taken for what it
    /// looks like.
    pub(crate) fn of(json: &'a Json, kind: &Type) -> Value<'a> {
        match (kind, json) {
            (Type::List(item, kind), Json::Array(items)) => Value::List(List::Json(items, item.clone(), kind.clone())),
            (Type::Map(_, value), Json::Object(map)) => Value::Map(Map::Json(map, value.clone())),
            (Type::Object(object), Json::Object(map)) => Value::Map(Map::Object(map, object.clone())),
            (Type::Double, Json::Number(number)) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            (Type::Int, Json::Number(number)) => match number.as_i64() {
                Some(whole) => Value::Int(whole),
                None => Value::Int(number.as_f64().unwrap_or_default() as i64),
            },
            (Type::Timestamp, Json::String(text)) => timestamp(text).unwrap_or(Value::String(Text::Borrowed(text))),
            (Type::Duration, Json::String(text)) => match library::parse_duration(text) {
                Some(nanos) => Value::Duration(nanos),
                None => Value::String(Text::Borrowed(text)),
            },
            (Type::Bytes, Json::String(text)) => match STANDARD.decode(text) {
                Ok(bytes) => Value::Bytes(bytes.into()),
                Err(_) => Value::String(Text::Borrowed(text)),
            },
            _ => Value::untyped(json),
        }
    }

    fn untyped(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Value::Int(value),
                (None, Some(value)) => Value::Uint(value),
                (None, None) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::String(Text::Borrowed(text)),
            Json::Array(items) => Value::List(List::Json(items, Type::Dyn.into(), ListKind::Atomic)),
            Json::Object(map) => Value::Map(Map::Json(map, Type::Dyn.into())),
        }
    }
}

/// A date alone is its midnight.
fn timestamp<'a>(text: &str) -> Option<Value<'a>> {
    let date = || text.parse::<jiff::civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    text.parse::<jiff::Timestamp>().ok().or_else(|| date().map(|zoned| zoned.timestamp())).map(Value::Timestamp)
}
