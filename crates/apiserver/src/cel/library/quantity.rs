//! Amounts with the suffixes of Kubernetes: `100m`, `1.5Gi`, `3e2`.

use std::cmp::Ordering;

use super::{GLOBAL, MEMBER, Row, mismatch};
use crate::cel::{Error, Meter, value::Value};

const NANO: i128 = 1_000_000_000;
/// What cannot be told from more than it.
const NANOS_MAX: i128 = i64::MAX as i128 * NANO;
/// Digits that are looked at, and digits that fit an integer for certain.
const DIGITS_MAX: usize = 36;
const SHORT_DIGITS_MAX: usize = 18;

/// An amount in billionths; smaller parts are rounded away from zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    nanos: i128,
    /// Written without decimals: `1` and `1.5k` are, `1000m` and `1.0` are not, whatever they amount to.
    whole: bool,
}

pub(super) const ROWS: &[Row] = &[
    ("quantity", GLOBAL, "string", "kubernetes.Quantity", |args, meter| match args {
        [Value::String(text)] => {
            meter.charge_text(text.len())?;
            Ok(Value::Quantity(Quantity::parse(text)?))
        }
        _ => mismatch(),
    }),
    ("isQuantity", GLOBAL, "string", "bool", |args, meter| match args {
        [Value::String(text)] => {
            meter.charge_text(text.len())?;
            Ok(Value::Bool(Quantity::parse(text).is_ok()))
        }
        _ => mismatch(),
    }),
    ("sign", GLOBAL, "kubernetes.Quantity", "int", sign),
    ("sign", MEMBER, "kubernetes.Quantity", "int", sign),
    ("isGreaterThan", MEMBER, "kubernetes.Quantity kubernetes.Quantity", "bool", |args, _| {
        order(args, Ordering::is_gt)
    }),
    ("isLessThan", MEMBER, "kubernetes.Quantity kubernetes.Quantity", "bool", |args, _| order(args, Ordering::is_lt)),
    ("compareTo", MEMBER, "kubernetes.Quantity kubernetes.Quantity", "int", |args, _| match args {
        [Value::Quantity(a), Value::Quantity(b)] => Ok(Value::Int(a.order(b) as i64)),
        _ => mismatch(),
    }),
    ("asApproximateFloat", MEMBER, "kubernetes.Quantity", "double", |args, _| match args {
        [Value::Quantity(quantity)] => Ok(Value::Double(quantity.nanos as f64 / NANO as f64)),
        _ => mismatch(),
    }),
    ("asInteger", MEMBER, "kubernetes.Quantity", "int", |args, _| match args {
        [Value::Quantity(quantity)] => {
            quantity.whole().map(Value::Int).ok_or_else(|| Error::other("cannot convert value to integer"))
        }
        _ => mismatch(),
    }),
    ("isInteger", MEMBER, "kubernetes.Quantity", "bool", |args, _| match args {
        [Value::Quantity(quantity)] => Ok(Value::Bool(quantity.whole().is_some())),
        _ => mismatch(),
    }),
    ("add", MEMBER, "kubernetes.Quantity kubernetes.Quantity", "kubernetes.Quantity", |args, meter| {
        sum(args, meter, 1)
    }),
    ("add", MEMBER, "kubernetes.Quantity int", "kubernetes.Quantity", |args, meter| sum(args, meter, 1)),
    ("sub", MEMBER, "kubernetes.Quantity kubernetes.Quantity", "kubernetes.Quantity", |args, meter| {
        sum(args, meter, -1)
    }),
    ("sub", MEMBER, "kubernetes.Quantity int", "kubernetes.Quantity", |args, meter| sum(args, meter, -1)),
];

impl Quantity {
    fn parse(text: &str) -> Result<Quantity, Error> {
        const FORM: &str =
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        Quantity::read(text).ok_or_else(|| Error::other(FORM))
    }

    fn read(text: &str) -> Option<Quantity> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // No digits at all are none of it, as in Kubernetes.
        if fraction.contains('.') {
            return None;
        }
        let (base, exponent) = scale(suffix)?;
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        // Digits as one number, and where its point is; what is beyond any amount stays so.
        let kept: String = digits.chars().take(DIGITS_MAX).collect();
        let mantissa: i128 = if kept.is_empty() { 0 } else { kept.parse().unwrap_or(i128::MAX) };
        let decimals = if base == 10 { exponent } else { 0 } - fraction.len() as i64;
        let mut nanos = shift(mantissa, 9 + decimals + (digits.len() - kept.len()) as i64);
        if base == 2 {
            nanos = nanos.saturating_mul(1i128 << exponent);
        }
        // Long numbers and binary ones end at the largest integer; others are kept in another way and do not.
        let long = base == 2 || digits.len() > SHORT_DIGITS_MAX;
        let capped = long && nanos > NANOS_MAX;
        let nanos = if capped { NANOS_MAX } else { nanos };
        Some(Quantity { nanos: if negative { -nanos } else { nanos }, whole: decimals >= 0 && !capped })
    }

    fn whole(&self) -> Option<i64> {
        if self.whole { i64::try_from(self.nanos / NANO).ok() } else { None }
    }

    pub(crate) fn order(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// The base and the exponent of a suffix.
fn scale(suffix: &str) -> Option<(u32, i64)> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(index) = BINARY.iter().position(|known| *known == suffix) {
        return Some((2, (index as i64 + 1) * 10));
    }
    let decimal = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?.into(),
    };
    Some((10, decimal))
}

/// Times ten to the power, rounded up.
fn shift(mantissa: i128, tens: i64) -> i128 {
    if tens >= 0 {
        let factor = u32::try_from(tens).ok().and_then(|tens| 10i128.checked_pow(tens));
        return if mantissa == 0 { 0 } else { factor.map_or(i128::MAX, |factor| mantissa.saturating_mul(factor)) };
    }
    match u32::try_from(-tens).ok().and_then(|tens| 10i128.checked_pow(tens)) {
        Some(factor) => mantissa / factor + i128::from(mantissa % factor != 0),
        None => i128::from(mantissa != 0),
    }
}

fn sign<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<Value<'a>, Error> {
    match args {
        [Value::Quantity(quantity)] => Ok(Value::Int(quantity.nanos.signum() as i64)),
        _ => mismatch(),
    }
}

fn order<'a>(args: &[Value<'a>], fits: fn(Ordering) -> bool) -> Result<Value<'a>, Error> {
    match args {
        [Value::Quantity(a), Value::Quantity(b)] => Ok(Value::Bool(fits(a.order(b)))),
        _ => mismatch(),
    }
}

fn sum<'a>(args: &[Value<'a>], _: &mut Meter, factor: i128) -> Result<Value<'a>, Error> {
    let (a, b) = match args {
        [Value::Quantity(a), Value::Quantity(b)] => (*a, *b),
        [Value::Quantity(a), Value::Int(b)] => (*a, Quantity { nanos: i128::from(*b) * NANO, whole: true }),
        _ => return mismatch(),
    };
    let nanos = a.nanos.saturating_add(b.nanos.saturating_mul(factor));
    Ok(Value::Quantity(Quantity { nanos, whole: a.whole && b.whole }))
}
