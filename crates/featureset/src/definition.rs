//! Definitions of custom resources whose field gates follow feature sets: what they say, and who owns it.
//!
//! The controller owns `enabled` of gates that carry a name of the row, by server-side apply under a manager of its own. What
//! it owns is read from `metadata.managedFields`, so nothing has to be remembered.

use std::collections::{BTreeMap, BTreeSet};

use fieldgate::Gates;
pub use fieldgate::{Gate, PreRelease};
use serde_json::{Value, json};

use crate::resolve::Row;

/// On definitions that follow.
pub const ANNOTATION: &str = "gates.lockgate.io/follow";
/// The one value of [`ANNOTATION`].
pub const FEATURE_SETS: &str = "feature-sets";
/// The field manager of the controller.
pub const MANAGER: &str = "lockgate-gates";
pub const KIND: &str = "CustomResourceDefinition";
pub const PLURAL: &str = "customresourcedefinitions";
pub const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// Whether a definition follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    No,
    FeatureSets,
    /// Meant to follow something that nobody knows.
    Unknown(String),
}

pub fn name_of(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().unwrap_or_default()
}

pub fn follow(definition: &Value) -> Follow {
    match &definition["metadata"]["annotations"][ANNOTATION] {
        Value::Null => Follow::No,
        Value::String(value) if value == FEATURE_SETS => Follow::FeatureSets,
        Value::String(value) => Follow::Unknown(value.clone()),
        other => Follow::Unknown(other.to_string()),
    }
}

/// Whether the controller has to look at it: it follows, or something of it is owned from earlier. Metadata suffice.
pub fn concerns(definition: &Value) -> bool {
    follow(definition) != Follow::No || managers(definition).any(is_ours)
}

pub fn gates(definition: &Value) -> Vec<Gate> {
    Gates::parse_lenient(&definition["spec"]["customFeatureGates"]).gates
}

/// The gates that the row knows, with what it says of them. Stable ones are on whatever is set, so they are left out.
pub fn wanted(definition: &Value, row: &Row) -> BTreeMap<String, bool> {
    let free = gates(definition).into_iter().filter(|gate| gate.pre_release != PreRelease::Stable);
    free.filter_map(|gate| row.get(&gate.name).map(|on| (gate.name, on))).collect()
}

/// The gates of which the controller owns something.
pub fn owned(definition: &Value) -> BTreeSet<String> {
    managers(definition).filter(|entry| is_ours(entry)).flat_map(|entry| claims(entry).map(|(name, _)| name)).collect()
}

/// Everyone else who owns `enabled` of the gate.
pub fn other_owners(definition: &Value, gate: &str) -> BTreeSet<String> {
    let has = |entry: &&Value| claims(entry).any(|(name, claim)| name == gate && claim.get("f:enabled").is_some());
    let others = managers(definition).filter(|entry| !is_ours(entry)).filter(has);
    others.map(|entry| entry["manager"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Gates whose `enabled` is not what it should be.
pub fn differing(definition: &Value, wanted: &BTreeMap<String, bool>) -> BTreeSet<String> {
    let now: BTreeMap<String, Option<bool>> =
        gates(definition).into_iter().map(|gate| (gate.name, gate.enabled)).collect();
    let differs = |(name, on): &(&String, &bool)| now.get(*name) != Some(&Some(**on));
    wanted.iter().filter(differs).map(|(name, _)| name.clone()).collect()
}

/// Whether all is as wanted, and the controller owns that and nothing else.
pub fn is_settled(definition: &Value, wanted: &BTreeMap<String, bool>) -> bool {
    owned(definition).iter().eq(wanted.keys()) && differing(definition, wanted).is_empty()
}

/// What to apply. It names the very object it was made for: one that has moved on, or is gone, is not written.
pub fn config(definition: &Value, wanted: &BTreeMap<String, bool>) -> Value {
    let metadata = &definition["metadata"];
    let mut config = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": metadata["name"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
    });
    if !wanted.is_empty() {
        let gates: Vec<Value> = wanted.iter().map(|(name, on)| json!({"name": name, "enabled": on})).collect();
        config["spec"] = json!({"customFeatureGates": {"featureGates": gates}});
    }
    config
}

fn managers(definition: &Value) -> impl Iterator<Item = &Value> {
    definition["metadata"]["managedFields"].as_array().into_iter().flatten()
}

fn is_ours(entry: &Value) -> bool {
    entry["manager"] == MANAGER
        && entry["operation"] == "Apply"
        && entry["subresource"].as_str().unwrap_or("").is_empty()
}

/// What a manager owns of each gate: items of the list are named by their keys, as `k:{"name":"A"}`.
fn claims(entry: &Value) -> impl Iterator<Item = (String, &Value)> {
    let items = entry["fieldsV1"]["f:spec"]["f:customFeatureGates"]["f:featureGates"].as_object();
    items.into_iter().flatten().filter_map(|(key, claim)| {
        let key: Value = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
        Some((key["name"].as_str()?.to_owned(), claim))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Value {
        let claim = |manager: &str, operation: &str, gates: Value| {
            let fields = json!({"f:spec": {"f:customFeatureGates": {"f:featureGates": gates}}});
            json!({"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields})
        };
        json!({
            "metadata": {
                "name": "x.g.io", "uid": "u", "resourceVersion": "7", "annotations": {ANNOTATION: FEATURE_SETS},
                "managedFields": [
                    claim(MANAGER, "Apply", json!({"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:enabled": {}}})),
                    claim("kubectl", "Update", json!({
                        "k:{\"name\":\"A\"}": {".": {}, "f:name": {}},
                        "k:{\"name\":\"B\"}": {".": {}, "f:name": {}, "f:enabled": {}}, "k:no": {}, ".": {},
                    })),
                ],
            },
            "spec": {"customFeatureGates": {"featureGates": [
                {"name": "A", "preRelease": "alpha", "enabled": true, "fieldPaths": [".spec.a"]},
                {"name": "B", "preRelease": "beta", "enabled": false, "fieldPaths": [".spec.b"]},
                {"name": "S", "preRelease": "stable", "fieldPaths": [".spec.s"]},
                {"name": "Strange", "preRelease": "alpha", "fieldPaths": [".spec.t"]},
            ]}},
        })
    }

    #[test]
    fn owners_are_read_from_the_object() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        let definition = definition();
        assert_eq!(owned(&definition), set(&["A"]));
        assert_eq!(other_owners(&definition, "A"), set(&[]));
        assert_eq!(other_owners(&definition, "B"), set(&["kubectl"]));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let row = Row { version: "1".to_owned(), enabled: names(&["A", "B", "Z"]), disabled: names(&["S"]) };
        let wanted = wanted(&definition, &row);
        assert_eq!(wanted, [("A".to_owned(), true), ("B".to_owned(), true)].into());
        assert_eq!((differing(&definition, &wanted), is_settled(&definition, &wanted)), (set(&["B"]), false));
        assert!(is_settled(&definition, &[("A".to_owned(), true)].into()));
        let config = config(&definition, &wanted);
        assert_eq!(config["spec"]["customFeatureGates"]["featureGates"][1], json!({"name": "B", "enabled": true}));
        assert_eq!(config["metadata"], json!({"name": "x.g.io", "uid": "u", "resourceVersion": "7"}));
    }

    #[test]
    fn nobody_panics_on_what_is_no_definition() {
        for odd in [
            json!(null),
            json!([1]),
            json!({"metadata": {"annotations": 3, "managedFields": [4, {"manager": MANAGER}]}}),
        ] {
            assert!(owned(&odd).is_empty() && gates(&odd).is_empty() && !concerns(&odd));
            assert_eq!(follow(&odd), Follow::No);
        }
        let odd = json!({"metadata": {"annotations": {ANNOTATION: true}}});
        assert_eq!(follow(&odd), Follow::Unknown("true".to_owned()));
    }
}
