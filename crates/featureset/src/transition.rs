//! Which feature set may follow which. The texts are those of the rules in the CRD, so that clients see one text.

use crate::{object::FeatureGateSpec, set::Set};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    #[error(".spec.featureSet cannot be removed")]
    Removed,
    #[error("{0} may not be changed")]
    OneWay(Set),
    #[error("OKD cannot transition to Default")]
    OkdToDefault,
}

/// Judges `spec.featureSet`; `None` is a field that is absent, which means Default but is not the same as "".
pub fn check_transition(old: Option<Set>, new: Option<Set>) -> Result<(), TransitionError> {
    match (old, new) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(TransitionError::Removed),
        (Some(old), Some(new)) if old.is_one_way() && old != new => Err(TransitionError::OneWay(old)),
        (Some(Set::Okd), Some(Set::Default)) => Err(TransitionError::OkdToDefault),
        (Some(_), Some(_)) => Ok(()),
    }
}

/// What the admission policies refuse besides: custom lists without the custom set, a name in both lists.
pub fn check_lists(spec: &FeatureGateSpec) -> Result<(), ListsError> {
    let Some(custom) = &spec.custom_no_upgrade else { return Ok(()) };
    let set = spec.feature_set.as_deref().unwrap_or_default();
    if set != Set::Custom.wire() {
        return Err(ListsError::WithoutCustom);
    }
    match custom.enabled.iter().find(|name| custom.disabled.contains(name)) {
        Some(_) => Err(ListsError::Both),
        None => Ok(()),
    }
}

/// The texts are those of the admission policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListsError {
    #[error("spec.customNoUpgrade is allowed only with featureSet CustomNoUpgrade")]
    WithoutCustom,
    #[error("spec.customNoUpgrade.enabled and spec.customNoUpgrade.disabled must not have a gate in common")]
    Both,
}
