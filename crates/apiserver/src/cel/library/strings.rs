//! Text: positions count characters, and what is made is paid for before it is made.

use super::{GLOBAL, MEMBER, Row, mismatch, printf};
use crate::cel::{Error, Meter, value::Value};

type Result<'a> = std::result::Result<Value<'a>, Error>;

pub(super) const ROWS: &[Row] = &[
    ("charAt", MEMBER, "string int", "string", char_at),
    ("indexOf", MEMBER, "string string", "int", index_of),
    ("indexOf", MEMBER, "string string int", "int", index_of),
    ("lastIndexOf", MEMBER, "string string", "int", last_index_of),
    ("lastIndexOf", MEMBER, "string string int", "int", last_index_of),
    ("lowerAscii", MEMBER, "string", "string", |args, meter| map(args, meter, |text| text.to_ascii_lowercase())),
    ("upperAscii", MEMBER, "string", "string", |args, meter| map(args, meter, |text| text.to_ascii_uppercase())),
    ("trim", MEMBER, "string", "string", |args, meter| map(args, meter, |text| text.trim().to_owned())),
    ("strings.quote", GLOBAL, "string", "string", |args, meter| map(args, meter, quote)),
    ("replace", MEMBER, "string string string", "string", replace),
    ("replace", MEMBER, "string string string int", "string", replace),
    ("split", MEMBER, "string string", "list(string)", split),
    ("split", MEMBER, "string string int", "list(string)", split),
    ("substring", MEMBER, "string int", "string", substring),
    ("substring", MEMBER, "string int int", "string", substring),
    ("join", MEMBER, "list(string)", "string", join),
    ("join", MEMBER, "list(string) string", "string", join),
    ("format", MEMBER, "string list(dyn)", "string", printf::format),
    ("matches", MEMBER, "string string", "bool", matches),
    ("matches", GLOBAL, "string string", "bool", matches),
    ("find", MEMBER, "string string", "string", find),
    ("findAll", MEMBER, "string string", "list(string)", find_all),
    ("findAll", MEMBER, "string string int", "list(string)", find_all),
];

fn out_of_range(at: i64) -> Error {
    Error::other(format!("index out of range: {at}"))
}

fn map<'a>(args: &[Value<'a>], meter: &mut Meter, of: fn(&str) -> String) -> Result<'a> {
    let [Value::String(text)] = args else { return mismatch() };
    meter.charge_text(text.len())?;
    Ok(Value::text(of(text)))
}

fn char_at<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::String(text), Value::Int(at)] = args else { return mismatch() };
    meter.charge_text(text.len())?;
    let index = usize::try_from(*at).map_err(|_| out_of_range(*at))?;
    match text.chars().nth(index) {
        Some(c) => Ok(Value::text(c.to_string())),
        None if text.chars().count() == index => Ok(Value::text("")),
        None => Err(out_of_range(*at)),
    }
}

/// Where `part` begins at or after `from`, counted in characters.
fn index_of<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text, part, 0),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, *from),
        _ => return mismatch(),
    };
    meter.charge_text(text.len())?;
    meter.charge_text(part.len())?;
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    let start = usize::try_from(from).map_err(|_| out_of_range(from))?;
    let Some((offset, _)) = text.char_indices().nth(start) else { return Ok(Value::Int(-1)) };
    let found = text[offset..].find(&**part).map(|index| text[..offset + index].chars().count());
    Ok(Value::Int(found.map_or(-1, |index| index as i64)))
}

/// Where `part` begins last, at or before `from`.
fn last_index_of<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text, part, None),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, Some(*from)),
        _ => return mismatch(),
    };
    meter.charge_text(text.len())?;
    meter.charge_text(part.len())?;
    let count = text.chars().count();
    if part.is_empty() {
        return Ok(Value::Int(from.unwrap_or(count as i64)));
    }
    let from = from.unwrap_or(count as i64 - 1);
    if from < 0 {
        return Err(out_of_range(from));
    }
    if from >= count as i64 {
        return Ok(Value::Int(-1));
    }
    let end = text.char_indices().nth(from as usize).map_or(0, |(offset, _)| offset);
    let end = (end + part.len()).min(text.len());
    let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    let found = text[..end].rfind(&**part).map(|index| text[..index].chars().count());
    Ok(Value::Int(found.map_or(-1, |index| index as i64)))
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out + "\""
}

fn replace<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let (text, old, new, count) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(count)] => (text, old, new, *count),
        _ => return mismatch(),
    };
    meter.charge_text(text.len())?;
    let times = usize::try_from(count).unwrap_or(usize::MAX);
    // An empty `old` stands before every character and at the end.
    let found = text.matches(&**old).count().min(times);
    meter.charge_text(found.saturating_mul(new.len()))?;
    Ok(Value::text(text.replacen(&**old, new, times)))
}

fn split<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let (text, by, count) = match args {
        [Value::String(text), Value::String(by)] => (text, by, -1),
        [Value::String(text), Value::String(by), Value::Int(count)] => (text, by, *count),
        _ => return mismatch(),
    };
    meter.charge_text(text.len())?;
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let parts: Vec<&str> = if !by.is_empty() { text.splitn(limit, &**by).collect() } else { characters(text, limit) };
    meter.charge(parts.len() as u64)?;
    Ok(Value::list(parts.into_iter().map(Value::text).collect()))
}

fn characters(text: &str, limit: usize) -> Vec<&str> {
    let mut rest = text;
    let mut parts = Vec::new();
    while let Some(c) = rest.chars().next() {
        if parts.len() + 1 == limit {
            break;
        }
        let (one, next) = rest.split_at(c.len_utf8());
        parts.push(one);
        rest = next;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

fn substring<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return mismatch(),
    };
    meter.charge_text(text.len())?;
    let count = text.chars().count() as i64;
    let end = end.unwrap_or(count.max(start));
    if start > end {
        return Err(Error::other(format!("invalid substring range. start: {start}, end: {end}")));
    }
    if let Some(bad) = [start, end].into_iter().find(|at| !(0..=count).contains(at)) {
        return Err(out_of_range(bad));
    }
    Ok(Value::text(text.chars().skip(start as usize).take((end - start) as usize).collect::<String>()))
}

fn join<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let (list, by) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(by)] => (list, &**by),
        _ => return mismatch(),
    };
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        let Value::String(text) = item else { return Err(Error::other("join: invalid input")) };
        meter.charge(1)?;
        meter.charge_text(text.len() + by.len())?;
        if index > 0 {
            out.push_str(by);
        }
        out.push_str(&text);
    }
    Ok(Value::text(out))
}

fn matches<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::String(text), Value::String(by)] = args else { return mismatch() };
    Ok(Value::Bool(meter.pattern(by, text.len())?.is_match(text)))
}

fn find<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let [Value::String(text), Value::String(by)] = args else { return mismatch() };
    Ok(Value::text(meter.pattern(by, text.len())?.find(text).map_or("", |found| found.as_str())))
}

fn find_all<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let (text, by, count) = match args {
        [Value::String(text), Value::String(by)] => (text, by, -1),
        [Value::String(text), Value::String(by), Value::Int(count)] => (text, by, *count),
        _ => return mismatch(),
    };
    let regex = meter.pattern(by, text.len())?;
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let found: Vec<Value<'a>> = regex.find_iter(text).take(limit).map(|found| Value::text(found.as_str())).collect();
    meter.charge(found.len() as u64)?;
    Ok(Value::list(found))
}
