//! Numbers against their bounds, which are compared as the kind of number that the value is.

use serde_json::{Number, Value};

use super::{Outcome, Path, Schema, Walk, kind};
use crate::{field::FieldError, gotext};

/// What a number is compared as.
#[derive(Clone, Copy)]
enum As {
    Integer(i64),
    Float(f64),
}

impl Walk<'_> {
    pub(super) fn number(&self, schema: &Schema, number: &Number, path: &Path<'_>) -> Outcome {
        let rules = &schema.rules;
        let value = match number.as_i64() {
            Some(value) => As::Integer(value),
            None => As::Float(number.as_f64().unwrap_or_default()),
        };
        let range = Range::of(schema);
        let mut outcome = Outcome { checks: 1, ..Outcome::default() };
        let mut fits = |what: &str, number: f64| {
            let wrong = !range.has(number);
            if wrong {
                outcome.add(FieldError::invalid(self.field(), "", range.refusal(what, path)));
            }
            !wrong
        };
        fits("Checked", value.float());
        // A bound that the type cannot have is told, and compared as what it is.
        let mut pair =
            |what: &str, bound: f64| if fits(what, bound) { (value, bound) } else { (As::Float(value.float()), bound) };
        let multiple = rules.multiple_of.map(|of| pair("MultipleOf", of));
        let maximum = rules.maximum.map(|max| pair("Maximum boundary", max));
        let minimum = rules.minimum.map(|min| pair("Minimum boundary", min));
        let found = [
            multiple.and_then(|(value, of)| not_multiple(value, of)),
            minimum.and_then(|(value, min)| value.below(min, rules.exclusive_minimum)),
            maximum.and_then(|(value, max)| value.above(max, rules.exclusive_maximum)),
        ];
        for (value, detail) in found.into_iter().flatten() {
            let error = match detail {
                Detail::Body(detail) => self.invalid(path, value, detail),
                Detail::Factor(detail) => FieldError::invalid(path.field(self.at), value, detail(path)),
            };
            outcome.add(error);
        }
        outcome
    }

    /// The place of errors that name theirs in their text alone.
    fn field(&self) -> &str {
        if self.at.is_empty() { "<nil>" } else { self.at }
    }
}

enum Detail {
    Body(String),
    Factor(fn(&Path<'_>) -> String),
}

impl As {
    fn float(self) -> f64 {
        match self {
            As::Integer(value) => value as f64,
            As::Float(value) => value,
        }
    }

    fn value(self) -> Value {
        match self {
            As::Integer(value) => value.into(),
            As::Float(value) => value.into(),
        }
    }

    /// A bound for whole numbers is one itself.
    fn text(self, bound: f64) -> String {
        match self {
            As::Integer(_) => (bound as i64).to_string(),
            As::Float(_) => gotext::float(bound),
        }
    }

    fn order(self, bound: f64) -> Option<std::cmp::Ordering> {
        match self {
            As::Integer(value) => Some(value.cmp(&(bound as i64))),
            As::Float(value) => value.partial_cmp(&bound),
        }
    }

    fn below(self, min: f64, exclusive: bool) -> Option<(Value, Detail)> {
        let order = self.order(min)?;
        let bad = order.is_lt() || (exclusive && order.is_eq());
        let words = if exclusive { "greater than" } else { "greater than or equal to" };
        bad.then(|| (self.value(), Detail::Body(format!("should be {words} {}", self.text(min)))))
    }

    fn above(self, max: f64, exclusive: bool) -> Option<(Value, Detail)> {
        let order = self.order(max)?;
        let bad = order.is_gt() || (exclusive && order.is_eq());
        let words = if exclusive { "less than" } else { "less than or equal to" };
        bad.then(|| (self.value(), Detail::Body(format!("should be {words} {}", self.text(max)))))
    }
}

fn not_multiple(value: As, of: f64) -> Option<(Value, Detail)> {
    let bad = match value {
        // Half a number is none of those that whole ones can be counted by.
        As::Integer(_) if (of as i64) <= 0 => {
            let detail = |path: &Path<'_>| format!("factor MultipleOf declared for {path} must be positive: 0");
            return Some((0.into(), Detail::Factor(detail)));
        }
        As::Integer(value) => value % (of as i64) != 0,
        As::Float(value) if of < 1.0 => !kind::is_whole(1.0 / of * value),
        As::Float(value) => !kind::is_whole(value / of),
    };
    bad.then(|| (value.value(), Detail::Body(format!("should be a multiple of {}", value.text(of)))))
}

/// The numbers that a type and its format can have.
#[derive(Clone, Copy)]
struct Range<'a> {
    kind: &'a str,
    format: &'a str,
}

impl<'a> Range<'a> {
    fn of(schema: &'a Schema) -> Range<'a> {
        let format = schema.rules.format.as_deref().unwrap_or_default();
        match schema.kind.as_deref().filter(|_| !schema.int_or_string) {
            Some("integer") => Range { kind: "integer", format },
            Some("number") => Range { kind: "number", format },
            _ => Range { kind: "", format: "" },
        }
    }

    fn has(self, number: f64) -> bool {
        match (self.kind, self.format) {
            ("integer", "int32") => is_within(number, f64::from(i32::MIN), f64::from(i32::MAX)),
            ("integer", _) => is_within(number, i64::MIN as f64, i64::MAX as f64),
            (_, "float") => (number as f32).is_finite(),
            _ => true,
        }
    }

    fn refusal(self, what: &str, path: &Path<'_>) -> String {
        match self.format {
            "" => format!("{what} value must be of type {} (default format) in {path}", self.kind),
            format => format!("{what} value must be of type {} with format {format} in {path}", self.kind),
        }
    }
}

fn is_within(number: f64, low: f64, high: f64) -> bool {
    number.fract() == 0.0 && (low..=high).contains(&number)
}
