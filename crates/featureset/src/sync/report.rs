//! The ClusterOperator: whether the controller works, may be upgraded, and which version it has reached.

use super::{Decided, World, Write, condition::degraded, rows::Determined};
use crate::{
    object::{ClusterOperator, Condition, set_condition},
    set::Set,
};

/// A version of this operand says that its row was written.
pub const ROWS: &str = "feature-gates";
pub const OPERATOR: &str = "operator";

/// It comes after the rows: a version that is reported has its row.
pub(crate) fn report(world: &World<'_>, decided: &Decided, determined: &Determined) -> Option<Write> {
    let Some(there) = world.cluster_operator else {
        return Some(Write::CreateClusterOperator(Box::new(ClusterOperator::new(world.operator_name))));
    };
    let mut new = there.clone();
    for condition in conditions(world, there, decided, determined) {
        set_condition(&mut new.status.conditions, condition, world.now.1);
    }
    if degraded(decided, determined).is_none() {
        new.set_version(OPERATOR, &world.own.version);
        new.set_version(ROWS, &world.own.version);
    }
    (new != *there).then(|| Write::ClusterOperatorStatus(Box::new(new)))
}

fn conditions(
    world: &World<'_>,
    there: &ClusterOperator,
    decided: &Decided,
    determined: &Determined,
) -> [Condition; 4] {
    let problem = degraded(decided, determined);
    let has_row = determined.rows.iter().any(|row| row.version == world.own.version);
    let available = if has_row {
        Condition::new("Available", true, "AsExpected", format!("version {} has its row", world.own.version))
    } else {
        Condition::new("Available", false, "NoRow", format!("version {} has no row", world.own.version))
    };
    let arrived = problem.is_none() || there.version(OPERATOR) == Some(&world.own.version);
    let progressing = match (&problem, arrived) {
        (Some((reason, _)), false) => {
            Condition::new("Progressing", true, reason, format!("not yet at version {}", world.own.version))
        }
        _ => Condition::new("Progressing", false, "AsExpected", format!("at version {}", world.own.version)),
    };
    let degraded = match problem {
        None => Condition::new("Degraded", false, "AsExpected", "all rows are determined"),
        Some((reason, message)) => Condition::new("Degraded", true, reason, message),
    };
    [available, progressing, degraded, upgradeable(decided)]
}

fn upgradeable(decided: &Decided) -> Condition {
    let set = decided.choice.as_ref().map(|choice| choice.set);
    match set {
        Some(set @ (Set::Default | Set::Okd)) if decided.wrong.is_none() => {
            Condition::new("Upgradeable", true, "AsExpected", format!("{set} allows updates"))
        }
        Some(set) if set.is_one_way() => {
            let reason = format!("FeatureGates_RestrictedFeatureGates_{set}");
            Condition::new("Upgradeable", false, &reason, format!("\"{set}\" does not allow updates"))
        }
        _ => {
            Condition::new("Upgradeable", false, "FeatureGates_Undetermined", "it cannot be told which set was chosen")
        }
    }
}
