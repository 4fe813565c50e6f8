//! `spec` of the FeatureGate. A definition that somebody has loosened lets anything in: what is no spec is kept as it is and told as
//! such, so that the rest of the object can be read, and its rows be put right.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Extra, null_is_empty};
use crate::set::Set;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Value", into = "Value")]
pub struct FeatureGateSpec {
    /// Absent and "" both mean Default, and are not the same for the rules of transition.
    pub feature_set: Option<String>,
    pub custom_no_upgrade: Option<CustomLists>,
    pub extra: Extra,
    pub unreadable: Option<Unreadable>,
    /// The object has none at all, which means the same as an empty one, and is not the same for the API: it must have one.
    pub missing: bool,
}

/// What is there in place of a spec, and why it is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Unreadable {
    pub found: Value,
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CustomLists {
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub enabled: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// As it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    feature_set: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    custom_no_upgrade: Option<CustomLists>,
    #[serde(flatten)]
    extra: Extra,
}

impl From<Value> for FeatureGateSpec {
    fn from(found: Value) -> FeatureGateSpec {
        match Written::deserialize(&found) {
            Ok(Written { feature_set, custom_no_upgrade, extra }) => {
                FeatureGateSpec { feature_set, custom_no_upgrade, extra, ..FeatureGateSpec::default() }
            }
            Err(error) => {
                let unreadable = Some(Unreadable { found, why: error.to_string() });
                FeatureGateSpec { unreadable, ..FeatureGateSpec::default() }
            }
        }
    }
}

impl From<FeatureGateSpec> for Value {
    fn from(spec: FeatureGateSpec) -> Value {
        let FeatureGateSpec { feature_set, custom_no_upgrade, extra, unreadable, missing: _ } = spec;
        match unreadable {
            Some(unreadable) => unreadable.found,
            // Texts, lists and what was JSON before: there is nothing in it that JSON cannot say.
            None => serde_json::to_value(Written { feature_set, custom_no_upgrade, extra }).unwrap_or_default(),
        }
    }
}

impl FeatureGateSpec {
    pub(crate) fn missing() -> FeatureGateSpec {
        FeatureGateSpec { missing: true, ..FeatureGateSpec::default() }
    }

    pub fn of_set(set: Set) -> FeatureGateSpec {
        let feature_set = (set != Set::Default).then(|| set.wire().to_owned());
        FeatureGateSpec { feature_set, ..FeatureGateSpec::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_what_was_read() {
        for spec in [
            json!({}),
            json!({"featureSet": "OKD", "later": 1}),
            json!({"featureSet": ["x"], "a": 1}),
            json!("x"),
            json!({"customNoUpgrade": {"enabled": "A"}}),
        ] {
            let read: FeatureGateSpec = serde_json::from_value(spec.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), spec);
        }
    }

    #[test]
    fn what_is_no_spec_says_why() {
        let why = |spec: Value| FeatureGateSpec::from(spec).unreadable.map(|unreadable| unreadable.why);
        assert_eq!(why(json!({"featureSet": null, "customNoUpgrade": {"enabled": null}})), None);
        assert_eq!(why(json!({"featureSet": 3})).as_deref(), Some("invalid type: integer `3`, expected a string"));
        assert!(why(json!([1])).is_some() && why(json!("x")).is_some());
    }
}
