//! Values that may be missing.

use super::{GLOBAL, MEMBER, Row, mismatch};
use crate::cel::{Error, Meter, value::Value};

pub(super) const ROWS: &[Row] = &[
    ("optional.of", GLOBAL, "A", "optional(A)", |args, _| Ok(Value::some(args[0].clone()))),
    ("optional.none", GLOBAL, "", "optional(A)", |_, _| Ok(Value::Optional(None))),
    ("optional.ofNonZeroValue", GLOBAL, "A", "optional(A)", |args, _| {
        Ok(if is_zero(&args[0]) { Value::Optional(None) } else { Value::some(args[0].clone()) })
    }),
    ("hasValue", MEMBER, "optional(A)", "bool", |args, _| match args {
        [Value::Optional(inner)] => Ok(Value::Bool(inner.is_some())),
        _ => mismatch(),
    }),
    ("value", MEMBER, "optional(A)", "A", |args, _| match args {
        [Value::Optional(Some(inner))] => Ok(inner.as_ref().clone()),
        [Value::Optional(None)] => Err(Error::other("optional.none() dereference")),
        _ => mismatch(),
    }),
    ("or", MEMBER, "optional(A) optional(A)", "optional(A)", |args, _| match args {
        [Value::Optional(None), other] => Ok(other.clone()),
        [some, _] => Ok(some.clone()),
        _ => mismatch(),
    }),
    ("orValue", MEMBER, "optional(A) A", "A", |args, _| match args {
        [Value::Optional(Some(inner)), _] => Ok(inner.as_ref().clone()),
        [_, other] => Ok(other.clone()),
        _ => mismatch(),
    }),
    ("first", MEMBER, "list(A)", "optional(A)", |args, _| match args {
        [Value::List(list)] => Ok(list.first().map_or(Value::Optional(None), Value::some)),
        _ => mismatch(),
    }),
    ("last", MEMBER, "list(A)", "optional(A)", |args, _| match args {
        [Value::List(list)] => {
            let last = list.len().checked_sub(1).and_then(|at| list.get(at));
            Ok(last.map_or(Value::Optional(None), Value::some))
        }
        _ => mismatch(),
    }),
    ("optional.unwrap", GLOBAL, "list(optional(A))", "list(A)", unwrap),
    ("unwrapOpt", MEMBER, "list(optional(A))", "list(A)", unwrap),
];

/// What is there of what may be missing.
fn unwrap<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<Value<'a>, Error> {
    let [Value::List(list)] = args else { return mismatch() };
    meter.charge(list.len() as u64)?;
    let items = list.iter().map(|item| match item {
        Value::Optional(inner) => Ok(inner.map(|inner| *inner)),
        other => Err(Error::other(format!("value {} is not optional", other.type_name()))),
    });
    let items: Vec<Option<Value<'a>>> = items.collect::<Result<_, _>>()?;
    Ok(Value::list(items.into_iter().flatten().collect()))
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null
        | Value::Bool(false)
        | Value::Int(0)
        | Value::Uint(0)
        | Value::Duration(0)
        | Value::Optional(None) => true,
        Value::Double(value) => *value == 0.0,
        Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => value.size() == 0,
        _ => false,
    }
}
