//! The standard functions: sizes, conversions, tests on text.

use std::sync::Arc;

use super::{GLOBAL, MEMBER, Row, mismatch, type_value};
use crate::cel::{Error, Meter, value::Value};

type Result<'a> = std::result::Result<Value<'a>, Error>;

pub(super) const ROWS: &[Row] = &[
    ("size", GLOBAL, "string", "int", size),
    ("size", GLOBAL, "bytes", "int", size),
    ("size", GLOBAL, "list(A)", "int", size),
    ("size", GLOBAL, "map(A,B)", "int", size),
    ("size", MEMBER, "string", "int", size),
    ("size", MEMBER, "bytes", "int", size),
    ("size", MEMBER, "list(A)", "int", size),
    ("size", MEMBER, "map(A,B)", "int", size),
    ("type", GLOBAL, "A", "type", |args, _| Ok(Value::Type(type_of(&args[0])))),
    ("dyn", GLOBAL, "A", "dyn", |args, _| Ok(args[0].clone())),
    ("bool", GLOBAL, "bool", "bool", to_bool),
    ("bool", GLOBAL, "string", "bool", to_bool),
    ("int", GLOBAL, "int", "int", to_int),
    ("int", GLOBAL, "uint", "int", to_int),
    ("int", GLOBAL, "double", "int", to_int),
    ("int", GLOBAL, "string", "int", to_int),
    ("int", GLOBAL, "timestamp", "int", to_int),
    ("int", GLOBAL, "duration", "int", to_int),
    ("uint", GLOBAL, "uint", "uint", to_uint),
    ("uint", GLOBAL, "int", "uint", to_uint),
    ("uint", GLOBAL, "double", "uint", to_uint),
    ("uint", GLOBAL, "string", "uint", to_uint),
    ("double", GLOBAL, "double", "double", to_double),
    ("double", GLOBAL, "int", "double", to_double),
    ("double", GLOBAL, "uint", "double", to_double),
    ("double", GLOBAL, "string", "double", to_double),
    ("string", GLOBAL, "string", "string", to_text),
    ("string", GLOBAL, "bool", "string", to_text),
    ("string", GLOBAL, "int", "string", to_text),
    ("string", GLOBAL, "uint", "string", to_text),
    ("string", GLOBAL, "double", "string", to_text),
    ("string", GLOBAL, "bytes", "string", to_text),
    ("string", GLOBAL, "timestamp", "string", to_text),
    ("string", GLOBAL, "duration", "string", to_text),
    ("string", GLOBAL, "net.IP", "string", to_text),
    ("string", GLOBAL, "net.CIDR", "string", to_text),
    ("bytes", GLOBAL, "bytes", "bytes", to_bytes),
    ("bytes", GLOBAL, "string", "bytes", to_bytes),
    ("contains", MEMBER, "string string", "bool", |args, meter| test(args, meter, |text, part| text.contains(part))),
    ("startsWith", MEMBER, "string string", "bool", |args, meter| {
        test(args, meter, |text, part| text.starts_with(part))
    }),
    ("endsWith", MEMBER, "string string", "bool", |args, meter| test(args, meter, |text, part| text.ends_with(part))),
];

fn type_of(value: &Value<'_>) -> &'static str {
    let name = value.type_name();
    if super::TYPE_NAMES.contains(&name) { type_value(name) } else { name }
}

fn size<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    match args {
        [Value::String(text)] => {
            meter.charge_text(text.len())?;
            Ok(Value::Int(text.chars().count() as i64))
        }
        [value] => Ok(Value::Int(value.size() as i64)),
        _ => mismatch(),
    }
}

fn test<'a>(args: &[Value<'a>], meter: &mut Meter, fits: fn(&str, &str) -> bool) -> Result<'a> {
    let [Value::String(text), Value::String(part)] = args else { return mismatch() };
    meter.charge_text(text.len())?;
    meter.charge_text(part.len())?;
    Ok(Value::Bool(fits(text, part)))
}

fn conversion<'a>(from: &str, to: &str) -> Result<'a> {
    Err(Error::other(format!("type conversion error from '{from}' to '{to}'")))
}

fn to_bool<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => conversion("string", "bool"),
        },
        _ => mismatch(),
    }
}

fn to_int<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    let overflow = || Error::other("integer overflow");
    match args {
        [Value::Int(value)] => Ok(Value::Int(*value)),
        [Value::Uint(value)] => Ok(Value::Int(i64::try_from(*value).map_err(|_| overflow())?)),
        // The bounds themselves are out: they cannot be told from values beyond them.
        [Value::Double(value)] if *value > i64::MIN as f64 && *value < i64::MAX as f64 => Ok(Value::Int(*value as i64)),
        [Value::Double(_)] => Err(overflow()),
        [Value::String(text)] => match text.parse() {
            Ok(value) => Ok(Value::Int(value)),
            Err(_) => conversion("string", "int"),
        },
        [Value::Timestamp(at)] => Ok(Value::Int(at.as_second())),
        [Value::Duration(nanos)] => Ok(Value::Int(*nanos)),
        _ => mismatch(),
    }
}

fn to_uint<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    let overflow = || Error::other("unsigned integer overflow");
    match args {
        [Value::Uint(value)] => Ok(Value::Uint(*value)),
        [Value::Int(value)] => Ok(Value::Uint(u64::try_from(*value).map_err(|_| overflow())?)),
        [Value::Double(value)] if *value >= 0.0 && *value < u64::MAX as f64 => Ok(Value::Uint(*value as u64)),
        [Value::Double(_)] => Err(overflow()),
        [Value::String(text)] => match text.parse() {
            Ok(value) => Ok(Value::Uint(value)),
            Err(_) => conversion("string", "uint"),
        },
        _ => mismatch(),
    }
}

fn to_double<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    match args {
        [Value::Double(value)] => Ok(Value::Double(*value)),
        [Value::Int(value)] => Ok(Value::Double(*value as f64)),
        [Value::Uint(value)] => Ok(Value::Double(*value as f64)),
        [Value::String(text)] => match text.parse() {
            Ok(value) => Ok(Value::Double(value)),
            Err(_) => conversion("string", "double"),
        },
        _ => mismatch(),
    }
}

fn to_text<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    meter.charge_text(args[0].size())?;
    Ok(Value::text(match args {
        [Value::String(text)] => return Ok(Value::String(text.clone())),
        [Value::Bool(value)] => value.to_string(),
        [Value::Int(value)] => value.to_string(),
        [Value::Uint(value)] => value.to_string(),
        [Value::Double(value)] => double_text(*value),
        [Value::Bytes(bytes)] => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(Error::other("invalid UTF-8 in bytes, cannot convert to string")),
        },
        [Value::Timestamp(at)] => at.to_string(),
        [Value::Duration(nanos)] => super::time::duration_text(*nanos),
        [Value::Ip(address)] => address.to_string(),
        [Value::Cidr(cidr)] => cidr.to_string(),
        _ => return mismatch(),
    }))
}

/// As Go's shortest form: plain up to a million, then with an exponent.
pub(crate) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let shortest = format!("{value:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn to_bytes<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    match args {
        [Value::Bytes(bytes)] => Ok(Value::Bytes(bytes.clone())),
        [Value::String(text)] => {
            meter.charge_text(text.len())?;
            Ok(Value::Bytes(Arc::new(text.as_bytes().to_vec())))
        }
        _ => mismatch(),
    }
}
