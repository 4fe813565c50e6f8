//! From a tree to its value. Every step is paid for, so every evaluation ends.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use super::{
    Error, Lazy, Meter,
    ast::{Expr, Literal, Node},
    library::{self, TYPE_NAMES},
    types::ListKind,
    value::{Key, List, Map, Text, Value},
};

/// What making a list or a map costs, as in cel-go.
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;

/// Steps that are free in cel-go, such as literals, are paid for by the dozen, as there may be very many.
const FREE_STEPS: u64 = 8;

pub(super) struct Scope<'a, 'm> {
    pub variables: Vec<(&'a str, Value<'a>)>,
    pub meter: &'m mut Meter,
    steps: u64,
    lazy: Option<Rc<Lazy<'a>>>,
}

pub(super) type Evaluated<'a> = Result<Value<'a>, Error>;

impl<'a, 'm> Scope<'a, 'm> {
    pub(super) fn new(variables: Vec<(&'a str, Value<'a>)>, meter: &'m mut Meter) -> Scope<'a, 'm> {
        Scope { variables, meter, steps: 0, lazy: None }
    }

    pub(super) fn with_lazy(mut self, lazy: Rc<Lazy<'a>>) -> Scope<'a, 'm> {
        self.lazy = Some(lazy);
        self
    }

    pub(super) fn eval(&mut self, expr: &'a Expr) -> Evaluated<'a> {
        self.steps += 1;
        self.meter.charge(u64::from(self.steps.is_multiple_of(FREE_STEPS)))?;
        match &expr.node {
            Node::Literal(literal) => Ok(of_literal(literal)),
            Node::Ident(name) => self.ident(name),
            Node::Select(operand, field, optional) => {
                if let Some(lazy) = self.lazy_of(operand) {
                    self.meter.charge(2)?;
                    let found = lazy.get(field)?;
                    return Ok(if *optional { Value::some(found) } else { found });
                }
                let operand = self.eval(operand)?;
                self.meter.charge(1)?;
                self.meter.charge_copy(field.len())?;
                let key = Key::String(field.clone());
                self.pick(operand, &key, *optional)
            }
            Node::Has(operand, field) => {
                if let Some(lazy) = self.lazy_of(operand) {
                    return Ok(Value::Bool(lazy.has(field)));
                }
                let operand = self.eval(operand)?;
                self.meter.charge_copy(field.len())?;
                let found = self.pick(operand, &Key::String(field.clone()), true)?;
                Ok(Value::Bool(matches!(found, Value::Optional(Some(_)))))
            }
            Node::Index(operand, index, optional) => {
                let (operand, index) = (self.eval(operand)?, self.eval(index)?);
                self.meter.charge(1)?;
                self.index(operand, &index, *optional)
            }
            Node::Call(name, member, args) => {
                let args = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
                self.meter.charge(1)?;
                library::call(name, *member, &args, self.meter)
            }
            Node::And(list) => self.logic(list, false),
            Node::Or(list) => self.logic(list, true),
            Node::Condition(three) => match self.eval(&three[0])? {
                Value::Bool(true) => self.eval(&three[1]),
                Value::Bool(false) => self.eval(&three[2]),
                _ => Err(Error::NoOverload),
            },
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
            Node::OptionalMap(parts, flat) => self.optional_map(parts, *flat),
        }
    }

    /// The lazy variables, if this is their name and no variable of a comprehension hides it.
    fn lazy_of(&self, operand: &Expr) -> Option<Rc<Lazy<'a>>> {
        let Node::Ident(name) = &operand.node else { return None };
        let lazy = self.lazy.as_ref().filter(|lazy| lazy.name == name)?;
        let hidden = self.variables.iter().any(|(known, _)| known == name);
        (!hidden).then(|| lazy.clone())
    }

    fn ident(&mut self, name: &'a str) -> Evaluated<'a> {
        self.meter.charge(1)?;
        if let Some((_, value)) = self.variables.iter().rev().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        let known = TYPE_NAMES.iter().find(|known| **known == name);
        known
            .map(|known| Value::Type(library::type_value(known)))
            .ok_or_else(|| Error::other(format!("no such attribute(s): {name}")))
    }

    /// A field or a key; of an optional it is an optional.
    fn pick(&mut self, operand: Value<'a>, key: &Key, optional: bool) -> Evaluated<'a> {
        match operand {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => self.pick(*inner, key, true),
            Value::Map(map) => match (map.get(key), optional) {
                (Some(value), false) => Ok(value),
                (None, false) => Err(Error::NoKey(key.to_string())),
                (found, true) => Ok(Value::Optional(found.map(Box::new))),
            },
            _ => Err(Error::NoOverload),
        }
    }

    fn index(&mut self, operand: Value<'a>, index: &Value<'a>, optional: bool) -> Evaluated<'a> {
        match operand {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => self.index(*inner, index, true),
            Value::List(list) => {
                let at = match index {
                    Value::Int(at) => Some(i128::from(*at)),
                    Value::Uint(at) => Some(i128::from(*at)),
                    Value::Double(at) if at.fract() == 0.0 => Some(*at as i128),
                    _ => None,
                };
                let at =
                    at.ok_or_else(|| Error::other(format!("unsupported index type '{}' in list", index.type_name())))?;
                let found = usize::try_from(at).ok().and_then(|at| list.get(at));
                match (found, optional) {
                    (Some(value), false) => Ok(value),
                    (None, false) => Err(Error::other(format!("index out of bounds: {at}"))),
                    (found, true) => Ok(Value::Optional(found.map(Box::new))),
                }
            }
            map @ Value::Map(_) => {
                self.meter.charge_copy(index.size())?;
                self.pick(map, &Key::of(index)?, optional)
            }
            _ => Err(Error::NoOverload),
        }
    }

    /// `&&` stops at the first false and `||` at the first true; an error counts only if nothing stops it.
    fn logic(&mut self, list: &'a [Expr], stop: bool) -> Evaluated<'a> {
        let mut failed = None;
        for item in list {
            match self.eval(item) {
                Ok(Value::Bool(found)) if found == stop => return Ok(Value::Bool(stop)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => drop(failed.get_or_insert(Error::NoOverload)),
                Err(Error::Cost) => return Err(Error::Cost),
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!stop)), Err)
    }

    fn list(&mut self, items: &'a [(Expr, bool)]) -> Evaluated<'a> {
        self.meter.charge(LIST_COST)?;
        let mut list = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.eval(item)?, optional) {
                (Value::Optional(inner), true) => list.extend(inner.map(|inner| *inner)),
                (value, _) => list.push(value),
            }
        }
        Ok(Value::List(List::Made(Arc::new(list), ListKind::Atomic)))
    }

    fn map(&mut self, entries: &'a [(Expr, Expr, bool)]) -> Evaluated<'a> {
        self.meter.charge(MAP_COST)?;
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = Key::of(&self.eval(key)?)?;
            let value = match (self.eval(value)?, optional) {
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(inner)), true) => *inner,
                (value, _) => value,
            };
            map.insert(key, value);
        }
        Ok(Value::Map(Map::Made(Arc::new(map))))
    }

    fn optional_map(&mut self, parts: &'a (Expr, String, Expr), flat: bool) -> Evaluated<'a> {
        match self.eval(&parts.0)? {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => {
                self.variables.push((&parts.1, *inner));
                let body = self.eval(&parts.2);
                self.variables.pop();
                if flat { body } else { body.map(Value::some) }
            }
            _ => Err(Error::NoOverload),
        }
    }
}

fn of_literal(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Value::Bytes(bytes.clone()),
    }
}
