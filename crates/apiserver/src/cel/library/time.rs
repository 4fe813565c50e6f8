//! Moments and spans of time.

use jiff::{Timestamp, Zoned, tz::TimeZone};

use super::{GLOBAL, MEMBER, Row, mismatch};
use crate::cel::{Error, Meter, value::Value};

type Result<'a> = std::result::Result<Value<'a>, Error>;

const SECOND: i64 = 1_000_000_000;

/// A part of a moment in a zone.
type Part = fn(&Zoned) -> i64;

pub(super) const ROWS: &[Row] = &[
    ("timestamp", GLOBAL, "timestamp", "timestamp", |args, _| Ok(args[0].clone())),
    ("timestamp", GLOBAL, "string", "timestamp", to_timestamp),
    ("timestamp", GLOBAL, "int", "timestamp", to_timestamp),
    ("duration", GLOBAL, "duration", "duration", |args, _| Ok(args[0].clone())),
    ("duration", GLOBAL, "string", "duration", to_duration),
    ("duration", GLOBAL, "int", "duration", to_duration),
    ("getFullYear", MEMBER, "timestamp", "int", |args, _| part(args, |at| at.year().into())),
    ("getFullYear", MEMBER, "timestamp string", "int", |args, _| part(args, |at| at.year().into())),
    ("getMonth", MEMBER, "timestamp", "int", |args, _| part(args, |at| i64::from(at.month()) - 1)),
    ("getMonth", MEMBER, "timestamp string", "int", |args, _| part(args, |at| i64::from(at.month()) - 1)),
    ("getDayOfYear", MEMBER, "timestamp", "int", |args, _| part(args, |at| i64::from(at.day_of_year()) - 1)),
    ("getDayOfYear", MEMBER, "timestamp string", "int", |args, _| part(args, |at| i64::from(at.day_of_year()) - 1)),
    ("getDayOfMonth", MEMBER, "timestamp", "int", |args, _| part(args, |at| i64::from(at.day()) - 1)),
    ("getDayOfMonth", MEMBER, "timestamp string", "int", |args, _| part(args, |at| i64::from(at.day()) - 1)),
    ("getDate", MEMBER, "timestamp", "int", |args, _| part(args, |at| at.day().into())),
    ("getDate", MEMBER, "timestamp string", "int", |args, _| part(args, |at| at.day().into())),
    ("getDayOfWeek", MEMBER, "timestamp", "int", |args, _| part(args, weekday)),
    ("getDayOfWeek", MEMBER, "timestamp string", "int", |args, _| part(args, weekday)),
    ("getHours", MEMBER, "timestamp", "int", |args, _| part(args, |at| at.hour().into())),
    ("getHours", MEMBER, "timestamp string", "int", |args, _| part(args, |at| at.hour().into())),
    ("getHours", MEMBER, "duration", "int", |args, _| span(args, 3600 * SECOND)),
    ("getMinutes", MEMBER, "timestamp", "int", |args, _| part(args, |at| at.minute().into())),
    ("getMinutes", MEMBER, "timestamp string", "int", |args, _| part(args, |at| at.minute().into())),
    ("getMinutes", MEMBER, "duration", "int", |args, _| span(args, 60 * SECOND)),
    ("getSeconds", MEMBER, "timestamp", "int", |args, _| part(args, |at| at.second().into())),
    ("getSeconds", MEMBER, "timestamp string", "int", |args, _| part(args, |at| at.second().into())),
    ("getSeconds", MEMBER, "duration", "int", |args, _| span(args, SECOND)),
    ("getMilliseconds", MEMBER, "timestamp", "int", |args, _| part(args, |at| at.millisecond().into())),
    ("getMilliseconds", MEMBER, "timestamp string", "int", |args, _| part(args, |at| at.millisecond().into())),
    ("getMilliseconds", MEMBER, "duration", "int", |args, _| span(args, 1_000_000)),
];

fn weekday(at: &Zoned) -> i64 {
    at.weekday().to_sunday_zero_offset().into()
}

fn part<'a>(args: &[Value<'a>], of: Part) -> Result<'a> {
    let zone = match args {
        [Value::Timestamp(_)] => TimeZone::UTC,
        [Value::Timestamp(_), Value::String(name)] => zone(name)?,
        _ => return mismatch(),
    };
    let Value::Timestamp(at) = &args[0] else { return mismatch() };
    Ok(Value::Int(of(&at.to_zoned(zone))))
}

/// A zone by name, or by its distance from UTC: `-05:00`.
fn zone(name: &str) -> std::result::Result<TimeZone, Error> {
    let Some((hours, minutes)) = name.split_once(':') else {
        return TimeZone::get(name).map_err(|_| Error::other(format!("unknown time zone {name}")));
    };
    let offset = || {
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let minutes = if hours < 0 || name.starts_with('-') { -minutes } else { minutes };
        let seconds = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
        jiff::tz::Offset::from_seconds(seconds).ok()
    };
    offset().map(TimeZone::fixed).ok_or_else(|| Error::other(format!("unknown time zone {name}")))
}

fn span<'a>(args: &[Value<'a>], unit: i64) -> Result<'a> {
    match args {
        [Value::Duration(nanos)] => Ok(Value::Int(nanos / unit)),
        _ => mismatch(),
    }
}

fn to_timestamp<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    let at = match args {
        [Value::String(text)] => text.parse::<Timestamp>(),
        [Value::Int(seconds)] => Timestamp::from_second(*seconds),
        _ => return mismatch(),
    };
    at.map(Value::Timestamp).map_err(|_| Error::other("invalid timestamp"))
}

fn to_duration<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    match args {
        [Value::String(text)] => match parse_duration(text) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => Err(Error::other(format!("time: invalid duration {:?}", &**text))),
        },
        [Value::Int(nanos)] => Ok(Value::Duration(*nanos)),
        _ => mismatch(),
    }
}

/// Go's durations: numbers with units one after another, `1h30m` or `-1.5s`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        total += nanos(number, unit)?;
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = next;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

fn nanos(number: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND.into(),
        "m" => i128::from(60 * SECOND),
        "h" => i128::from(3600 * SECOND),
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i64>().ok().map(i128::from) };
    let fraction = &fraction[..fraction.len().min(12)];
    let scale = 10i128.pow(fraction.len() as u32);
    Some(digits(whole)? * unit + digits(fraction)? * unit / scale)
}

/// Seconds, with as many decimals as there are.
pub(super) fn duration_text(nanos: i64) -> String {
    let (sign, size) = if nanos < 0 { ("-", nanos.unsigned_abs()) } else { ("", nanos.unsigned_abs()) };
    let (whole, fraction) = (size / SECOND as u64, size % SECOND as u64);
    if fraction == 0 {
        return format!("{sign}{whole}s");
    }
    let fraction = format!("{fraction:09}");
    format!("{sign}{whole}.{}s", fraction.trim_end_matches('0'))
}
