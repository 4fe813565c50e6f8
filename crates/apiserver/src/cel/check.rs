//! Types of an expression, so that what cannot work is told when it is written and not when it is used.

use super::{
    ast::{Expr, Fault, Fold, FoldKind, Literal, Member, Node},
    library::{self, TYPE_NAMES},
    meter::PATTERN_BYTES_MAX,
    types::{Bound, Type},
};
use crate::schema;

pub(super) struct Checker {
    scope: Vec<(String, Type)>,
    variables: usize,
    references: Vec<String>,
    /// Whether literals may have items of different types here.
    mixed: bool,
}

type Checked = Result<Type, Fault>;

impl Checker {
    pub(super) fn new(variables: &[(&str, Type)]) -> Checker {
        let scope: Vec<_> = variables.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
        Checker { variables: scope.len(), scope, references: Vec::new(), mixed: false }
    }

    /// Names of given variables that the expression uses.
    pub(super) fn references(self) -> Vec<String> {
        self.references
    }

    pub(super) fn check(&mut self, expr: &mut Expr) -> Checked {
        let at = expr.at;
        match &mut expr.node {
            Node::Literal(literal) => Ok(literal_type(literal)),
            Node::Ident(name) => self.ident(name).ok_or_else(|| undeclared(at, name)),
            Node::Select(operand, field, optional) => {
                let optional = *optional;
                let of = self.check(operand)?;
                select(at, &of, field, optional)
            }
            Node::Has(operand, field) => {
                let of = self.check(operand)?;
                select(at, &of, field, false).map(|_| Type::Bool)
            }
            Node::Index(operand, index, optional) => {
                let (of, by, optional) = (self.check(operand)?, self.check(index)?, *optional);
                self.index(at, &of, &by, optional)
            }
            Node::Call(name, member, args) => {
                self.qualify(name, member, args);
                let (name, member) = (name.clone(), *member);
                // What a text is made of may be of any types.
                let mixed = self.mixed;
                self.mixed |= name == "format";
                let types = self.arguments(at, &name, member, args);
                self.mixed = mixed;
                let result = call(at, &name, member, &types?)?;
                check_literals(&name, args)?;
                Ok(result)
            }
            Node::And(list) | Node::Or(list) => self.logic(list),
            Node::Condition(three) => self.condition(at, three),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(at, fold),
            Node::OptionalMap(parts, flat) => self.optional_map(at, parts, *flat),
        }
    }

    /// Types of arguments. What a function is called on is looked at first, then whether there is such a function.
    fn arguments(&mut self, at: usize, name: &str, member: Member, args: &mut [Expr]) -> Result<Vec<Type>, Fault> {
        let (target, args) = args.split_at_mut(usize::from(member == Member::Yes).min(args.len()));
        let mut types = target.iter_mut().map(|arg| self.check(arg)).collect::<Result<Vec<_>, _>>()?;
        if !library::is_function(name) {
            return Err(undeclared(at, name));
        }
        for arg in args {
            types.push(self.check(arg)?);
        }
        Ok(types)
    }

    fn ident(&mut self, name: &str) -> Option<Type> {
        let index = self.scope.iter().rposition(|(known, _)| known == name);
        match index {
            Some(index) => {
                if index < self.variables && !self.references.iter().any(|known| known == name) {
                    self.references.push(name.to_owned());
                }
                Some(self.scope[index].1.clone())
            }
            None => TYPE_NAMES.contains(&name).then_some(Type::Kind),
        }
    }

    /// `sets.contains(a, b)` reads as a member of `sets`; where there is no such variable it is a function with a dot in its name.
    fn qualify(&self, name: &mut String, member: &mut Member, args: &mut Vec<Expr>) {
        if *member == Member::No {
            return;
        }
        let Some(path) = args.first().and_then(Expr::path) else { return };
        let root = path.split('.').next().unwrap_or_default();
        let full = format!("{path}.{name}");
        if !self.scope.iter().any(|(known, _)| known == root) && library::is_function(&full) {
            *name = full;
            *member = Member::No;
            args.remove(0);
        }
    }

    fn index(&self, at: usize, of: &Type, by: &Type, optional: bool) -> Checked {
        let none = &mut Bound::default();
        let (inner, wrapped) = match of {
            Type::Optional(inner) => (inner.as_ref(), true),
            other => (other, optional),
        };
        let found = match inner {
            Type::Dyn => Some(Type::Dyn),
            Type::List(item, _) if Type::Int.takes(by, none) || matches!(by, Type::Uint | Type::Double) => {
                Some(item.as_ref().clone())
            }
            Type::Map(key, value) if key.takes(by, none) => Some(value.as_ref().clone()),
            _ => None,
        };
        let name = if optional { "_[?_]" } else { "_[_]" };
        let found = found.ok_or_else(|| no_overload(at, name, Member::No, &[of.clone(), by.clone()]))?;
        Ok(if wrapped { Type::optional(found) } else { found })
    }

    fn logic(&mut self, list: &mut [Expr]) -> Checked {
        for item in list {
            let found = self.check(item)?;
            expect(item.at, &Type::Bool, &found)?;
        }
        Ok(Type::Bool)
    }

    fn condition(&mut self, at: usize, three: &mut [Expr; 3]) -> Checked {
        let [test, yes, no] = three;
        let types = [self.check(test)?, self.check(yes)?, self.check(no)?];
        let joined = types[1].join(&types[2]).filter(|_| matches!(types[0], Type::Bool | Type::Dyn));
        joined.ok_or_else(|| no_overload(at, "_?_:_", Member::No, &types))
    }

    fn list(&mut self, items: &mut [(Expr, bool)]) -> Checked {
        let mut of: Option<Type> = None;
        for (item, optional) in items {
            let found = self.check(item)?;
            let found = if *optional { unwrapped(item.at, found)? } else { found };
            of = Some(self.same(item.at, of, found)?);
        }
        Ok(Type::list(of.unwrap_or(Type::Dyn)))
    }

    fn map(&mut self, entries: &mut [(Expr, Expr, bool)]) -> Checked {
        let (mut of_keys, mut of_values): (Option<Type>, Option<Type>) = (None, None);
        for (key, value, optional) in entries {
            let found = self.check(key)?;
            if !matches!(found, Type::String | Type::Int | Type::Uint | Type::Bool | Type::Dyn) {
                return Err(Fault::new(key.at, format!("unsupported map key type: {found}")));
            }
            of_keys = Some(self.same(key.at, of_keys, found)?);
            let found = self.check(value)?;
            let found = if *optional { unwrapped(value.at, found)? } else { found };
            of_values = Some(self.same(value.at, of_values, found)?);
        }
        Ok(Type::map(of_keys.unwrap_or(Type::Dyn), of_values.unwrap_or(Type::Dyn)))
    }

    /// The type of one more item of a literal, which must be that of those before it.
    fn same(&self, at: usize, before: Option<Type>, found: Type) -> Checked {
        match before {
            None => Ok(found),
            Some(before) if self.mixed => Ok(before.join(&found).unwrap_or(Type::Dyn)),
            Some(before) => before.join(&found).ok_or_else(|| mismatch(at, &before, &found)),
        }
    }

    fn fold(&mut self, at: usize, fold: &mut Fold) -> Checked {
        let range = self.check(&mut fold.range)?;
        let two = fold.second.is_some();
        let (first, second) = match &range {
            Type::List(item, _) if two => (Type::Int, item.as_ref().clone()),
            Type::List(item, _) => (item.as_ref().clone(), Type::Dyn),
            Type::Map(key, value) => (key.as_ref().clone(), value.as_ref().clone()),
            Type::Dyn => (Type::Dyn, Type::Dyn),
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                // A list that is sorted is first kept under a name, at the place of the macro.
                let at = if fold.kind == FoldKind::SortBy { at } else { fold.range.at };
                return Err(Fault::new(at, text));
            }
        };
        let depth = self.scope.len();
        self.scope.push((fold.first.clone(), first.clone()));
        self.scope.extend(fold.second.iter().map(|name| (name.clone(), second.clone())));
        let result = self.fold_body(at, fold, &first, &second, &range);
        self.scope.truncate(depth);
        result
    }

    fn fold_body(&mut self, at: usize, fold: &mut Fold, first: &Type, second: &Type, range: &Type) -> Checked {
        if let Some(filter) = &mut fold.filter {
            let found = self.check(filter)?;
            expect(filter.at, &Type::Bool, &found)?;
        }
        let (body_at, body) = (fold.body.at, self.check(&mut fold.body)?);
        match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => {
                expect(body_at, &Type::Bool, &body)?;
                Ok(Type::Bool)
            }
            FoldKind::Filter => {
                expect(body_at, &Type::Bool, &body)?;
                Ok(Type::list(first.clone()))
            }
            FoldKind::Map => Ok(Type::list(body)),
            FoldKind::SortBy => call(at, library::SORT_BY, Member::Yes, &[range.clone(), Type::list(body)]),
            FoldKind::TransformMap => {
                let _ = second;
                let key = if matches!(range, Type::Dyn) { Type::Dyn } else { first.clone() };
                Ok(Type::map(key, body))
            }
            FoldKind::TransformEntry => {
                expect(body_at, &Type::map(Type::Dyn, Type::Dyn), &body)?;
                Ok(body)
            }
        }
    }

    fn optional_map(&mut self, at: usize, parts: &mut (Expr, String, Expr), flat: bool) -> Checked {
        let name = if flat { "optFlatMap" } else { "optMap" };
        let target = self.check(&mut parts.0)?;
        let inner = match &target {
            Type::Optional(inner) => inner.as_ref().clone(),
            Type::Dyn => Type::Dyn,
            other => return Err(no_overload(at, name, Member::Yes, std::slice::from_ref(other))),
        };
        self.scope.push((parts.1.clone(), inner));
        let body = self.check(&mut parts.2);
        self.scope.pop();
        match (flat, body?) {
            (false, body) => Ok(Type::optional(body)),
            (true, body @ (Type::Optional(_) | Type::Dyn)) => Ok(body),
            (true, other) => Err(no_overload(at, name, Member::Yes, &[target, other])),
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

fn select(at: usize, of: &Type, field: &str, optional: bool) -> Checked {
    let found = match of {
        Type::Dyn => Type::Dyn,
        Type::Map(_, value) => value.as_ref().clone(),
        Type::Object(object) => match object.fields.get(field) {
            Some((_, kind)) => kind.clone(),
            None => return Err(Fault::new(at, format!("undefined field '{field}'"))),
        },
        Type::Optional(inner) => return Ok(Type::optional(select(at, inner, field, false)?)),
        other => return Err(Fault::new(at, format!("type '{other}' does not support field selection"))),
    };
    Ok(if optional { Type::optional(found) } else { found })
}

fn call(at: usize, name: &str, member: Member, types: &[Type]) -> Checked {
    let Some(overloads) = library::overloads(name) else { return Err(undeclared(at, name)) };
    let mut result: Option<Type> = None;
    for overload in
        overloads.iter().filter(|overload| overload.member == member && overload.params.len() == types.len())
    {
        let mut bound = Bound::default();
        if !overload.params.iter().zip(types).all(|(param, found)| param.takes(found, &mut bound)) {
            continue;
        }
        let found = overload.result.fill(&bound);
        result = Some(match result {
            None => found,
            Some(before) => before.join(&found).unwrap_or(Type::Dyn),
        });
    }
    result.ok_or_else(|| no_overload(at, name, member, types))
}

/// Patterns and times that are written out are read at once, so that their faults show when they are written.
fn check_literals(name: &str, args: &[Expr]) -> Result<(), Fault> {
    let Some(Expr { at, node: Node::Literal(Literal::String(text)), .. }) = args.last() else { return Ok(()) };
    let sound = match name {
        "matches" => schema::compile_pattern(text, PATTERN_BYTES_MAX).is_ok(),
        "timestamp" => text.parse::<jiff::Timestamp>().is_ok(),
        "duration" => library::parse_duration(text).is_some(),
        _ => true,
    };
    if sound { Ok(()) } else { Err(Fault::new(*at, format!("invalid {name} argument"))) }
}

fn unwrapped(at: usize, found: Type) -> Checked {
    match found {
        Type::Optional(inner) => Ok(inner.as_ref().clone()),
        Type::Dyn => Ok(Type::Dyn),
        other => Err(mismatch(at, &Type::optional(Type::Dyn), &other)),
    }
}

fn expect(at: usize, wanted: &Type, found: &Type) -> Result<(), Fault> {
    if wanted.takes(found, &mut Bound::default()) { Ok(()) } else { Err(mismatch(at, wanted, found)) }
}

fn mismatch(at: usize, wanted: &Type, found: &Type) -> Fault {
    Fault::new(at, format!("expected type '{wanted}' but found '{found}'"))
}

fn undeclared(at: usize, name: &str) -> Fault {
    Fault::new(at, format!("undeclared reference to '{name}' (in container '')"))
}

fn no_overload(at: usize, name: &str, member: Member, types: &[Type]) -> Fault {
    let list = |types: &[Type]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let shown = match (member, types) {
        (Member::Yes, [target, args @ ..]) => format!("{target}.({})", list(args)),
        _ => format!("({})", list(types)),
    };
    Fault::new(at, format!("found no matching overload for '{name}' applied to '{shown}'"))
}
