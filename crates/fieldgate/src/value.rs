//! Equality of JSON values by what they mean.

use serde_json::{Map, Number, Value};

/// Whether both mean the same: `1` and `1.0` do.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => same_object(a, b),
        (a, b) => a == b,
    }
}

fn same_object(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
}

fn same_number(a: &Number, b: &Number) -> bool {
    // Integers first: above 2^53 two of them can share one float.
    let floats = a.is_f64() || b.is_f64();
    a == b || (floats && a.as_f64() == b.as_f64())
}

/// The text of a scalar, equal for values that mean the same; what tells list items apart is made of it.
pub(crate) fn key_text(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            // In this range every integer has a float of its own.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => format!("{}", float as i64),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!(1), json!(1.0) => true)]
    #[test_case(json!(1), json!(1.5) => false)]
    #[test_case(json!(9007199254740993i64), json!(9007199254740992i64) => false; "beyond floats")]
    #[test_case(json!({"a": [1, null]}), json!({"a": [1.0, null]}) => true; "deep")]
    #[test_case(json!({"a": null}), json!({}) => false; "null is there")]
    #[test_case(json!("1"), json!(1) => false; "text is no number")]
    fn sameness(a: Value, b: Value) -> bool {
        assert_eq!(same(&a, &b), same(&b, &a));
        same(&a, &b)
    }
}
