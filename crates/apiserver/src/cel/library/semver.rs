//! Versions in the form of semver.org.

use std::{cmp::Ordering, sync::Arc};

use super::{GLOBAL, MEMBER, Row, mismatch};
use crate::cel::{Error, Meter, value::Value};

type Result<'a> = std::result::Result<Value<'a>, Error>;

#[derive(Debug)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    pre: Vec<String>,
}

pub(super) const ROWS: &[Row] = &[
    ("semver", GLOBAL, "string", "kubernetes.Semver", of_text),
    ("semver", GLOBAL, "string bool", "kubernetes.Semver", of_text),
    ("isSemver", GLOBAL, "string", "bool", |args, meter| Ok(Value::Bool(of_text(args, meter).is_ok()))),
    ("isSemver", GLOBAL, "string bool", "bool", |args, meter| Ok(Value::Bool(of_text(args, meter).is_ok()))),
    ("isGreaterThan", MEMBER, "kubernetes.Semver kubernetes.Semver", "bool", |args, _| order(args, Ordering::is_gt)),
    ("isLessThan", MEMBER, "kubernetes.Semver kubernetes.Semver", "bool", |args, _| order(args, Ordering::is_lt)),
    ("compareTo", MEMBER, "kubernetes.Semver kubernetes.Semver", "int", |args, _| match args {
        [Value::Semver(a), Value::Semver(b)] => Ok(Value::Int(a.order(b) as i64)),
        _ => mismatch(),
    }),
    ("major", MEMBER, "kubernetes.Semver", "int", |args, _| number(args, 0)),
    ("minor", MEMBER, "kubernetes.Semver", "int", |args, _| number(args, 1)),
    ("patch", MEMBER, "kubernetes.Semver", "int", |args, _| number(args, 2)),
];

fn of_text<'a>(args: &[Value<'a>], meter: &mut Meter) -> Result<'a> {
    let (text, loose) = match args {
        [Value::String(text)] => (text, false),
        [Value::String(text), Value::Bool(loose)] => (text, *loose),
        _ => return mismatch(),
    };
    meter.charge_text(text.len())?;
    let plain = if loose { normalized(text) } else { text.to_string() };
    let parsed =
        Semver::parse(&plain).ok_or_else(|| Error::other(format!("invalid semantic version {:?}", &**text)))?;
    Ok(Value::Semver(Arc::new(parsed)))
}

/// `v1.02` as `1.2.0`.
fn normalized(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (core, rest) = text.split_at(end);
    let mut parts: Vec<&str> = core.split('.').collect();
    parts.resize(parts.len().max(3), "0");
    let plain = parts.iter().map(|part| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0",
        trimmed => trimmed,
    });
    plain.collect::<Vec<_>>().join(".") + rest
}

impl Semver {
    fn parse(text: &str) -> Option<Semver> {
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if build.is_some_and(|build| !build.split('.').all(word)) {
            return None;
        }
        let pre: Vec<String> = pre.map(|pre| pre.split('.').map(str::to_owned).collect()).unwrap_or_default();
        let padded = |part: &String| is_number(part) && part.len() > 1 && part.starts_with('0');
        if pre.iter().any(|part| !word(part) || padded(part)) {
            return None;
        }
        let numbers = core.split('.').map(whole).collect::<Option<Vec<u64>>>()?;
        Some(Semver { numbers: numbers.try_into().ok()?, pre })
    }

    /// What comes before a release is less than it.
    pub(crate) fn order(&self, other: &Semver) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        let released = self.pre.is_empty().cmp(&other.pre.is_empty());
        numbers.then(released).then_with(|| {
            let parts = self.pre.iter().zip(&other.pre).map(|(a, b)| match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            });
            parts.into_iter().find(|order| order.is_ne()).unwrap_or(self.pre.len().cmp(&other.pre.len()))
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn whole(text: &str) -> Option<u64> {
    if !is_number(text) || (text.len() > 1 && text.starts_with('0')) { None } else { text.parse().ok() }
}

fn order<'a>(args: &[Value<'a>], fits: fn(Ordering) -> bool) -> Result<'a> {
    match args {
        [Value::Semver(a), Value::Semver(b)] => Ok(Value::Bool(fits(a.order(b)))),
        _ => mismatch(),
    }
}

fn number<'a>(args: &[Value<'a>], index: usize) -> Result<'a> {
    match args {
        [Value::Semver(version)] => Ok(Value::Int(i64::try_from(version.numbers[index]).unwrap_or(i64::MAX))),
        _ => mismatch(),
    }
}
