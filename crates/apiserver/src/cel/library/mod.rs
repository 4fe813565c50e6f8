//! Functions and operators, each a row of a table that both the type check and the evaluation read.
//!
//! They are those of Kubernetes 1.36 (`k8s.io/apiserver/pkg/cel/environment`) without the authorizer, with its error texts.

mod lists;
mod named;
mod net;
mod operators;
mod optional;
mod printf;
mod quantity;
mod semver;
mod sequences;
mod standard;
mod strings;
mod time;
mod url;

use std::{collections::HashMap, sync::LazyLock};

#[cfg(test)]
pub(crate) use self::standard::double_text;
pub(crate) use self::{named::Format, net::Cidr, quantity::Quantity, semver::Semver, time::parse_duration, url::Url};
use super::{Error, Meter, ast::Member, types::Type, value::Value};

pub(super) type Call = for<'a> fn(&[Value<'a>], &mut Meter) -> Result<Value<'a>, Error>;

/// Name, whether it is called on its first argument, types of arguments, type of the result, what it does.
type Row = (&'static str, Member, &'static str, &'static str, Call);

const MEMBER: Member = Member::Yes;
const GLOBAL: Member = Member::No;

pub(super) struct Overload {
    pub member: Member,
    pub params: Vec<Type>,
    pub result: Type,
    call: Call,
}

/// What sorts a list by keys, which no expression can name.
pub(super) const SORT_BY: &str = "@sortByAssociatedKeys";
/// Names that stand for types.
pub(super) const TYPE_NAMES: [&str; 11] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"];

/// What a type's name stands for as a value.
pub(super) fn type_value(name: &str) -> &'static str {
    TYPE_NAMES.iter().find(|known| **known == name).copied().unwrap_or("dyn")
}

static TABLE: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let rows = [
        operators::ROWS,
        standard::ROWS,
        time::ROWS,
        strings::ROWS,
        lists::ROWS,
        sequences::ROWS,
        optional::ROWS,
        net::ROWS,
        url::ROWS,
        quantity::ROWS,
        semver::ROWS,
        named::ROWS,
    ];
    let mut table: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    let comparisons = operators::comparisons();
    for (name, member, params, result, call) in rows.into_iter().flatten().chain(&comparisons) {
        let params = params.split_whitespace().map(Type::parse).collect();
        let overload = Overload { member: *member, params, result: Type::parse(result), call: *call };
        table.entry(name).or_default().push(overload);
    }
    table
});

pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    TABLE.get(name).map(Vec::as_slice)
}

pub(super) fn is_function(name: &str) -> bool {
    TABLE.contains_key(name)
}

/// Calls the first overload that takes these values.
pub(super) fn call<'a>(name: &str, member: Member, args: &[Value<'a>], meter: &mut Meter) -> Result<Value<'a>, Error> {
    let fits = |overload: &&Overload| {
        overload.member == member
            && overload.params.len() == args.len()
            && overload.params.iter().zip(args).all(|(param, arg)| arg.is(param))
    };
    match overloads(name).and_then(|list| list.iter().find(fits)) {
        Some(overload) => {
            // Whatever is done with long texts, even if it is only to say that they are not what is wanted.
            let texts = args.iter().filter(|arg| matches!(arg, Value::String(_) | Value::Bytes(_)));
            meter.charge_copy(texts.map(Value::size).sum())?;
            (overload.call)(args, meter)
        }
        None => Err(Error::NoOverload),
    }
}

/// For arguments that `call` has not let through.
fn mismatch<'a>() -> Result<Value<'a>, Error> {
    Err(Error::NoOverload)
}
