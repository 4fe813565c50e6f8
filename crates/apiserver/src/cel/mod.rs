//! The Common Expression Language as Kubernetes uses it: expressions over objects that end for certain.
//!
//! An expression is compiled once against the types of its variables ([`Program::compile`]) and evaluated as often as wanted
//! ([`Program::eval`]), each time within a limit of cost. Neither step panics, recurses deeper than [`parse::DEPTH_MAX`], or
//! allocates more than its cost allows, whatever the expression says: authors of definitions write it.

mod ast;
mod check;
mod convert;
mod eval;
mod fold;
mod lazy;
mod lex;
mod library;
mod meter;
mod parse;
mod types;
mod value;

#[cfg(test)]
mod tests;

use std::rc::Rc;

use self::{ast::Expr, check::Checker};
pub(crate) use self::{
    lazy::Lazy,
    lex::RESERVED,
    library::parse_duration,
    meter::Meter,
    types::{ListKind, ObjectType, Type},
    value::Value,
};

/// Code points of an expression, as in cel-go.
const SIZE_MAX: usize = 100_000;

/// Why an expression is none, with the place: `ERROR: <input>:1:5: undefined field 'foo'` and the line it stands in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CompileError(String);

/// Why an evaluation has no result. The texts are cel-go's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Error {
    #[error("operation cancelled: actual cost limit exceeded")]
    Cost,
    #[error("no such overload")]
    NoOverload,
    #[error("no such key: {0}")]
    NoKey(String),
    #[error("{0}")]
    Other(String),
}

impl Error {
    fn other(text: impl Into<String>) -> Error {
        Error::Other(text.into())
    }
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    root: Expr,
    result: Type,
    references: Vec<String>,
    variables: Vec<(String, Type)>,
}

impl Program {
    /// Reads `source` as an expression over variables of these names and types.
    pub(crate) fn compile(source: &str, variables: &[(&str, Type)]) -> Result<Program, CompileError> {
        let size = source.chars().count();
        if size > SIZE_MAX {
            let text = format!("expression code point size exceeds limit: size: {size}, limit {SIZE_MAX}");
            return Err(CompileError(format!("ERROR: <input>:-1:0: {text}")));
        }
        let report = |fault: ast::Fault| CompileError(fault.render(source));
        let mut root = parse::parse(source).map_err(report)?;
        let mut checker = Checker::new(variables);
        let result = checker.check(&mut root).map_err(report)?;
        let variables = variables.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
        Ok(Program { root, result, references: checker.references(), variables })
    }

    pub(crate) fn result(&self) -> &Type {
        &self.result
    }

    /// The type that a variable was said to have.
    pub(crate) fn variable(&self, name: &str) -> &Type {
        self.variables.iter().find(|(known, _)| known == name).map_or(&Type::Dyn, |(_, kind)| kind)
    }

    /// Whether the expression names this variable.
    pub(crate) fn uses(&self, variable: &str) -> bool {
        self.references.iter().any(|name| name == variable)
    }

    /// The value of the expression for these variables.
    pub(crate) fn eval<'a>(
        &'a self,
        variables: &[(&'a str, Value<'a>)],
        meter: &mut Meter,
    ) -> Result<Value<'a>, Error> {
        eval::Scope::new(variables.to_vec(), meter).eval(&self.root)
    }

    /// The same with variables that are evaluated when they are asked for.
    pub(crate) fn eval_with<'a>(
        &'a self,
        variables: &[(&'a str, Value<'a>)],
        lazy: &Rc<Lazy<'a>>,
        meter: &mut Meter,
    ) -> Result<Value<'a>, Error> {
        eval::Scope::new(variables.to_vec(), meter).with_lazy(lazy.clone()).eval(&self.root)
    }

    pub(crate) fn eval_bool<'a>(
        &'a self,
        variables: &[(&'a str, Value<'a>)],
        meter: &mut Meter,
    ) -> Result<bool, Error> {
        match self.eval(variables, meter)? {
            Value::Bool(verdict) => Ok(verdict),
            _ => Err(Error::NoOverload),
        }
    }

    /// The text the expression makes, or `None` if it makes something else.
    pub(crate) fn eval_text<'a>(
        &'a self,
        variables: &[(&'a str, Value<'a>)],
        meter: &mut Meter,
    ) -> Result<Option<String>, Error> {
        match self.eval(variables, meter)? {
            Value::String(text) => Ok(Some(text.to_string())),
            _ => Ok(None),
        }
    }
}
