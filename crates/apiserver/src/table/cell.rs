//! What stands in a cell: values by the type of their column, and ages.

use serde_json::Value;

use crate::{gotext, jsonpath::JsonPath};

/// The first value at a path, as far as it is of the column's type.
pub(super) fn at(path: &JsonPath, kind: &str, object: &Value, now: jiff::Timestamp) -> Value {
    let found = path.find(object).unwrap_or_default();
    let Some(first) = found.first() else { return Value::Null };
    match kind {
        "string" => text(first).into(),
        "integer" => first.as_i64().or(first.as_f64().map(|number| number as i64)).map_or(Value::Null, Value::from),
        "number" => first.as_f64().map_or(Value::Null, number),
        "boolean" => first.as_bool().map_or(Value::Null, Value::from),
        "date" => first.as_str().map_or(Value::Null, |text| age_of(text, now).into()),
        _ => Value::Null,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        other => gotext::shown(other),
    }
}

/// A number without a fraction is printed without one.
fn number(number: f64) -> Value {
    let whole = number as i64;
    if whole as f64 == number { whole.into() } else { number.into() }
}

/// The time since then, of a time as text.
pub(super) fn age_of(text: &str, now: jiff::Timestamp) -> String {
    match text {
        "" | "null" => "<unknown>".to_owned(),
        _ => text.parse().map_or_else(|_| "<invalid>".to_owned(), |then| age(then, now)),
    }
}

/// The time since then as people read it: two units at most, coarser the longer ago.
fn age(then: jiff::Timestamp, now: jiff::Timestamp) -> String {
    let seconds = now.as_second() - then.as_second();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |a: i64, x: &str, b: i64, y: &str| if b == 0 { format!("{a}{x}") } else { format!("{a}{x}{b}{y}") };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..=0 => "0s".to_owned(),
        1..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(0 => "0s")]
    #[test_case(119 => "119s")]
    #[test_case(130 => "2m10s")]
    #[test_case(660 => "11m")]
    #[test_case(10_860 => "3h1m")]
    #[test_case(36_000 => "10h")]
    #[test_case(180_000 => "2d2h")]
    #[test_case(864_000 => "10d")]
    #[test_case(-100 => "<invalid>")]
    fn ages(seconds: i64) -> String {
        let now = jiff::Timestamp::from_second(1_700_000_000).unwrap();
        let then = jiff::Timestamp::from_second(1_700_000_000 - seconds).unwrap();
        age(then, now)
    }

    #[test_case("string", json!("x") => json!("x"))]
    #[test_case("string", json!(5) => json!("5"))]
    #[test_case("string", json!(1.5) => json!("1.5"))]
    #[test_case("string", json!(true) => json!("true"))]
    #[test_case("string", json!(null) => json!("<no value>"))]
    #[test_case("string", json!({"b": "<", "a": [1]}) => json!(r#"{"a":[1],"b":"\u003c"}"#); "an object as text")]
    #[test_case("integer", json!(5) => json!(5))]
    #[test_case("integer", json!(2.7) => json!(2))]
    #[test_case("integer", json!("5") => json!(null); "text is no integer")]
    #[test_case("number", json!(3) => json!(3))]
    #[test_case("number", json!(2.5) => json!(2.5))]
    #[test_case("boolean", json!(false) => json!(false))]
    #[test_case("boolean", json!("x") => json!(null); "text is no boolean")]
    #[test_case("date", json!("2023-11-14T22:13:10Z") => json!("10s"))]
    #[test_case("date", json!("yesterday") => json!("<invalid>"))]
    #[test_case("date", json!("") => json!("<unknown>"); "no date")]
    #[test_case("date", json!(5) => json!(null); "a number is no date")]
    fn cells(kind: &str, value: Value) -> Value {
        let path = JsonPath::parse(".a").unwrap();
        at(&path, kind, &json!({"a": value}), jiff::Timestamp::from_second(1_700_000_000).unwrap())
    }
}
