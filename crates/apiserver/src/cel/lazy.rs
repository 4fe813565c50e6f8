//! Variables that are expressions themselves: `variables.both` is evaluated when somebody asks for it, and then once.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use super::{Error, Meter, Program, Value};

pub(crate) struct Lazy<'a> {
    /// What stands before the dot.
    pub(super) name: &'a str,
    programs: &'a [(String, Program)],
    variables: Vec<(&'a str, Value<'a>)>,
    cost_max: u64,
    spent: Cell<u64>,
    known: RefCell<BTreeMap<&'a str, Result<Value<'a>, Error>>>,
}

impl<'a> Lazy<'a> {
    /// Programs by name over these variables, each of which may use those before it; one evaluation costs at most `cost_max`.
    pub(crate) fn new(
        name: &'a str,
        programs: &'a [(String, Program)],
        variables: Vec<(&'a str, Value<'a>)>,
        cost_max: u64,
    ) -> Rc<Lazy<'a>> {
        Rc::new(Lazy { name, programs, variables, cost_max, spent: Cell::new(0), known: RefCell::default() })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.programs.iter().any(|(known, _)| known == name)
    }

    pub(super) fn get(self: &Rc<Self>, name: &str) -> Result<Value<'a>, Error> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let Some((name, program)) = self.programs.iter().find(|(known, _)| known == name) else {
            return Err(Error::NoKey(name.to_owned()));
        };
        let mut meter = Meter::new(self.cost_max);
        let found = program
            .eval_with(&self.variables, self, &mut meter)
            .map_err(|error| Error::other(format!("composited variable {name:?} fails to evaluate: {error}")));
        self.spent.set(self.spent.get().saturating_add(meter.spent()));
        self.known.borrow_mut().insert(name, found.clone());
        found
    }

    /// What evaluations have cost since this was asked last.
    pub(crate) fn take_spent(&self) -> u64 {
        self.spent.replace(0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;
    use crate::cel::{ObjectType, Type};

    #[test_case("variables.two == 2" => "true"; "one that uses another")]
    #[test_case("has(variables.bad)" => "true"; "there without being evaluated")]
    #[test_case("true || variables.bad" => "true"; "not asked for")]
    #[test_case("variables.bad" => "composited variable \"bad\" fails to evaluate: no such key: none"; "asked for")]
    #[test_case("[1].all(variables, variables == 1)" => "true"; "hidden")]
    #[test_case("variables.two == 2 && variables.two == 2" => "true"; "twice")]
    fn says(source: &str) -> String {
        let object = json!({"one": 1});
        let dynamic = [("object", Type::Dyn)];
        let mut fields = ObjectType::default();
        let mut programs: Vec<(String, Program)> = Vec::new();
        for (name, source) in [("one", "object.one"), ("two", "variables.one + 1"), ("bad", "object.none == 1")] {
            let known = [
                ("object", Type::Dyn),
                ("variables", Type::Object(ObjectType { fields: fields.fields.clone() }.into())),
            ];
            let program = Program::compile(source, &known).unwrap();
            fields.fields.insert(name.to_owned(), (name.to_owned(), program.result().clone()));
            programs.push((name.to_owned(), program));
        }
        let known = [dynamic[0].clone(), ("variables", Type::Object(fields.into()))];
        let program = Program::compile(source, &known).unwrap();
        let variables = vec![("object", Value::of(&object, &Type::Dyn))];
        let lazy = Lazy::new("variables", &programs, variables.clone(), 1000);
        match program.eval_with(&variables, &lazy, &mut Meter::new(1000)) {
            Ok(Value::Bool(verdict)) => verdict.to_string(),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        }
    }
}
