//! What stands for something else in the path, the headers and the body of a step.
//!
//! - `${step:/metadata/uid}` is a value of the answer to an earlier step;
//! - `${x*1000}` is a thousand times `x`;
//! - a body `body(step) + {"/spec/names/kind": "Foo"}` is the body of an earlier step with values set, or taken out by the
//!   value `"<none>"`; `answer(step) + {…}` starts from the answer. A pointer to what is not there makes it, in a list at the end.

use std::{collections::BTreeMap, sync::LazyLock};

use anyhow::{Context, Result, bail};
use regex::{Captures, Regex};
use serde_json::{Map, Value};

const NONE: &str = "<none>";

/// What earlier steps sent and got, by name.
#[derive(Default)]
pub(crate) struct Seen {
    bodies: BTreeMap<String, String>,
    answers: BTreeMap<String, Value>,
}

impl Seen {
    pub(crate) fn note(&mut self, step: &str, body: String, answer: Value) {
        self.bodies.insert(step.to_owned(), body);
        self.answers.insert(step.to_owned(), answer);
    }

    /// The text with every `${…}` replaced.
    pub(crate) fn fill(&self, text: &str) -> Result<String> {
        static PLACES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$\{([^}]+)\}").expect("a pattern"));
        let mut failed = None;
        let filled = PLACES.replace_all(text, |found: &Captures<'_>| {
            self.value(&found[1]).unwrap_or_else(|error| {
                failed = Some(error);
                String::new()
            })
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(filled.into_owned()),
        }
    }

    pub(crate) fn body(&self, text: &str) -> Result<String> {
        static BASES: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"(?s)^(body|answer)\(([^)]*)\)(?:\s*\+\s*(.*))?$").expect("a pattern"));
        let Some(found) = BASES.captures(text) else { return self.fill(text) };
        let mut object = match &found[1] {
            "body" => serde_json::from_str(self.bodies.get(&found[2]).context("no such step before")?)?,
            _ => self.answers.get(&found[2]).context("no such step before")?.clone(),
        };
        if let Some(changes) = found.get(3) {
            let changes: Map<String, Value> = serde_json::from_str(&self.fill(changes.as_str())?)?;
            for (pointer, value) in changes {
                change(&mut object, &pointer, value)?;
            }
        }
        Ok(object.to_string())
    }

    fn value(&self, place: &str) -> Result<String> {
        if let Some((step, pointer)) = place.split_once(":/") {
            let answer = self.answers.get(step).with_context(|| format!("no step {step:?} before"))?;
            let found = answer.pointer(&format!("/{pointer}")).unwrap_or(&Value::Null);
            return Ok(found.as_str().map_or_else(|| found.to_string(), str::to_owned));
        }
        let (text, times) = place.rsplit_once('*').with_context(|| format!("what is ${{{place}}}?"))?;
        Ok(text.repeat(times.parse()?))
    }
}

fn change(object: &mut Value, pointer: &str, value: Value) -> Result<()> {
    let (parent, last) = pointer.rsplit_once('/').with_context(|| format!("{pointer:?} is no pointer"))?;
    let mut at = object;
    for key in parent.split('/').skip(1) {
        at = child(at, &unescape(key))?;
    }
    let last = unescape(last);
    if value != NONE {
        *child(at, &last)? = value;
        return Ok(());
    }
    match at {
        Value::Object(map) => drop(map.remove(&last)),
        Value::Array(items) => drop(items.remove(last.parse()?)),
        _ => bail!("{pointer:?} is in no object"),
    }
    Ok(())
}

fn unescape(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

fn child<'a>(value: &'a mut Value, key: &str) -> Result<&'a mut Value> {
    if let Value::Array(items) = value {
        let at: usize = key.parse().unwrap_or(items.len());
        if at >= items.len() {
            items.push(Value::Null);
        }
        let last = items.len() - 1;
        return Ok(&mut items[at.min(last)]);
    }
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    Ok(value.as_object_mut().context("an object")?.entry(key).or_insert(Value::Null))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_earlier_steps() {
        let mut seen = Seen::default();
        seen.note("a", r#"{"x":{"y":[1]}}"#.to_owned(), json!({"m": {"uid": "7", "n": 3}}));
        assert_eq!(seen.fill("/p/${a:/m/uid}?n=${a:/m/n}&${xy*3}").expect("filled"), "/p/7?n=3&xyxyxy");
        assert_eq!(
            seen.body(r#"body(a) + {"/x/y/0":2,"/x/y/-":"${a:/m/uid}","/z/q":{}}"#).expect("changed"),
            r#"{"x":{"y":[2,"7"]},"z":{"q":{}}}"#
        );
        assert_eq!(seen.body(r#"answer(a) + {"/m/uid":"<none>"}"#).expect("changed"), r#"{"m":{"n":3}}"#);
        assert!(seen.fill("${none:/x}").is_err());
    }
}
