//! Macros that visit every item of a list or every key of a map.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Error, Meter,
    ast::{Fold, FoldKind, Member},
    eval::{Evaluated, Scope},
    library,
    value::{Key, Map, Value},
};

/// What one round costs beside what its body costs.
const ROUND_COST: u64 = 3;

/// What a fold has found so far.
#[derive(Default)]
struct Found<'a> {
    failed: Option<Error>,
    count: usize,
    list: Vec<Value<'a>>,
    /// What a list is sorted by.
    keys: Vec<Value<'a>>,
    map: BTreeMap<Key, Value<'a>>,
}

impl<'a> Scope<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Evaluated<'a> {
        let range = self.eval(&fold.range)?;
        let depth = self.variables.len();
        let result = self.rounds(fold, &range);
        self.variables.truncate(depth);
        result
    }

    fn rounds(&mut self, fold: &'a Fold, range: &Value<'a>) -> Evaluated<'a> {
        let mut found = Found::default();
        let rounds: usize = match range {
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            _ => return Err(Error::NoOverload),
        };
        let keys = if let Value::Map(map) = range { map.paid_keys(self.meter)? } else { Vec::new() };
        let depth = self.variables.len();
        for round in 0..rounds {
            self.meter.charge(ROUND_COST)?;
            let (first, second) = match range {
                Value::List(list) => {
                    let Some(item) = list.get(round) else { break };
                    if fold.second.is_some() { (Value::Int(round as i64), item) } else { (item, Value::Null) }
                }
                Value::Map(map) => {
                    let Some(key) = keys.get(round) else { break };
                    (key.clone(), map.get(&Key::of(key)?).unwrap_or(Value::Null))
                }
                _ => break,
            };
            self.variables.truncate(depth);
            self.variables.push((&fold.first, first.clone()));
            self.variables.extend(fold.second.iter().map(|name| (name.as_str(), second.clone())));
            if let Some(verdict) = self.round(fold, first, &mut found)? {
                return Ok(verdict);
            }
        }
        finish(fold.kind, found, self.meter)
    }

    /// One round; a value if nothing that follows can change the result.
    fn round(&mut self, fold: &'a Fold, first: Value<'a>, found: &mut Found<'a>) -> Result<Option<Value<'a>>, Error> {
        if let Some(filter) = &fold.filter {
            match self.eval(filter)? {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(None),
                _ => return Err(Error::NoOverload),
            }
        }
        let body = self.eval(&fold.body);
        let stop = match fold.kind {
            FoldKind::All => false,
            FoldKind::Exists => true,
            _ => {
                self.meter.charge_copy(first.size())?;
                keep(fold.kind, first, body?, found)?;
                return Ok(None);
            }
        };
        match body {
            Ok(Value::Bool(verdict)) if verdict == stop => return Ok(Some(Value::Bool(stop))),
            Ok(Value::Bool(_)) => {}
            Ok(_) => drop(found.failed.get_or_insert(Error::NoOverload)),
            Err(Error::Cost) => return Err(Error::Cost),
            Err(error) => drop(found.failed.get_or_insert(error)),
        }
        Ok(None)
    }
}

fn keep<'a>(kind: FoldKind, first: Value<'a>, body: Value<'a>, found: &mut Found<'a>) -> Result<(), Error> {
    match (kind, body) {
        (FoldKind::ExistsOne, Value::Bool(yes)) => found.count += usize::from(yes),
        (FoldKind::Filter, Value::Bool(yes)) => found.list.extend(yes.then_some(first)),
        (FoldKind::Map, value) => found.list.push(value),
        (FoldKind::SortBy, value) => {
            found.list.push(first);
            found.keys.push(value);
        }
        (FoldKind::TransformMap, value) => drop(found.map.insert(Key::of(&first)?, value)),
        (FoldKind::TransformEntry, Value::Map(map)) => {
            for key in map.keys() {
                let key = Key::of(&key)?;
                if let Some(value) = map.get(&key)
                    && found.map.insert(key.clone(), value).is_some()
                {
                    return Err(Error::other(format!("insert failed: key {key} already exists")));
                }
            }
        }
        _ => return Err(Error::NoOverload),
    }
    Ok(())
}

fn finish<'a>(kind: FoldKind, found: Found<'a>, meter: &mut Meter) -> Evaluated<'a> {
    match (kind, found.failed) {
        (_, Some(error)) => Err(error),
        (FoldKind::All, None) => Ok(Value::Bool(true)),
        (FoldKind::Exists, None) => Ok(Value::Bool(false)),
        (FoldKind::ExistsOne, None) => Ok(Value::Bool(found.count == 1)),
        (FoldKind::SortBy, None) => {
            let lists = [Value::list(found.list), Value::list(found.keys)];
            library::call(library::SORT_BY, Member::Yes, &lists, meter)
        }
        (FoldKind::Map | FoldKind::Filter, None) => Ok(Value::list(found.list)),
        (FoldKind::TransformMap | FoldKind::TransformEntry, None) => Ok(Value::Map(Map::Made(Arc::new(found.map)))),
    }
}
