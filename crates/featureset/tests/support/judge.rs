//! What the API makes of a write beside a spec that does not fit the definition, as far as the controller meets it.

use featureset::{Choice, object::FeatureGateSpec, sync::Part};
use serde_json::Value;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judge {
    /// The definition takes anything.
    #[default]
    Loose,
    /// It does not, but lets be what was wrong before, unless rules have to be asked about it: Kubernetes from 1.30 on, and ours.
    Ratcheting,
    /// Everything is judged at every write.
    Exact,
}

impl Judge {
    pub fn refuses(self, part: Part, there: &FeatureGateSpec) -> bool {
        let bad = Choice::of_spec(there).is_err() || there.missing;
        match (self, part) {
            (Judge::Loose, _) => false,
            (Judge::Ratcheting, Part::Status) => there.missing || has_another_type(there),
            (Judge::Exact, Part::Status) => bad,
            (_, Part::Spec) => has_another_type(there),
        }
    }
}

fn has_another_type(spec: &FeatureGateSpec) -> bool {
    let found = Value::from(spec.clone());
    !found.is_object() || found.get("featureSet").is_some_and(|set| !set.is_string())
}
