//! Objects against rules, within a budget.

use serde_json::Value as Json;

use super::{CALL_COST_MAX, MESSAGE_BYTES_MAX, OBJECT_COST_MAX, Rule, Tree};
use crate::{
    cel::{Error, Meter, Type, Value},
    field::{FieldError, child},
    schema::{Pair, Schema},
};

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What rules make of an object.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub errors: Vec<FieldError>,
    /// Failures of what the write did not change.
    pub tolerated: Vec<FieldError>,
}

/// Judges a whole object by the rules of its schema. Without an old object it is a new one.
pub(crate) fn validate(tree: &Tree, schema: &Schema, object: &Json, old: Option<&Json>) -> Verdict {
    let mut run = Run { verdict: Verdict::default(), budget: OBJECT_COST_MAX, meter: Meter::new(CALL_COST_MAX) };
    let pair = old.map(|old| Pair { schema, new: object, old });
    let _ = run.node(tree, &Node { value: object, old, pair, parent: None, schema: Some(schema) }, "");
    run.verdict
}

/// A value and what it was before.
#[derive(Clone, Copy)]
struct Node<'a> {
    value: &'a Json,
    old: Option<&'a Json>,
    /// The value beside its old one, where ratcheting can tell; else the nearest above it that has one.
    pair: Option<Pair<'a>>,
    parent: Option<Pair<'a>>,
    schema: Option<&'a Schema>,
}

impl<'a> Node<'a> {
    fn field(&self, name: &str, value: &'a Json) -> Node<'a> {
        let schema = self.schema.and_then(|schema| schema.properties.get(name).or(schema.additional.as_deref()));
        let hidden = self.parent.is_none() && matches!(name, "apiVersion" | "kind");
        let (pair, parent) = match self.pair {
            _ if hidden => (None, None),
            Some(pair) => (pair.key(name), Some(pair)),
            None => (None, self.parent),
        };
        Node { value, old: self.old.and_then(|old| old.get(name)), pair, parent, schema }
    }

    fn item(&self, index: usize, value: &'a Json) -> Node<'a> {
        let (pair, parent) = match self.pair {
            Some(pair) => (pair.index(index), Some(pair)),
            None => (None, self.parent),
        };
        let old = self.old.zip(self.schema).and_then(|(old, schema)| schema.item_like(value, old.as_array()?));
        Node { value, old, pair, parent, schema: self.schema.and_then(|schema| schema.items.as_deref()) }
    }

    /// Whether the write left this as it was, so that what is wrong with it is not this write's fault.
    fn is_unchanged(&self) -> bool {
        self.pair.or(self.parent).is_some_and(|pair| pair.is_equal())
    }
}

/// The budget is gone, and with it all rules that have not been looked at.
struct Exhausted;

struct Run {
    verdict: Verdict,
    budget: u64,
    meter: Meter,
}

impl Run {
    fn node(&mut self, tree: &Tree, node: &Node<'_>, path: &str) -> Result<(), Exhausted> {
        if node.value.is_null() {
            return Ok(());
        }
        for rule in &tree.rules {
            self.rule(rule, tree, node, path)?;
        }
        for nested in &tree.all_of {
            self.node(nested, &Node { pair: None, ..*node }, path)?;
        }
        match node.value {
            Json::Array(items) => {
                let Some(tree) = &tree.items else { return Ok(()) };
                for (index, item) in items.iter().enumerate() {
                    self.node(tree, &node.item(index, item), &format!("{path}[{index}]"))?;
                }
            }
            Json::Object(map) => {
                for (name, value) in map {
                    if let Some(tree) = tree.properties.get(name) {
                        self.node(tree, &node.field(name, value), &child(path, name))?;
                    } else if let Some(tree) = &tree.additional {
                        self.node(tree, &node.field(name, value), &format!("{path}[{name}]"))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rule(&mut self, rule: &Rule, tree: &Tree, node: &Node<'_>, path: &str) -> Result<(), Exhausted> {
        let invalid = |text: String| FieldError::invalid(named(path), tree.kind.as_str(), text);
        let program = match &rule.program {
            Ok(program) => program,
            Err(why) => {
                self.verdict.errors.push(invalid(format!("rule compile error: {why}")));
                return Ok(());
            }
        };
        // A rule about a change has nothing to say where there is none before.
        if rule.uses_old() && node.old.is_none() && !rule.optional_old {
            return Ok(());
        }
        // Shape is judged before; what is wrong with it and still here was let be, as it has not changed.
        if let Some(why) = misfit(&tree.kind, node.value) {
            self.verdict.errors.push(invalid(format!("{why} evaluating rule: {}", rule.name())));
            return Ok(());
        }
        let variables = variables(rule, program.variable("self"), node);
        self.meter.reset();
        let verdict = program.eval_bool(&variables, &mut self.meter);
        self.pay(path, &tree.kind)?;
        match verdict {
            Ok(true) => Ok(()),
            Ok(false) => self.failed(rule, tree, node, path, &variables),
            Err(error) => {
                let name = rule.name();
                let text = match &error {
                    Error::NoOverload => format!(
                        "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {name}"
                    ),
                    Error::Cost => {
                        format!(
                            "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"
                        )
                    }
                    _ => format!("{error} evaluating rule: {name}"),
                };
                self.verdict.errors.push(invalid(text));
                if error == Error::Cost { Err(Exhausted) } else { Ok(()) }
            }
        }
    }

    fn pay(&mut self, path: &str, kind: &str) -> Result<(), Exhausted> {
        match self.budget.checked_sub(self.meter.spent().min(CALL_COST_MAX)) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => {
                self.verdict.errors.push(FieldError::invalid(named(path), kind, OUT_OF_BUDGET));
                Err(Exhausted)
            }
        }
    }

    fn failed<'a>(
        &mut self,
        rule: &'a Rule,
        tree: &Tree,
        node: &Node<'_>,
        path: &str,
        variables: &[(&'a str, Value<'a>)],
    ) -> Result<(), Exhausted> {
        let mut text = rule.text();
        if let Some(program) = &rule.message_program {
            self.meter.reset();
            let made = program.eval_text(variables, &mut self.meter);
            self.pay(path, &tree.kind)?;
            match made {
                Ok(Some(made)) if is_message(made.trim()) => text = made.trim().to_owned(),
                other => tracing::debug!(?other, rule = rule.source, "the message of a rule is not usable"),
            }
        }
        let at = match &rule.field {
            Some(field) if path.is_empty() => field.clone(),
            Some(field) => child(path, field),
            None => named(path).to_owned(),
        };
        let error = rule.error(&at, &tree.kind, node.value, text);
        if !rule.uses_old() && node.is_unchanged() {
            self.verdict.tolerated.push(error)
        } else {
            self.verdict.errors.push(error)
        }
        Ok(())
    }
}

/// Why a value is none that rules of this type can be asked about, in Kubernetes' words.
fn misfit(kind: &str, value: &Json) -> Option<String> {
    let whole = |value: &Json| value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let wanted = match kind {
        "object" if !value.is_object() => {
            return Some("invalid data, expected a map for the provided schema with type=object".to_owned());
        }
        "array" if !value.is_array() => {
            return Some("invalid data, expected an array for the provided schema with type=array".to_owned());
        }
        "string" if !value.is_string() => "string",
        "boolean" if !value.is_boolean() => "bool",
        "integer" if !whole(value) => "int",
        "number" if !value.is_number() => "float",
        _ => return None,
    };
    let found = match value {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
        Json::Number(number) if number.is_f64() => "float64",
        Json::Number(_) => "int64",
    };
    Some(format!("invalid data, expected {wanted}, got {found}"))
}

/// The whole object has no path of its own.
fn named(path: &str) -> &str {
    if path.is_empty() { "<nil>" } else { path }
}

fn is_message(text: &str) -> bool {
    !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n')
}

fn variables<'a>(rule: &Rule, kind: &Type, node: &Node<'a>) -> Vec<(&'static str, Value<'a>)> {
    let mut variables = vec![("self", Value::of(node.value, kind))];
    let old = node.old.map(|old| Value::of(old, kind));
    match (rule.optional_old, old) {
        (true, old) => variables.push(("oldSelf", Value::Optional(old.map(Box::new)))),
        (false, Some(old)) => variables.push(("oldSelf", old)),
        (false, None) => {}
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{check_lists, validate as check, validate_update};

    /// What one case of `testdata/cases.json` brings, in the form that Kubernetes' own code gave it for `cases.out`.
    fn judge(case: &Json) -> Vec<String> {
        let schema = Schema::parse(&case["schema"]);
        let (new, old) = (&case["new"], case.get("old"));
        let lists = |object: &Json| {
            let mut errors = Vec::new();
            check_lists(&schema, object, "", &mut errors);
            errors
        };
        let shape = old.map_or_else(|| check(&schema, new, ""), |old| validate_update(&schema, new, Some(old), ""));
        let mut said: Vec<String> = shape.iter().map(|error| format!("schema: {error}")).collect();
        if old.is_some_and(|old| lists(old).is_empty()) {
            said.extend(lists(new).iter().map(|error| format!("list: {error}")));
        }
        if let Some(tree) = Tree::compile(&case["schema"]) {
            let verdict = validate(&tree, &schema, new, old);
            said.extend(verdict.errors.iter().map(|error| format!("rule: {error}")));
        }
        said.sort();
        said
    }

    #[test]
    fn objects_are_judged_as_in_kubernetes() {
        let cases: Vec<Json> = serde_json::from_str(include_str!("testdata/cases.json")).unwrap();
        let mut said = String::new();
        for case in &cases {
            said += &format!("# {}\n", case["name"].as_str().unwrap());
            judge(case).iter().for_each(|line| said += &format!("{line}\n"));
        }
        assert_eq!(said, include_str!("testdata/cases.out"));
    }

    #[test]
    fn what_is_tolerated_is_told() {
        let schema = serde_json::json!({"type": "object", "properties": {"a": {"type": "integer",
            "x-kubernetes-validations": [{"rule": "self > 5"}]}, "b": {"type": "integer"}}});
        let tree = Tree::compile(&schema).unwrap();
        let (new, old) = (serde_json::json!({"a": 1, "b": 2}), serde_json::json!({"a": 1}));
        let verdict = validate(&tree, &Schema::parse(&schema), &new, Some(&old));
        assert!(verdict.errors.is_empty());
        assert_eq!(verdict.tolerated[0].to_string(), "a: Invalid value: 1: failed rule: self > 5");
    }

    /// One rule over its limit ends the run; many below theirs end with the budget.
    #[test]
    fn rules_share_a_budget() {
        let object = serde_json::json!({"l": vec!["x".repeat(100); 2000]});
        let schema = |rule: &str, count: usize| {
            serde_json::json!({"type": "object", "x-kubernetes-validations": vec![serde_json::json!({"rule": rule}); count],
                "properties": {"l": {"type": "array", "items": {"type": "string"}}}})
        };
        let judge = |schema: Json| {
            let tree = Tree::compile(&schema).unwrap();
            let errors = validate(&tree, &Schema::parse(&schema), &object, None).errors;
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let pairs = "self.l.all(x, self.l.all(y, x == y))";
        let said = judge(schema(pairs, 2));
        assert_eq!(
            said,
            format!(
                "<nil>: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation \
                 rules will be run due to call cost exceeds limit for rule: {pairs}"
            )
        );
        let said = judge(schema("self.l.all(x, x.size() > 0 && x.matches('^x'))", 1000));
        assert_eq!(
            said,
            "<nil>: Invalid value: \"object\": validation failed due to running out of cost budget, no further validation rules \
             will be run"
        );
    }
}
