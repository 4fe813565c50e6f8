//! Validation by the API when the stored spec does not fit the definition, as far as the controller meets it.

use featureset::{Choice, object::FeatureGateSpec, sync::Part};
use serde_json::Value;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// The definition accepts anything.
    #[default]
    Loose,
    /// Errors in unchanged values are ignored unless a rule has to read them, as in Kubernetes 1.30 and in Lockgate.
    Ratcheting,
    /// Every write is validated as a whole.
    Exact,
}

impl Validation {
    pub fn refuses(self, part: Part, there: &FeatureGateSpec) -> bool {
        let bad = Choice::of_spec(there).is_err() || there.missing;
        match (self, part) {
            (Validation::Loose, _) => false,
            (Validation::Ratcheting, Part::Status) => there.missing || has_another_type(there),
            (Validation::Exact, Part::Status) => bad,
            (_, Part::Spec) => has_another_type(there),
        }
    }
}

fn has_another_type(spec: &FeatureGateSpec) -> bool {
    let found = Value::from(spec.clone());
    !found.is_object() || found.get("featureSet").is_some_and(|set| !set.is_string())
}
