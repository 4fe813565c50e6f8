//! Schemas that are joined by `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::{Outcome, Pair, Path, Rules, Schema, Walk};
use crate::{field::FieldError, gotext};

impl Walk<'_> {
    pub(super) fn junctions(&self, rules: &Rules, value: &Value, pair: Option<Pair<'_>>, path: &Path<'_>) -> Outcome {
        let mut outcome = Outcome { checks: 1, ..Outcome::default() };
        let at = if self.at.is_empty() { "<nil>" } else { self.at };
        let refusal =
            |text: String| FieldError::invalid(at, "", format!("{} must {text}", gotext::quote(&path.to_string())));
        let each = |schemas: &[Schema]| -> Vec<Outcome> {
            schemas.iter().map(|schema| self.check(schema, value, pair, path)).collect()
        };
        if !rules.any_of.is_empty() {
            let best = Best::of(each(&rules.any_of));
            if best.good == 0 {
                outcome.add(refusal("validate at least one schema (anyOf)".to_owned()));
            }
            outcome.merge(best.told);
        }
        if !rules.one_of.is_empty() {
            let best = Best::of(each(&rules.one_of));
            match best.good {
                0 => outcome.add(refusal("validate one and only one schema (oneOf). Found none valid".to_owned())),
                1 => {}
                many => {
                    let text = format!("validate one and only one schema (oneOf). Found {many} valid alternatives");
                    outcome.add(refusal(text));
                }
            }
            if best.good < 2 {
                outcome.merge(best.told);
            }
        }
        if !rules.all_of.is_empty() {
            let (all, count) = (each(&rules.all_of), rules.all_of.len());
            let good = all.iter().filter(|one| one.errors.is_empty()).count();
            all.into_iter().for_each(|one| outcome.merge(one));
            if good != count {
                let none = if good == 0 { ". None validated" } else { "" };
                outcome.add(refusal(format!("validate all the schemas (allOf){none}")));
            }
        }
        if rules.not.as_deref().is_some_and(|not| self.check(not, value, pair, path).errors.is_empty()) {
            outcome.add(refusal("not validate the schema (not)".to_owned()));
        }
        outcome
    }
}

/// Which of several schemas is told about.
struct Best {
    good: usize,
    /// The first that fits, or else the one that came furthest.
    told: Outcome,
}

impl Best {
    fn of(outcomes: Vec<Outcome>) -> Best {
        let (mut good, mut fit, mut best) = (0, None, None::<Outcome>);
        for outcome in outcomes {
            if outcome.errors.is_empty() {
                good += 1;
                fit.get_or_insert(outcome);
            } else if best.as_ref().is_none_or(|best| outcome.checks > best.checks) {
                best = Some(outcome);
            }
        }
        Best { good, told: fit.or(best).unwrap_or_default() }
    }
}
