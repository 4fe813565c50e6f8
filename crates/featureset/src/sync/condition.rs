//! The conditions of the FeatureGate: each is always there, and says why it holds.

use super::{Decided, rows::Determined};
use crate::object::{Condition, FeatureGate, InForce};

pub const DETERMINATION_DEGRADED: &str = "DeterminationDegraded";
pub const ROWS_STALE: &str = "RowsStale";
pub const UNKNOWN_GATES: &str = "UnknownGates";
pub const ONE_WAY_SET_LEFT: &str = "OneWaySetLeft";
pub const DEPENDENCIES_UNMET: &str = "DependenciesUnmet";
pub const FIELD_GATES_STALE: &str = "FieldGatesStale";

/// What the API takes as a message.
const MESSAGE_MAX: usize = 32_000;

pub(crate) fn conditions(decided: &Decided, determined: &Determined) -> Vec<Condition> {
    let names = || determined.unknown.iter().cloned().collect::<Vec<_>>().join(", ");
    let joined = |problems: &[(&'static str, String)]| {
        let messages = || problems.iter().map(|(_, message)| message.as_str()).collect::<Vec<_>>().join("; ");
        problems.first().map(|(reason, _)| (*reason, messages()))
    };
    let unmet = || {
        let pairs = determined.unmet.iter().map(|(gate, dependency)| format!("{gate} is on without {dependency}"));
        pairs.collect::<Vec<_>>().join("; ")
    };
    let unless_empty =
        |empty: bool, reason: &'static str, message: &dyn Fn() -> String| (!empty).then(|| (reason, message()));
    let list = [
        (DETERMINATION_DEGRADED, degraded(decided, determined)),
        (ROWS_STALE, joined(&determined.stale)),
        (
            UNKNOWN_GATES,
            unless_empty(determined.unknown.is_empty(), "UnknownGates", &|| {
                format!("no installed version knows {}", names())
            }),
        ),
        (ONE_WAY_SET_LEFT, decided.left.clone().map(|message| ("OneWaySetLeft", message))),
        (DEPENDENCIES_UNMET, unless_empty(determined.unmet.is_empty(), "DependenciesUnmet", &unmet)),
        (FIELD_GATES_STALE, joined(&determined.fields.problems)),
    ];
    list.into_iter().map(|(kind, problem)| condition(kind, problem)).collect()
}

/// Which set the rows are made from. While it cannot be told which was chosen they stay, and so does this.
pub(crate) fn in_force(object: &FeatureGate, decided: &Decided, determined: &Determined) -> Option<Condition> {
    let before = InForce::of(object);
    let now = decided.choice.as_ref().map(|choice| InForce::new(choice.set, &determined.kept, before.as_ref()));
    now.or(before).map(|in_force| in_force.to_condition())
}

/// The gravest cause.
pub(crate) fn degraded(decided: &Decided, determined: &Determined) -> Option<(&'static str, String)> {
    let left = decided.left.clone().map(|message| ("OneWaySetLeft", message));
    left.or_else(|| decided.wrong.clone()).or_else(|| determined.degraded.clone())
}

fn condition(kind: &str, problem: Option<(&'static str, String)>) -> Condition {
    match problem {
        Some((reason, message)) => Condition::new(kind, true, reason, cut(message)),
        None => Condition::new(kind, false, "AsExpected", ""),
    }
}

fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_MAX {
        let mut end = MESSAGE_MAX;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(" …");
    }
    message
}
