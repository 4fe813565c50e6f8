//! Operators. Whole numbers that do not fit are an error and never wrap.

use std::{cmp::Ordering, sync::Arc};

use super::{Call, GLOBAL, Row, mismatch};
use crate::cel::{
    Error, Meter,
    types::ListKind,
    value::{Key, List, Value},
};

type Result<'a> = std::result::Result<Value<'a>, Error>;

pub(super) const ROWS: &[Row] = &[
    ("_==_", GLOBAL, "A A", "bool", |args, meter| Ok(Value::Bool(args[0].equals(&args[1], meter)?))),
    ("_!=_", GLOBAL, "A A", "bool", |args, meter| Ok(Value::Bool(!args[0].equals(&args[1], meter)?))),
    ("!_", GLOBAL, "bool", "bool", |args, _| match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => mismatch(),
    }),
    ("-_", GLOBAL, "int", "int", negate),
    ("-_", GLOBAL, "double", "double", negate),
    ("@in", GLOBAL, "A list(A)", "bool", |args, meter| match args {
        [value, Value::List(list)] => Ok(Value::Bool(list.contains(value, meter)?)),
        _ => mismatch(),
    }),
    ("@in", GLOBAL, "A map(A,B)", "bool", |args, _| match args {
        [key, Value::Map(map)] => Ok(Value::Bool(map.get(&Key::of(key)?).is_some())),
        _ => mismatch(),
    }),
    ("_+_", GLOBAL, "int int", "int", arithmetic_add),
    ("_+_", GLOBAL, "uint uint", "uint", arithmetic_add),
    ("_+_", GLOBAL, "double double", "double", arithmetic_add),
    ("_+_", GLOBAL, "string string", "string", join),
    ("_+_", GLOBAL, "bytes bytes", "bytes", join),
    ("_+_", GLOBAL, "list(A) list(A)", "list(A)", concatenate),
    ("_+_", GLOBAL, "timestamp duration", "timestamp", moment),
    ("_+_", GLOBAL, "duration timestamp", "timestamp", |args, meter| {
        moment(&[args[1].clone(), args[0].clone()], meter)
    }),
    ("_+_", GLOBAL, "duration duration", "duration", moment),
    ("_-_", GLOBAL, "int int", "int", subtract),
    ("_-_", GLOBAL, "uint uint", "uint", subtract),
    ("_-_", GLOBAL, "double double", "double", subtract),
    ("_-_", GLOBAL, "timestamp timestamp", "duration", between),
    ("_-_", GLOBAL, "timestamp duration", "timestamp", between),
    ("_-_", GLOBAL, "duration duration", "duration", between),
    ("_*_", GLOBAL, "int int", "int", multiply),
    ("_*_", GLOBAL, "uint uint", "uint", multiply),
    ("_*_", GLOBAL, "double double", "double", multiply),
    ("_/_", GLOBAL, "int int", "int", divide),
    ("_/_", GLOBAL, "uint uint", "uint", divide),
    ("_/_", GLOBAL, "double double", "double", divide),
    ("_%_", GLOBAL, "int int", "int", remainder),
    ("_%_", GLOBAL, "uint uint", "uint", remainder),
];

/// Comparisons: of two values of a type that has an order, and of numbers of any types.
pub(super) fn comparisons() -> Vec<Row> {
    const PAIRS: [&str; 14] = [
        "bool bool",
        "int int",
        "uint uint",
        "double double",
        "string string",
        "bytes bytes",
        "timestamp timestamp",
        "duration duration",
        "int uint",
        "int double",
        "uint int",
        "uint double",
        "double int",
        "double uint",
    ];
    let operators: [(&'static str, Call); 4] = [
        ("_<_", |args, meter| compare(args, meter, Ordering::is_lt)),
        ("_<=_", |args, meter| compare(args, meter, Ordering::is_le)),
        ("_>_", |args, meter| compare(args, meter, Ordering::is_gt)),
        ("_>=_", |args, meter| compare(args, meter, Ordering::is_ge)),
    ];
    let rows = operators.into_iter().flat_map(|(name, call)| PAIRS.map(|pair| (name, GLOBAL, pair, "bool", call)));
    rows.collect()
}

fn overflow<'a>() -> Result<'a> {
    Err(Error::other("integer overflow"))
}

fn unsigned_overflow<'a>() -> Result<'a> {
    Err(Error::other("unsigned integer overflow"))
}

fn negate<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    match args {
        [Value::Int(value)] => value.checked_neg().map_or_else(overflow, |value| Ok(Value::Int(value))),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        _ => mismatch(),
    }
}

fn whole<'a>(
    args: &[Value<'a>],
    signed: fn(i64, i64) -> Option<i64>,
    unsigned: fn(u64, u64) -> Option<u64>,
    double: fn(f64, f64) -> f64,
) -> Result<'a> {
    match args {
        [Value::Int(a), Value::Int(b)] => signed(*a, *b).map_or_else(overflow, |value| Ok(Value::Int(value))),
        [Value::Uint(a), Value::Uint(b)] => {
            unsigned(*a, *b).map_or_else(unsigned_overflow, |value| Ok(Value::Uint(value)))
        }
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(double(*a, *b))),
        _ => mismatch(),
    }
}

fn arithmetic_add<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    whole(args, i64::checked_add, u64::checked_add, |a, b| a + b)
}

fn subtract<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    whole(args, i64::checked_sub, u64::checked_sub, |a, b| a - b)
}

fn multiply<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    whole(args, i64::checked_mul, u64::checked_mul, |a, b| a * b)
}

fn divide<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    match args {
        [_, Value::Int(0) | Value::Uint(0)] => Err(Error::other("division by zero")),
        _ => whole(args, i64::checked_div, u64::checked_div, |a, b| a / b),
    }
}

fn remainder<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    match args {
        [_, Value::Int(0) | Value::Uint(0)] => Err(Error::other("modulus by zero")),
        _ => whole(args, i64::checked_rem, u64::checked_rem, |a, b| a % b),
    }
}

fn join<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    meter.charge_text(args[0].size() + args[1].size())?;
    match args {
        [Value::String(a), Value::String(b)] => Ok(Value::text([&**a, &**b].concat())),
        [Value::Bytes(a), Value::Bytes(b)] => Ok(Value::Bytes(Arc::new([a.as_slice(), b.as_slice()].concat()))),
        _ => mismatch(),
    }
}

/// Sets grow by what they lack, maps take new values for the keys they have.
fn concatenate<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::List(a), Value::List(b)] = args else { return mismatch() };
    meter.charge((a.len() + b.len()) as u64)?;
    let mut items: Vec<Value<'a>> = a.iter().collect();
    for item in b.iter() {
        let same = match a.kind() {
            ListKind::Atomic => None,
            ListKind::Set => position(&items, &item, &[], meter)?,
            ListKind::Map(keys) => position(&items, &item, keys, meter)?,
        };
        match same {
            None => items.push(item),
            Some(index) => items[index] = item,
        }
    }
    Ok(Value::List(List::Made(Arc::new(items), a.kind().clone())))
}

/// Where an item with the same keys stands; without keys the whole item counts.
fn position<'a>(
    items: &[Value<'a>],
    wanted: &Value<'a>,
    keys: &[String],
    meter: &mut Meter,
) -> std::result::Result<Option<usize>, Error> {
    let field = |value: &Value<'a>, key: &String| match value {
        Value::Map(map) => map.get(&Key::String(key.clone())),
        _ => None,
    };
    'items: for (index, item) in items.iter().enumerate() {
        if keys.is_empty() {
            if item.equals(wanted, meter)? {
                return Ok(Some(index));
            }
            continue;
        }
        for key in keys {
            let same = match (field(item, key), field(wanted, key)) {
                (Some(a), Some(b)) => a.equals(&b, meter)?,
                (None, None) => true,
                _ => false,
            };
            if !same {
                continue 'items;
            }
        }
        return Ok(Some(index));
    }
    Ok(None)
}

fn moment<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    match args {
        [Value::Timestamp(at), Value::Duration(nanos)] => {
            match at.checked_add(jiff::SignedDuration::from_nanos(*nanos)) {
                Ok(at) => Ok(Value::Timestamp(at)),
                Err(_) => Err(Error::other("timestamp overflow")),
            }
        }
        [Value::Duration(a), Value::Duration(b)] => match a.checked_add(*b) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => Err(Error::other("duration overflow")),
        },
        _ => mismatch(),
    }
}

fn between<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let too_long = || Error::other("duration overflow");
    match args {
        [Value::Timestamp(a), Value::Timestamp(b)] => {
            let nanos = a.as_nanosecond() - b.as_nanosecond();
            Ok(Value::Duration(i64::try_from(nanos).map_err(|_| too_long())?))
        }
        [at, Value::Duration(nanos)] => {
            let back = nanos.checked_neg().ok_or_else(too_long)?;
            moment(&[at.clone(), Value::Duration(back)], meter)
        }
        _ => mismatch(),
    }
}

fn compare<'a>(args: &[Value<'a>], meter: &mut Meter, fits: fn(Ordering) -> bool) -> Result<'a> {
    meter.charge_text(args[0].size().min(args[1].size()))?;
    match args[0].order(&args[1]) {
        Some(order) => Ok(Value::Bool(fits(order))),
        None if matches!((&args[0], &args[1]), (Value::Double(_), _) | (_, Value::Double(_))) => {
            Err(Error::other("NaN values cannot be ordered"))
        }
        None => mismatch(),
    }
}
