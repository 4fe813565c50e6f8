//! Lists as sequences and as sets.

use std::cmp::Ordering;

use super::{GLOBAL, MEMBER, Row, call, mismatch};
use crate::cel::{
    Error, Meter,
    ast::Member,
    value::{List, Value},
};

type Result<'a> = std::result::Result<Value<'a>, Error>;

pub(super) const ROWS: &[Row] = &[
    ("isSorted", MEMBER, "list(A)", "bool", is_sorted),
    ("sum", MEMBER, "list(int)", "int", |args, meter| sum(args, meter, Value::Int(0))),
    ("sum", MEMBER, "list(uint)", "uint", |args, meter| sum(args, meter, Value::Uint(0))),
    ("sum", MEMBER, "list(double)", "double", |args, meter| sum(args, meter, Value::Double(0.0))),
    ("sum", MEMBER, "list(duration)", "duration", |args, meter| sum(args, meter, Value::Duration(0))),
    ("max", MEMBER, "list(A)", "A", |args, meter| extreme(args, meter, "max", Ordering::Greater)),
    ("min", MEMBER, "list(A)", "A", |args, meter| extreme(args, meter, "min", Ordering::Less)),
    ("indexOf", MEMBER, "list(A) A", "int", |args, meter| position(args, meter, false)),
    ("lastIndexOf", MEMBER, "list(A) A", "int", |args, meter| position(args, meter, true)),
    ("sets.contains", GLOBAL, "list(A) list(A)", "bool", |args, meter| match args {
        [Value::List(a), Value::List(b)] => Ok(Value::Bool(has_all(a, b, meter)?)),
        _ => mismatch(),
    }),
    ("sets.equivalent", GLOBAL, "list(A) list(A)", "bool", |args, meter| match args {
        [Value::List(a), Value::List(b)] => Ok(Value::Bool(has_all(a, b, meter)? && has_all(b, a, meter)?)),
        _ => mismatch(),
    }),
    ("sets.intersects", GLOBAL, "list(A) list(A)", "bool", intersects),
];

fn is_sorted<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::List(list)] = args else { return mismatch() };
    let mut before: Option<Value<'a>> = None;
    for item in list.iter() {
        meter.charge(1)?;
        meter.charge_copy(item.size())?;
        if let Some(before) = &before {
            match before.order(&item) {
                Some(Ordering::Greater) => return Ok(Value::Bool(false)),
                Some(_) => {}
                None => return mismatch(),
            }
        }
        before = Some(item);
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(args: &[Value<'a>], meter: &mut Meter, zero: Value<'a>) -> Result<'a> {
    let [Value::List(list)] = args else { return mismatch() };
    list.iter().try_fold(zero, |total, item| {
        meter.charge(1)?;
        call("_+_", Member::No, &[total, item], meter)
    })
}

fn extreme<'a>(args: &[Value<'a>], meter: &mut Meter, name: &str, wanted: Ordering) -> Result<'a> {
    let [Value::List(list)] = args else { return mismatch() };
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        meter.charge(1)?;
        meter.charge_copy(item.size())?;
        let better = match &best {
            None => true,
            Some(best) => match item.order(best) {
                Some(order) => order == wanted,
                None => return mismatch(),
            },
        };
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| Error::other(format!("{name} called on empty list")))
}

fn position<'a>(args: &[Value<'a>], meter: &mut Meter, last: bool) -> Result<'a> {
    let [Value::List(list), wanted] = args else { return mismatch() };
    let mut found = -1;
    for (index, item) in list.iter().enumerate() {
        if item.equals(wanted, meter)? {
            found = index as i64;
            if !last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn has_all<'a>(a: &List<'a>, b: &List<'a>, meter: &mut Meter) -> std::result::Result<bool, Error> {
    for item in b.iter() {
        if !a.contains(&item, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::List(a), Value::List(b)] = args else { return mismatch() };
    for item in a.iter() {
        if b.contains(&item, meter)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
