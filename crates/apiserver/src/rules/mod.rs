//! Rules of a schema (`x-kubernetes-validations`): compiled with its types, evaluated on objects.

mod check;
mod compile;
mod evaluate;
mod fieldpath;
mod types;

use std::collections::BTreeMap;

pub(crate) use self::{
    check::{check, check_form, check_value},
    evaluate::validate,
    fieldpath::resolve,
};
use crate::{
    cel::Program,
    field::{Fault, FieldError},
};

/// What one evaluation, and all evaluations for one object, may cost. Kubernetes' figures.
const CALL_COST_MAX: u64 = 1_000_000;
const OBJECT_COST_MAX: u64 = 10_000_000;
/// Bytes of a message that an expression makes.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// Rules of a node of a schema and of all below it; nodes without any are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    rules: Vec<Rule>,
    /// The JSON type of the node, which error texts name.
    kind: String,
    properties: BTreeMap<String, Tree>,
    additional: Option<Box<Tree>>,
    items: Option<Box<Tree>>,
    /// Rules for the same value that stand in `allOf`.
    all_of: Vec<Tree>,
}

#[derive(Clone, Debug)]
pub(crate) struct Rule {
    source: String,
    message: String,
    reason: Option<String>,
    /// Where a failure is reported, below the node.
    field: Option<String>,
    /// `oldSelf` is an optional, so the rule holds without an old value too.
    optional_old: bool,
    /// A rule that does not compile refuses every object it is about: its author asked for a check that cannot be made.
    program: Result<Program, String>,
    message_program: Option<Program>,
}

impl Rule {
    fn uses_old(&self) -> bool {
        self.program.as_ref().is_ok_and(|program| program.uses("oldSelf"))
    }

    /// What to say of a rule that fails.
    fn text(&self) -> String {
        match self.message.trim() {
            "" => format!("failed rule: {}", self.source.trim()),
            message => message.to_owned(),
        }
    }

    /// What to call a rule that cannot be evaluated.
    fn name(&self) -> &str {
        if self.message.is_empty() { self.source.trim() } else { self.message.trim() }
    }

    /// Values that may be large are not shown.
    fn error(&self, path: &str, kind: &str, value: &serde_json::Value, text: String) -> FieldError {
        let error = match self.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(path, text),
            Some("FieldValueRequired") => FieldError::required(path, text),
            Some("FieldValueDuplicate") => FieldError::duplicate(path, value.clone()),
            _ => FieldError::new(Fault::Invalid, path, value.clone(), text),
        };
        FieldError { silent: matches!(kind, "object" | "array"), ..error }
    }
}

impl Tree {
    fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && self.properties.is_empty()
            && self.additional.is_none()
            && self.items.is_none()
            && self.all_of.is_empty()
    }
}

/// The type of whole objects of a schema, for tests of expressions.
#[cfg(test)]
pub(crate) fn type_of(schema: &serde_json::Value) -> crate::cel::Type {
    types::of(schema, true).expect("an object")
}
