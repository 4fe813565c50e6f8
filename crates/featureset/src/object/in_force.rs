//! Which set rows are made from. The object shows what was chosen; rows may be of another set: for a moment after each change, and
//! for as long as a one-way set was left. The condition is written together with the rows, and every reader of them sees it.

use std::collections::BTreeMap;

use super::{Condition, FeatureGate, find_condition};
use crate::set::Set;

pub const FEATURE_SET_IN_FORCE: &str = "FeatureSetInForce";
/// Of a row that was there before anyone wrote down its set.
pub const UNKNOWN: &str = "unknown";

const ALL: &str = "all rows are made from it";
const BUT: &str = "rows are made from it, but of ";

/// What the condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// By name.
    pub set: String,
    /// Versions that keep a row of another set, with that set.
    pub others: BTreeMap<String, String>,
}

impl InForce {
    /// `None` if nobody has written it, as in a manifest, or if whoever wrote the rows last does not know of it.
    pub fn of(object: &FeatureGate) -> Option<InForce> {
        let conditions = &object.status.conditions;
        let condition = find_condition(conditions, FEATURE_SET_IN_FORCE)?;
        // Every controller brings this one up to date with the rows.
        let last = find_condition(conditions, crate::sync::DETERMINATION_DEGRADED);
        let is_last = last.is_none_or(|last| last.observed_generation == condition.observed_generation);
        let others = condition.message.strip_prefix(BUT).unwrap_or_default().split(", ");
        let other = |text: &str| {
            let (version, set) = text.strip_suffix(')')?.rsplit_once(" (")?;
            Some((version.to_owned(), set.to_owned()))
        };
        is_last.then(|| InForce { set: condition.reason.clone(), others: others.filter_map(other).collect() })
    }

    /// Rows of these versions could not be made: each stays with the set it is of.
    pub(crate) fn new(set: Set, kept: &[String], before: Option<&InForce>) -> InForce {
        let was = |version: &String| before.map_or(UNKNOWN, |before| before.set_of(version)).to_owned();
        let others = kept.iter().map(|version| (version.clone(), was(version)));
        InForce { set: set.name().to_owned(), others: others.filter(|(_, was)| was != set.name()).collect() }
    }

    pub(crate) fn to_condition(&self) -> Condition {
        let others: Vec<String> = self.others.iter().map(|(version, set)| format!("{version} ({set})")).collect();
        let message = if others.is_empty() { ALL.to_owned() } else { format!("{BUT}{}", others.join(", ")) };
        Condition::new(FEATURE_SET_IN_FORCE, true, &self.set, message)
    }

    fn set_of(&self, version: &str) -> &str {
        self.others.get(version).unwrap_or(&self.set)
    }
}

impl FeatureGate {
    /// The set that the row of a version is made from, as `spec.featureSet` would have it; [`UNKNOWN`] if it cannot be told.
    pub fn set_of_row(&self, version: &str) -> String {
        self.told(|in_force| in_force.set_of(version).to_owned())
    }

    /// The set that rows are made from, but those that could not be made.
    pub fn set_in_force(&self) -> String {
        self.told(|in_force| in_force.set.clone())
    }

    fn told(&self, set: impl Fn(&InForce) -> String) -> String {
        match InForce::of(self).map(|in_force| set(&in_force)) {
            Some(name) => name.parse::<Set>().map_or(name, |set| set.wire().to_owned()),
            None => self.spec.feature_set.clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(shown: &str, condition: Option<Condition>, seen: [i64; 2]) -> FeatureGate {
        let mut object: FeatureGate = serde_json::from_value(json!({"spec": {"featureSet": shown}})).unwrap();
        let degraded = Condition::new(crate::sync::DETERMINATION_DEGRADED, false, "AsExpected", "");
        for (condition, seen) in [Some(degraded), condition].into_iter().flatten().zip(seen) {
            object.status.conditions.push(Condition { observed_generation: Some(seen), ..condition });
        }
        object
    }

    #[test]
    fn what_was_written_is_read() {
        let first = InForce::new(Set::Default, &[], None);
        assert_eq!(InForce::of(&object("", Some(first.to_condition()), [1, 1])), Some(first.clone()));
        let kept = ["1.3.0".to_owned(), "a (b".to_owned()];
        let then = InForce::new(Set::TechPreview, &kept, Some(&first));
        let shown = object("", Some(then.to_condition()), [2, 2]);
        assert_eq!(InForce::of(&shown), Some(then.clone()));
        let sets = ["1.4.0", "1.3.0", "a (b"].map(|version| shown.set_of_row(version));
        assert_eq!(
            (sets, shown.set_in_force().as_str()),
            (["TechPreviewNoUpgrade", "", ""].map(str::to_owned), "TechPreviewNoUpgrade")
        );
        // Back in the set of the row that was kept, it is no other any more; and what nobody knows stays unknown.
        assert_eq!(InForce::new(Set::Default, &kept, Some(&then)).others.len(), 0);
        let late = InForce::new(Set::Okd, &kept[..1], None);
        assert_eq!(InForce::new(Set::Okd, &kept[..1], Some(&late)).others["1.3.0"], UNKNOWN);
    }

    #[test]
    fn without_the_condition_what_is_shown_counts() {
        assert_eq!(object("OKD", None, [1, 1]).set_of_row("1.4.0"), "OKD");
        let old = InForce::new(Set::Default, &[], None).to_condition();
        assert_eq!(
            object("OKD", Some(old.clone()), [2, 1]).set_of_row("1.4.0"),
            "OKD",
            "an older controller wrote since"
        );
        assert_eq!(object("OKD", Some(old), [1, 1]).set_of_row("1.4.0"), "", "the rows have not followed yet");
    }
}
