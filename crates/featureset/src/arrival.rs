//! Whether the controller of a version has arrived: only then may the rest of the cluster follow, and only then can the way be done.

use crate::{
    object::{ClusterOperator, FeatureGate, find_condition},
    sync::{DETERMINATION_DEGRADED, ROWS},
};

/// What shows it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    pub version: &'a str,
    pub feature_gate: Option<&'a FeatureGate>,
    /// Whom the controller reports as, by name, and what it has reported.
    pub operator: &'a str,
    pub reported: Option<&'a ClusterOperator>,
}

impl Arrival<'_> {
    /// Nothing if the controller has arrived: its row is written, of the set that is in force, and it has said so.
    pub fn missing(&self) -> Vec<String> {
        self.row().into_iter().chain(self.report()).collect()
    }

    /// What the controller in charge says of it.
    pub fn why(&self) -> String {
        let Some(gate) = self.feature_gate else { return "does a controller run?".to_owned() };
        let why = find_condition(&gate.status.conditions, DETERMINATION_DEGRADED).filter(|why| why.is_true());
        why.map_or("nothing is said to be wrong: does the controller of this version run?".to_owned(), |why| {
            why.message.clone()
        })
    }

    fn row(&self) -> Option<String> {
        let version = self.version;
        let Some(gate) = self.feature_gate else { return Some("there is no FeatureGate cluster".to_owned()) };
        if gate.row(version).is_none() {
            let rows = gate.versions().join(", ");
            let rows = if rows.is_empty() { "none at all".to_owned() } else { format!("rows of {rows}") };
            return Some(format!("FeatureGate cluster has no row of {version}, but {rows}"));
        }
        let (of, in_force) = (named(gate.set_of_row(version)), named(gate.set_in_force()));
        (of != in_force).then(|| format!("the row of {version} is made from {of}, and {in_force} is in force"))
    }

    fn report(&self) -> Option<String> {
        let operator = self.operator;
        let Some(reported) = self.reported else { return Some(format!("there is no ClusterOperator {operator}")) };
        match reported.version(ROWS) {
            Some(version) if version == self.version => None,
            Some(version) => Some(format!("ClusterOperator {operator} reports {version}")),
            None => Some(format!("ClusterOperator {operator} reports no version")),
        }
    }
}

/// As people have it.
fn named(set: String) -> String {
    if set.is_empty() { "Default".to_owned() } else { set }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gate(versions: &[&str], conditions: serde_json::Value) -> FeatureGate {
        let rows: Vec<_> =
            versions.iter().map(|version| json!({"version": version, "enabled": [], "disabled": []})).collect();
        let object = json!({"metadata": {"name": "cluster"}, "spec": {},
                            "status": {"featureGates": rows, "conditions": conditions}});
        serde_json::from_value(object).unwrap()
    }

    fn operator(version: Option<&str>) -> ClusterOperator {
        let mut operator = ClusterOperator::new("o");
        version.iter().for_each(|version| operator.set_version(ROWS, version));
        operator
    }

    #[track_caller]
    fn check(gate: Option<&FeatureGate>, operator: Option<&ClusterOperator>, want: &[&str]) {
        let arrival = Arrival { version: "1.5.0", feature_gate: gate, operator: "o", reported: operator };
        assert_eq!(arrival.missing(), want);
    }

    #[test]
    fn what_is_missing_is_named() {
        let (old, new) = (gate(&["1.4.0", "1.3.0"], json!([])), gate(&["1.5.0", "1.4.0"], json!([])));
        check(Some(&new), Some(&operator(Some("1.5.0"))), &[]);
        check(Some(&new), Some(&operator(Some("1.4.0"))), &["ClusterOperator o reports 1.4.0"]);
        check(Some(&new), Some(&operator(None)), &["ClusterOperator o reports no version"]);
        check(None, None, &["there is no FeatureGate cluster", "there is no ClusterOperator o"]);
        let no_row = "FeatureGate cluster has no row of 1.5.0, but rows of 1.4.0, 1.3.0";
        check(Some(&old), Some(&operator(Some("1.5.0"))), &[no_row]);
        let none = "FeatureGate cluster has no row of 1.5.0, but none at all";
        check(Some(&gate(&[], json!([]))), Some(&operator(Some("1.5.0"))), &[none]);
    }

    #[test]
    fn a_row_of_another_set_is_not_in_force() {
        let of = |message| {
            json!([{"type": "FeatureSetInForce", "status": "True", "reason": "OKD", "lastTransitionTime": "t",
                    "message": message}])
        };
        let (kept, all) = ("rows are made from it, but of 1.5.0 (Default)", "all rows are made from it");
        let other = "the row of 1.5.0 is made from Default, and OKD is in force";
        check(Some(&gate(&["1.5.0"], of(kept))), Some(&operator(Some("1.5.0"))), &[other]);
        check(Some(&gate(&["1.5.0"], of(all))), Some(&operator(Some("1.5.0"))), &[]);
    }
}
