//! Lists made of lists: parts, orders, and what is in them once (the lists of cel-go in its third version).

use std::cmp::Ordering;

use super::{GLOBAL, MEMBER, Row, SORT_BY, mismatch};
use crate::cel::{
    Error, Meter,
    value::{List, Value},
};

type Result<'a> = std::result::Result<Value<'a>, Error>;

/// What a call costs that makes a list.
const MAKE_COST: u64 = 11;

pub(super) const ROWS: &[Row] = &[
    ("slice", MEMBER, "list(A) int int", "list(A)", slice),
    ("flatten", MEMBER, "list(list(A))", "list(A)", |args, meter| flatten(args, 1, meter)),
    ("flatten", MEMBER, "list(dyn) int", "list(dyn)", |args, meter| match args {
        [_, Value::Int(depth)] if *depth < 0 => Err(Error::other("level must be non-negative")),
        [_, Value::Int(depth)] => flatten(args, *depth, meter),
        _ => mismatch(),
    }),
    ("lists.range", GLOBAL, "int", "list(int)", range),
    ("reverse", MEMBER, "list(A)", "list(A)", |args, meter| {
        let [Value::List(list)] = args else { return mismatch() };
        meter.charge(list.len() as u64 + MAKE_COST)?;
        let mut items: Vec<Value<'_>> = list.iter().collect();
        items.reverse();
        Ok(Value::list(items))
    }),
    ("distinct", MEMBER, "list(A)", "list(A)", distinct),
    ("sort", MEMBER, "list(int)", "list(int)", sort),
    ("sort", MEMBER, "list(uint)", "list(uint)", sort),
    ("sort", MEMBER, "list(double)", "list(double)", sort),
    ("sort", MEMBER, "list(bool)", "list(bool)", sort),
    ("sort", MEMBER, "list(duration)", "list(duration)", sort),
    ("sort", MEMBER, "list(timestamp)", "list(timestamp)", sort),
    ("sort", MEMBER, "list(string)", "list(string)", sort),
    ("sort", MEMBER, "list(bytes)", "list(bytes)", sort),
    // What the macro sortBy() makes: the keys of the items beside them. Nobody can write it.
    (SORT_BY, MEMBER, "list(A) list(int)", "list(A)", by_keys),
    (SORT_BY, MEMBER, "list(A) list(uint)", "list(A)", by_keys),
    (SORT_BY, MEMBER, "list(A) list(double)", "list(A)", by_keys),
    (SORT_BY, MEMBER, "list(A) list(bool)", "list(A)", by_keys),
    (SORT_BY, MEMBER, "list(A) list(duration)", "list(A)", by_keys),
    (SORT_BY, MEMBER, "list(A) list(timestamp)", "list(A)", by_keys),
    (SORT_BY, MEMBER, "list(A) list(string)", "list(A)", by_keys),
    (SORT_BY, MEMBER, "list(A) list(bytes)", "list(A)", by_keys),
];

fn slice<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else { return mismatch() };
    let length = list.len() as i64;
    let why = match (*start, *end) {
        (start, end) if start < 0 || end < 0 => "negative indexes not supported".to_owned(),
        (start, end) if start > end => "start index must be less than or equal to end index".to_owned(),
        (_, end) if end > length => format!("list is length {length}"),
        (start, end) => {
            meter.charge((end - start) as u64 + MAKE_COST)?;
            return Ok(Value::list(list.iter().skip(start as usize).take((end - start) as usize).collect()));
        }
    };
    Err(Error::other(format!("cannot slice({start}, {end}), {why}")))
}

fn flatten<'a>(args: &[Value<'a>], depth: i64, meter: &mut Meter) -> Result<'a> {
    let [Value::List(list), ..] = args else { return mismatch() };
    meter.charge((list.len() as u64).saturating_mul(depth as u64).saturating_add(MAKE_COST))?;
    let mut items = Vec::new();
    flatten_into(list, depth, &mut items, meter)?;
    Ok(Value::list(items))
}

fn flatten_into<'a>(
    list: &List<'a>,
    depth: i64,
    items: &mut Vec<Value<'a>>,
    meter: &mut Meter,
) -> std::result::Result<(), Error> {
    for item in list.iter() {
        meter.charge(1)?;
        match item {
            Value::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, items, meter)?,
            item => items.push(item),
        }
    }
    Ok(())
}

fn range<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::Int(length)] = args else { return mismatch() };
    meter.charge((*length).max(0) as u64 + MAKE_COST)?;
    Ok(Value::list((0..*length).map(Value::Int).collect()))
}

fn distinct<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::List(list)] = args else { return mismatch() };
    charge_pairs(list, meter)?;
    let mut once: Vec<Value<'a>> = Vec::new();
    'items: for item in list.iter() {
        for known in &once {
            if item.equals(known, meter)? {
                continue 'items;
            }
        }
        once.push(item);
    }
    Ok(Value::list(once))
}

fn sort<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [list] = args else { return mismatch() };
    by_keys(&[list.clone(), list.clone()], meter)
}

fn by_keys<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::List(list), Value::List(keys)] = args else { return mismatch() };
    charge_pairs(keys, meter)?;
    let Some(first) = keys.first() else { return Ok(args[0].clone()) };
    if first.order(&first).is_none() && !matches!(first, Value::Double(_)) {
        return Err(Error::other("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(Error::other("list elements must have the same type"));
    }
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.iter().zip(list.iter()).collect();
    pairs.sort_by(|(a, _), (b, _)| a.order(b).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

/// For comparing each with each, at worst.
fn charge_pairs(list: &List<'_>, meter: &mut Meter) -> std::result::Result<(), Error> {
    let pairs = (list.len() as u64).saturating_mul(list.len() as u64);
    let texts = matches!(list.first(), Some(Value::String(_) | Value::Bytes(_)));
    let extra = if texts { pairs / 10 } else { 0 };
    meter.charge(pairs.saturating_mul(2).saturating_add(extra + MAKE_COST))
}
