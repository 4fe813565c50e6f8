//! Kubernetes' JSONPath, as far as printer columns can use it: `.a.b`, `['x\.y']`, `[0]`, `[-2:]`, `[*]`, `[0,2]`, `..a`, and filters such as
//! `[?(@.k=="v")]`.

mod parse;

use std::cmp::Ordering;

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

/// A path that leads to something of another shape than it is made for: there is nothing to show, not even what was found before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    All,
    /// All that is within, and within that.
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Step>>),
    Filter(Filter),
    Literal(Value),
    /// A word that means nothing here; it shows when the path is used.
    Word,
}

/// Items of a list; a single one has no `to` of its own.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    from: Option<i64>,
    to: To,
    step: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
enum To {
    Next,
    End,
    Before(i64),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Step>,
    /// What it is compared with, and how; without it something must be there.
    right: Option<(String, Vec<Step>)>,
}

type Found<'a> = Result<Vec<&'a Value>, Unfit>;

impl JsonPath {
    /// Reads a path such as `.spec.replicas`; the error says what is not understood.
    pub(crate) fn parse(text: &str) -> Result<JsonPath, String> {
        parse::steps(text).map(|steps| JsonPath { steps })
    }

    /// All values at the path; a field that is not there leads to none.
    pub(crate) fn find<'a>(&'a self, value: &'a Value) -> Found<'a> {
        walk(&self.steps, vec![value])
    }
}

fn walk<'a>(steps: &'a [Step], start: Vec<&'a Value>) -> Found<'a> {
    steps.iter().try_fold(start, |values, step| step.follow(values))
}

impl Step {
    fn follow<'a>(&'a self, values: Vec<&'a Value>) -> Found<'a> {
        match self {
            Step::Field(name) => Ok(values.into_iter().filter_map(|value| value.as_object()?.get(name)).collect()),
            Step::All => Ok(values.into_iter().flat_map(within).collect()),
            Step::Recursive => Ok(values.into_iter().flat_map(descend).collect()),
            Step::Slice(slice) => collect(values, |value| slice.items(value)),
            Step::Union(paths) => collect(paths.iter(), |path| walk(path, values.clone())),
            Step::Filter(filter) => collect(values, |value| filter.items(value)),
            Step::Literal(literal) => Ok(values.iter().map(|_| literal).collect()),
            Step::Word => Err(Unfit),
        }
    }
}

fn collect<'a, T>(all: impl IntoIterator<Item = T>, mut of: impl FnMut(T) -> Found<'a>) -> Found<'a> {
    all.into_iter().try_fold(Vec::new(), |mut found, one| {
        found.extend(of(one)?);
        Ok(found)
    })
}

fn within(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

fn descend(value: &Value) -> Vec<&Value> {
    let inner = within(value);
    let own = (!inner.is_empty()).then_some(value);
    own.into_iter().chain(inner.into_iter().flat_map(descend)).collect()
}

impl Slice {
    fn items<'a>(&self, value: &'a Value) -> Found<'a> {
        let list = match value {
            Value::Null => return Ok(Vec::new()),
            other => other.as_array().ok_or(Unfit)?,
        };
        let (from, to) = self.range(list.len() as i64);
        if from == to {
            return Ok(Vec::new());
        }
        let (from, to) = (usize::try_from(from).map_err(|_| Unfit)?, usize::try_from(to).map_err(|_| Unfit)?);
        let step = usize::try_from(self.step.unwrap_or(1)).ok().filter(|step| *step > 0).ok_or(Unfit)?;
        Ok(list.get(from..to).ok_or(Unfit)?.iter().step_by(step).collect())
    }

    fn range(&self, length: i64) -> (i64, i64) {
        let from = self.from.unwrap_or(0);
        let to = match self.to {
            To::End => length,
            // The one after the last is the end.
            To::Next if from == -1 => length,
            To::Next => from + 1,
            To::Before(to) => to,
        };
        let counted = |at: i64| if at < 0 { at + length } else { at };
        (counted(from), counted(to))
    }
}

impl Filter {
    fn items<'a>(&'a self, value: &'a Value) -> Found<'a> {
        let list = value.as_array().ok_or(Unfit)?;
        collect(list, |item| Ok(if self.holds(item)? { vec![item] } else { Vec::new() }))
    }

    fn holds(&self, item: &Value) -> Result<bool, Unfit> {
        let left = walk(&self.left, vec![item]);
        let Some((operator, right)) = &self.right else { return Ok(left.is_ok_and(|found| !found.is_empty())) };
        let right = || walk(right, vec![item]);
        match single(left?)? {
            None => Ok(false),
            Some(left) => single(right()?)?.map_or(Ok(false), |right| compare(left, operator, right)),
        }
    }
}

fn single(found: Vec<&Value>) -> Result<Option<&Value>, Unfit> {
    if found.len() > 1 { Err(Unfit) } else { Ok(found.into_iter().next()) }
}

/// Only what is of one type can be compared.
fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, Unfit> {
    let order = match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => {
            return match operator {
                "==" => Ok(left == right),
                "!=" => Ok(left != right),
                _ => Err(Unfit),
            };
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            let exact = left.as_i64().zip(right.as_i64()).map(|(left, right)| left.cmp(&right));
            exact.or(left.as_f64().partial_cmp(&right.as_f64())).ok_or(Unfit)?
        }
        _ => return Err(Unfit),
    };
    match operator {
        "==" => Ok(order == Ordering::Equal),
        "!=" => Ok(order != Ordering::Equal),
        "<" => Ok(order == Ordering::Less),
        "<=" => Ok(order != Ordering::Greater),
        ">" => Ok(order == Ordering::Greater),
        ">=" => Ok(order != Ordering::Less),
        _ => Err(Unfit),
    }
}

#[cfg(test)]
mod tests;
