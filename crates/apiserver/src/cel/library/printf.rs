//! `format`: text with places for values.

use super::{mismatch, standard::double_text, time::duration_text};
use crate::cel::{
    Error, Meter,
    value::{Key, Value},
};

/// Decimals that may be asked for.
const PRECISION_MAX: usize = 1000;

pub(super) fn format<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<Value<'a>, Error> {
    let [Value::String(template), Value::List(list)] = args else { return mismatch() };
    meter.charge_text(template.len())?;
    let (mut out, mut next, mut used) = (String::new(), template.chars(), 0);
    while let Some(c) = next.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let (precision, verb) = clause(&mut next)?;
        if verb == '%' {
            out.push('%');
            continue;
        }
        let value = list.get(used).ok_or_else(|| Error::other(format!("index {used} out of range")))?;
        used += 1;
        let text = one(verb, precision, &value, meter)?;
        meter.charge_text(text.len())?;
        out.push_str(&text);
    }
    Ok(Value::text(out))
}

fn clause(next: &mut std::str::Chars<'_>) -> Result<(Option<usize>, char), Error> {
    let unfinished = || Error::other("could not parse formatting clause: unexpected end of string");
    let mut c = next.next().ok_or_else(unfinished)?;
    if c != '.' {
        return Ok((None, c));
    }
    let mut digits = String::new();
    loop {
        c = next.next().ok_or_else(unfinished)?;
        if !c.is_ascii_digit() {
            break;
        }
        digits.push(c);
    }
    let precision = digits.parse::<usize>().ok().filter(|precision| *precision <= PRECISION_MAX);
    let precision = precision.ok_or_else(|| Error::other(format!("invalid precision {digits:?}")))?;
    Ok((Some(precision), c))
}

fn one(verb: char, precision: Option<usize>, value: &Value<'_>, meter: &mut Meter) -> Result<String, Error> {
    let number = |value: &Value<'_>| match value {
        Value::Double(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        Value::Uint(value) => Some(*value as f64),
        _ => None,
    };
    let only = |kinds: &str, verb: &str| {
        let found = value.type_name();
        Error::other(format!("error during formatting: {verb} clause can only be used on {kinds}, was given {found}"))
    };
    let precision = precision.unwrap_or(6);
    match (verb, value) {
        ('s', value) => shown(value, false, meter),
        ('d', Value::Int(value)) => Ok(value.to_string()),
        ('d', Value::Uint(value)) => Ok(value.to_string()),
        ('d', Value::Double(value)) if !value.is_finite() => Ok(double_text(*value)),
        ('d', _) => Err(only("integers", "decimal")),
        ('f', value) => {
            number(value).map(|value| fixed(value, precision)).ok_or_else(|| only("doubles", "fixed-point"))
        }
        ('e', value) => {
            number(value).map(|value| scientific(value, precision)).ok_or_else(|| only("doubles", "scientific"))
        }
        ('b', Value::Int(value)) => Ok(signed(*value, |size| format!("{size:b}"))),
        ('b', Value::Uint(value)) => Ok(format!("{value:b}")),
        ('b', Value::Bool(value)) => Ok(if *value { "1" } else { "0" }.to_owned()),
        ('b', _) => Err(only("integers and bools", "binary")),
        ('o', Value::Int(value)) => Ok(signed(*value, |size| format!("{size:o}"))),
        ('o', Value::Uint(value)) => Ok(format!("{value:o}")),
        ('o', _) => Err(only("integers", "octal")),
        ('x' | 'X', value) => {
            let text = match value {
                Value::Int(value) => signed(*value, |size| format!("{size:x}")),
                Value::Uint(value) => format!("{value:x}"),
                Value::String(text) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
                Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                _ => return Err(only("integers, byte buffers, and strings", "hex")),
            };
            Ok(if verb == 'X' { text.to_uppercase() } else { text })
        }
        _ => Err(Error::other(format!("could not parse formatting clause: unrecognized formatting clause {verb:?}"))),
    }
}

/// With commas between thousands, as cel-go prints it for people.
fn fixed(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return double_text(value);
    }
    let plain = format!("{:.precision$}", value.abs());
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{grouped}{fraction}")
}

fn signed(value: i64, of: fn(u64) -> String) -> String {
    format!("{}{}", if value < 0 { "-" } else { "" }, of(value.unsigned_abs()))
}

fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // As cel-go prints it for people: a power of ten with raised digits.
    let raised = |c: char| c.to_digit(10).and_then(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit as usize)).unwrap_or(c);
    let power: String = format!("{:02}", exponent.abs()).chars().map(raised).collect();
    format!("{digits}×10{}{power}", if exponent < 0 { "⁻" } else { "" })
}

/// A value as `%s` shows it; text within lists and maps is quoted.
fn shown(value: &Value<'_>, quoted: bool, meter: &mut Meter) -> Result<String, Error> {
    meter.charge(1)?;
    meter.charge_text(value.size())?;
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) if quoted && value.is_finite() => format!("{value:.6}"),
        Value::Double(value) => double_text(*value),
        Value::String(text) if quoted => format!("{:?}", &**text),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Timestamp(at) => at.to_string(),
        Value::Duration(nanos) => duration_text(*nanos),
        Value::Type(name) => (*name).to_owned(),
        Value::List(list) => {
            let items = list.iter().map(|item| shown(&item, true, meter)).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for key in map.keys() {
                let found = map.get(&Key::of(&key)?).unwrap_or(Value::Null);
                entries.push(format!("{}:{}", shown(&key, true, meter)?, shown(&found, true, meter)?));
            }
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => {
            let kinds = "strings, bools, integers, doubles, maps, lists, types, durations, and timestamps";
            let text = format!(
                "error during formatting: string clause can only be used on {kinds}, was given {}",
                other.type_name()
            );
            return Err(Error::other(text));
        }
    })
}
