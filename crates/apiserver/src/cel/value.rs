//! Values of expressions. Parts of objects stay where they are until somebody looks at them.

use std::{cmp::Ordering, collections::BTreeMap, fmt, net::IpAddr, ops::Deref, sync::Arc};

use serde_json::Value as Json;

use super::{
    Error, Meter,
    library::{Cidr, Format, Quantity, Semver, Url},
    types::{ListKind, ObjectType, Type},
};

#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<Vec<u8>>),
    Timestamp(jiff::Timestamp),
    /// Nanoseconds, as in Go.
    Duration(i64),
    Type(&'static str),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Box<Value<'a>>>),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Arc<Url>),
    Quantity(Quantity),
    Semver(Arc<Semver>),
    Format(Format),
}

#[derive(Clone, Debug)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum List<'a> {
    Json(&'a [Json], Arc<Type>, ListKind),
    Made(Arc<Vec<Value<'a>>>, ListKind),
}

#[derive(Clone, Debug)]
pub(crate) enum Map<'a> {
    /// Keys are text, values all of one type.
    Json(&'a serde_json::Map<String, Json>, Arc<Type>),
    /// Fields with a type each.
    Object(&'a serde_json::Map<String, Json>, Arc<ObjectType>),
    Made(Arc<BTreeMap<Key, Value<'a>>>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    /// Signed and unsigned alike.
    Int(i128),
    String(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Bool(key) => write!(f, "{key}"),
            Key::Int(key) => write!(f, "{key}"),
            Key::String(key) => f.write_str(key),
        }
    }
}

impl Key {
    pub(crate) fn of(value: &Value<'_>) -> Result<Key, Error> {
        match value {
            Value::Bool(key) => Ok(Key::Bool(*key)),
            Value::Int(key) => Ok(Key::Int((*key).into())),
            Value::Uint(key) => Ok(Key::Int((*key).into())),
            Value::Double(key) if key.fract() == 0.0 => Ok(Key::Int(*key as i128)),
            Value::String(key) => Ok(Key::String(key.to_string())),
            _ => Err(Error::other("unsupported key type")),
        }
    }

    fn value<'a>(&self) -> Value<'a> {
        match self {
            Key::Bool(key) => Value::Bool(*key),
            Key::Int(key) => i64::try_from(*key).map_or_else(|_| Value::Uint(*key as u64), Value::Int),
            Key::String(key) => Value::text(key.as_str()),
        }
    }
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: impl Into<Arc<str>>) -> Value<'a> {
        Value::String(Text::Shared(text.into()))
    }

    pub(crate) fn list(items: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::Made(Arc::new(items), ListKind::Atomic))
    }

    pub(crate) fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Box::new(value)))
    }

    /// How large a value is to look at: characters, bytes, items.
    pub(crate) fn size(&self) -> usize {
        match self {
            Value::String(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            _ => 1,
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Type(_) => "type",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Optional(_) => "optional_type",
            Value::Ip(_) => "net.IP",
            Value::Cidr(_) => "net.CIDR",
            Value::Url(_) => "kubernetes.URL",
            Value::Quantity(_) => "kubernetes.Quantity",
            Value::Semver(_) => "kubernetes.Semver",
            Value::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// Whether the value may be handed to a parameter of this type.
    pub(crate) fn is(&self, wanted: &Type) -> bool {
        match (wanted, self) {
            (Type::Dyn | Type::Param(_), _) => true,
            (Type::Null, Value::Null) | (Type::Bool, Value::Bool(_)) | (Type::Int, Value::Int(_)) => true,
            (Type::Uint, Value::Uint(_)) | (Type::Double, Value::Double(_)) | (Type::String, Value::String(_)) => true,
            (Type::Bytes, Value::Bytes(_)) | (Type::Timestamp, Value::Timestamp(_)) => true,
            (Type::Duration, Value::Duration(_)) | (Type::Kind, Value::Type(_)) => true,
            (Type::List(of, _), Value::List(list)) => list.first().is_none_or(|item| item.is(of)),
            (Type::Map(..), Value::Map(_)) | (Type::Optional(_), Value::Optional(_)) => true,
            (Type::Named(name), value) => value.type_name() == *name,
            _ => false,
        }
    }

    /// Equal as CEL means it: numbers by value whatever their type, lists and maps by content.
    pub(crate) fn equals(&self, other: &Value<'a>, meter: &mut Meter) -> Result<bool, Error> {
        use Value::*;
        meter.charge(1)?;
        Ok(match (self, other) {
            (Int(_) | Uint(_) | Double(_), Int(_) | Uint(_) | Double(_)) => {
                numeric_order(self, other) == Some(Ordering::Equal)
            }
            (Null, Null) => true,
            (Bool(a), Bool(b)) => a == b,
            (String(a), String(b)) => {
                meter.charge_text(a.len().min(b.len()))?;
                **a == **b
            }
            (Bytes(a), Bytes(b)) => {
                meter.charge_text(a.len().min(b.len()))?;
                a == b
            }
            (Timestamp(a), Timestamp(b)) => a == b,
            (Duration(a), Duration(b)) => a == b,
            (Type(a), Type(b)) => a == b,
            (List(a), List(b)) => a.equals(b, meter)?,
            (Map(a), Map(b)) => a.equals(b, meter)?,
            (Optional(None), Optional(None)) => true,
            (Optional(Some(a)), Optional(Some(b))) => a.equals(b, meter)?,
            (Ip(a), Ip(b)) => a == b,
            (Cidr(a), Cidr(b)) => a == b,
            (Url(a), Url(b)) => a == b,
            (Quantity(a), Quantity(b)) => a.order(b) == Ordering::Equal,
            (Semver(a), Semver(b)) => a.order(b) == Ordering::Equal,
            (Format(a), Format(b)) => a == b,
            _ => false,
        })
    }

    /// Which comes first, where that can be said.
    pub(crate) fn order(&self, other: &Value<'a>) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::String(a), Value::String(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
            (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
            _ => numeric_order(self, other),
        }
    }
}

fn numeric_order(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    use Value::*;
    let whole = |value: &Value<'_>| match value {
        Int(value) => Some(i128::from(*value)),
        Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    match (a, b) {
        (Double(a), Double(b)) => a.partial_cmp(b),
        (Double(a), b) => double_order(*a, whole(b)?),
        (a, Double(b)) => double_order(*b, whole(a)?).map(Ordering::reverse),
        _ => Some(whole(a)?.cmp(&whole(b)?)),
    }
}

/// A double against a whole number, without losing digits of the latter.
fn double_order(a: f64, b: i128) -> Option<Ordering> {
    if a.is_nan() {
        return None;
    }
    if a.abs() >= 1e30 {
        return Some(if a > 0.0 { Ordering::Greater } else { Ordering::Less });
    }
    let floor = a.floor();
    Some((floor as i128).cmp(&b).then(if a > floor { Ordering::Greater } else { Ordering::Equal }))
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            List::Json(items, ..) => items.len(),
            List::Made(items, _) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            List::Json(items, of, _) => items.get(index).map(|item| Value::of(item, of)),
            List::Made(items, _) => items.get(index).cloned(),
        }
    }

    pub(crate) fn first(&self) -> Option<Value<'a>> {
        self.get(0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    pub(crate) fn kind(&self) -> &ListKind {
        match self {
            List::Json(_, _, kind) | List::Made(_, kind) => kind,
        }
    }

    pub(crate) fn contains(&self, value: &Value<'a>, meter: &mut Meter) -> Result<bool, Error> {
        for item in self.iter() {
            if item.equals(value, meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn equals(&self, other: &List<'a>, meter: &mut Meter) -> Result<bool, Error> {
        if self.len() != other.len() {
            return Ok(false);
        }
        let loose = !matches!(self.kind(), ListKind::Atomic);
        for (index, item) in self.iter().enumerate() {
            let found = match (loose, other.get(index)) {
                // Sets and maps have no order.
                (true, _) => other.contains(&item, meter)?,
                (false, Some(at)) => item.equals(&at, meter)?,
                (false, None) => false,
            };
            if !found {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Map::Json(map, _) | Map::Object(map, _) => map.len(),
            Map::Made(map) => map.len(),
        }
    }

    /// The value under a key; a field of an object by the name that expressions use.
    pub(crate) fn get(&self, key: &Key) -> Option<Value<'a>> {
        match (self, key) {
            (Map::Made(map), key) => map.get(key).cloned(),
            (Map::Json(map, of), Key::String(key)) => map.get(key).map(|value| Value::of(value, of)),
            (Map::Object(map, object), Key::String(key)) => {
                let (name, kind) = object.fields.get(key)?;
                // A null that a field may have is as if it were not there.
                map.get(name).filter(|value| !value.is_null()).map(|value| Value::of(value, kind))
            }
            _ => None,
        }
    }

    /// All keys, which are made at once, so they are paid for at once.
    pub(crate) fn paid_keys(&self, meter: &mut Meter) -> Result<Vec<Value<'a>>, Error> {
        let looked_at = match self {
            Map::Object(_, object) => object.fields.len(),
            _ => self.len(),
        };
        meter.charge_text(looked_at)?;
        Ok(self.keys())
    }

    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Json(map, _) => map.keys().map(|key| Value::String(Text::Borrowed(key))).collect(),
            Map::Object(map, object) => {
                let there =
                    object.fields.iter().filter(|(_, (name, _))| map.get(name).is_some_and(|value| !value.is_null()));
                there.map(|(key, _)| Value::text(key.as_str())).collect()
            }
            Map::Made(map) => map.keys().map(Key::value).collect(),
        }
    }

    fn equals(&self, other: &Map<'a>, meter: &mut Meter) -> Result<bool, Error> {
        let keys = self.paid_keys(meter)?;
        if keys.len() != other.paid_keys(meter)?.len() {
            return Ok(false);
        }
        for key in keys {
            let key = Key::of(&key)?;
            let same = match (self.get(&key), other.get(&key)) {
                (Some(a), Some(b)) => a.equals(&b, meter)?,
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
