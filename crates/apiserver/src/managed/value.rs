//! JSON values as Go prints, orders and compares them, since names of list items are made of them.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// As Go's encoder prints it: whole numbers without a fraction, and signs of HTML escaped.
pub(super) fn print(value: &Value) -> String {
    escape(&plain(value).to_string())
}

fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(number)),
        Value::Array(list) => list.iter().map(plain).collect(),
        Value::Object(map) => Value::Object(map.iter().map(|(key, value)| (key.clone(), plain(value))).collect()),
        other => other.clone(),
    }
}

/// Beyond this not every whole number is one of its own.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

fn whole(number: &Number) -> Number {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < WHOLE_MAX =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out
}

/// Equal but for the form of numbers: 1 is 1.0.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Numbers before strings before truth values; what cannot name an item comes last, by its text.
pub(super) fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (a, b) => rank(a).cmp(&rank(b)).then_with(|| print(a).cmp(&print(b))),
    }
}

fn numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default()),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
