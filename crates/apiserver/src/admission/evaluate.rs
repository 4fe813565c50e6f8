//! What a policy says of one request, within its costs.

use std::rc::Rc;

use serde_json::Value as Json;

use super::{
    Concerned,
    binding::Binding,
    code::{Code, Expression, Validation},
    policy::Policy,
    rule::Place,
    types::{self, VARIABLES},
};
use crate::cel::{Lazy, Meter, Type, Value};

/// What one evaluation may cost, all of one binding, and all its conditions. Kubernetes' figures.
const CALL_COST_MAX: u64 = 1_000_000;
const BINDING_COST_MAX: u64 = 10_000_000;
const CONDITIONS_COST_MAX: u64 = 2_500_000;
/// Bytes of a message that an expression makes, and of an annotation.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A request as expressions see it; what is not there is null.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub object: &'a Json,
    pub old: &'a Json,
    pub request: &'a Json,
    pub namespace: &'a Json,
}

/// What policies make of a request.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub denials: Vec<Denial>,
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub text: String,
    /// `Forbidden`, `Invalid` or `RequestEntityTooLarge`.
    pub reason: String,
}

/// Why an expression or a policy says no.
struct No {
    message: String,
    reason: Option<String>,
}

impl No {
    fn because(message: impl Into<String>) -> No {
        No { message: message.into(), reason: None }
    }
}

impl Concerned {
    /// Asks the policy for each of its bindings whose selectors choose the request.
    pub(crate) fn judge(&self, place: &Place<'_>, input: &Input<'_>, verdict: &mut Verdict) {
        let policy = &*self.policy;
        // A namespace is chosen by its own labels.
        let own = if input.object.is_null() { input.old } else { input.object };
        let namespace = if place.is_namespace() { own } else { input.namespace };
        let chosen = |resources: &super::rule::Resources| resources.select(place, namespace, [input.object, input.old]);
        let code = match (&chosen(&policy.constraints), &policy.code) {
            (Ok(false), _) => return,
            (Err(why), _) | (Ok(true), Err(why)) => {
                return policy.misconfigured(None, &format!("failed to configure policy: {why}"), verdict);
            }
            (Ok(true), Ok(code)) => code,
        };
        for binding in &self.bindings {
            match chosen(&binding.resources) {
                Ok(false) => {}
                Ok(true) => policy.say(binding, &Run::new(input).judge(policy, code), verdict),
                Err(why) => {
                    policy.misconfigured(Some(binding), &format!("failed to configure binding: {why}"), verdict);
                }
            }
        }
    }
}

impl Policy {
    fn misconfigured(&self, binding: Option<&Binding>, why: &str, verdict: &mut Verdict) {
        if self.fails {
            verdict.denials.push(self.denial(binding, &No::because(why)));
        }
    }

    fn denial(&self, binding: Option<&Binding>, no: &No) -> Denial {
        let by = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        Denial {
            text: format!("ValidatingAdmissionPolicy '{}'{by} denied request: {}", self.name, no.message),
            reason: no.reason.clone().unwrap_or_else(|| "Invalid".to_owned()),
        }
    }

    /// Does what the binding says is to follow.
    fn say(&self, binding: &Binding, said: &[No], verdict: &mut Verdict) {
        for no in said {
            if binding.denies {
                verdict.denials.push(self.denial(Some(binding), no));
            }
            if binding.warns {
                verdict.warnings.push(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                    self.name, binding.name, no.message
                ));
            }
            if binding.audits {
                tracing::info!(target: "audit", policy = self.name, binding = binding.name, "validation failed: {}", no.message);
            }
        }
    }
}

/// One policy on one request.
struct Run<'a> {
    variables: Vec<(&'static str, Value<'a>)>,
    budget: u64,
}

/// Nothing more is evaluated.
struct Exhausted;

impl<'a> Run<'a> {
    fn new(input: &Input<'a>) -> Run<'a> {
        let variables = vec![
            ("object", Value::of(input.object, &Type::Dyn)),
            ("oldObject", Value::of(input.old, &Type::Dyn)),
            ("request", Value::of(input.request, &types::request())),
            ("namespaceObject", Value::of(input.namespace, &types::namespace())),
        ];
        Run { variables, budget: BINDING_COST_MAX }
    }

    /// What the policy has against the request.
    fn judge(mut self, policy: &Policy, code: &'a Code) -> Vec<No> {
        match self.is_meant(code) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return if policy.fails { vec![No::because(why)] } else { Vec::new() },
        }
        let lazy = Lazy::new(VARIABLES, &code.variables, self.variables.clone(), CALL_COST_MAX);
        let mut said = Vec::new();
        for validation in &code.validations {
            match self.validation(validation, &lazy, policy.fails) {
                Ok(no) => said.extend(no),
                // As in Kubernetes, the budget's end is all that is said then.
                Err(Exhausted) => return if policy.fails { vec![No::because(OUT_OF_BUDGET)] } else { Vec::new() },
            }
        }
        self.budget = BINDING_COST_MAX;
        for (key, expression) in &code.annotations {
            said.extend(self.annotation(&policy.name, key, expression, &lazy, policy.fails));
        }
        said
    }

    /// Whether all conditions hold. One that is false decides, even if another cannot be evaluated.
    fn is_meant(&mut self, code: &'a Code) -> Result<bool, String> {
        self.budget = CONDITIONS_COST_MAX;
        let none = Lazy::new(VARIABLES, &[], Vec::new(), CALL_COST_MAX);
        // Conditions are asked before the namespace is looked at, so they do not see it.
        let namespace = std::mem::replace(&mut self.variables[3].1, Value::Null);
        let mut failures = Vec::new();
        let mut meant = true;
        for condition in &code.conditions {
            match self.eval(condition, &none) {
                Ok(Ok(Value::Bool(false))) => meant = false,
                Ok(Ok(_)) => {}
                Ok(Err(why)) => failures.push(why),
                Err(Exhausted) => failures = vec![OUT_OF_BUDGET.to_owned()],
            }
            if !meant || self.budget == 0 {
                break;
            }
        }
        self.variables[3].1 = namespace;
        self.budget = BINDING_COST_MAX;
        match (meant, failures.as_slice()) {
            (false, _) => Ok(false),
            (true, []) => Ok(true),
            (true, [one]) => Err(one.clone()),
            (true, several) => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn validation(
        &mut self,
        validation: &'a Validation,
        lazy: &Rc<Lazy<'a>>,
        fails: bool,
    ) -> Result<Option<No>, Exhausted> {
        Ok(match self.eval(&validation.expression, lazy)? {
            Ok(Value::Bool(true)) => None,
            Err(why) => fails.then(|| No::because(why)),
            Ok(_) => {
                let message = self.message(validation, lazy)?;
                Some(No { message, reason: validation.reason.clone() })
            }
        })
    }

    fn message(&mut self, validation: &'a Validation, lazy: &Rc<Lazy<'a>>) -> Result<String, Exhausted> {
        let made = match &validation.message_expression {
            Some(expression) => self.eval(expression, lazy)?.ok(),
            None => None,
        };
        if let Some(Value::String(text)) = made {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n') {
                return Ok(text.to_owned());
            }
        }
        Ok(match validation.message.as_str() {
            "" => format!("failed expression: {}", validation.expression.source.trim()),
            message => message.to_owned(),
        })
    }

    /// Annotations go where audits go; one that cannot be made is refused, if the policy says so.
    fn annotation(
        &mut self,
        policy: &str,
        key: &str,
        expression: &'a Expression,
        lazy: &Rc<Lazy<'a>>,
        fails: bool,
    ) -> Option<No> {
        let why = match self.eval(expression, lazy) {
            Ok(Ok(Value::String(text))) => {
                let text: String = text.trim().chars().take(ANNOTATION_BYTES_MAX).collect();
                if !text.is_empty() {
                    tracing::info!(target: "audit", annotation = format!("{policy}/{key}"), "{text}");
                }
                return None;
            }
            Ok(Ok(_)) => return None,
            Ok(Err(why)) => why,
            Err(Exhausted) => OUT_OF_BUDGET.to_owned(),
        };
        fails.then(|| No::because(why))
    }

    /// The value of an expression, or why it has none, paid for from the budget.
    fn eval(
        &mut self,
        expression: &'a Expression,
        lazy: &Rc<Lazy<'a>>,
    ) -> Result<Result<Value<'a>, String>, Exhausted> {
        let mut meter = Meter::new(CALL_COST_MAX);
        let found = expression.program.eval_with(&self.variables, lazy, &mut meter);
        let cost = meter.spent().min(CALL_COST_MAX).saturating_add(lazy.take_spent());
        if cost > self.budget {
            self.budget = 0;
            return Err(Exhausted);
        }
        self.budget -= cost;
        Ok(found.map_err(|error| format!("expression '{}' resulted in error: {error}", expression.source)))
    }
}
