//! Gates as a CRD declares them, and whether they are on.

use std::fmt;

use serde_json::{Value, json};

use crate::Path;

/// The stage of a gate, the field `preRelease` of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreRelease {
    /// `alpha`: off unless set. May not be on by `default`, only by `enabled`.
    Alpha,
    /// `beta`: on unless set.
    Beta,
    /// `stable`: always on, whatever is set.
    Stable,
    /// `deprecated`: off unless set; the declaration must set `default`. Users of a gated field are
    /// warned while it is on.
    Deprecated,
}

impl PreRelease {
    /// All stages, sorted by name as Kubernetes lists supported values in an error.
    pub const ALL: [PreRelease; 4] = [PreRelease::Alpha, PreRelease::Beta, PreRelease::Deprecated, PreRelease::Stable];

    /// The word for the stage in a declaration, such as `alpha`.
    pub fn as_str(self) -> &'static str {
        match self {
            PreRelease::Alpha => "alpha",
            PreRelease::Beta => "beta",
            PreRelease::Stable => "stable",
            PreRelease::Deprecated => "deprecated",
        }
    }

    /// Returns the stage with this exact word, or `None` if there is none.
    pub fn from_name(name: &str) -> Option<PreRelease> {
        PreRelease::ALL.into_iter().find(|stage| stage.as_str() == name)
    }
}

impl fmt::Display for PreRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One item of `spec.customFeatureGates.featureGates` of a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// The gate's name, unique in its CRD: ASCII letters and digits, with a letter first.
    pub name: String,
    /// The stage of the gate.
    pub pre_release: PreRelease,
    /// The administrator's choice. Has precedence over `default`; a stable gate ignores both.
    pub enabled: Option<bool>,
    /// The author's choice. `None` leaves it to the stage.
    pub default: Option<bool>,
    /// The fields that the gate guards, in the order of the declaration. Not empty in a valid
    /// declaration.
    pub field_paths: Vec<Path>,
    /// The warning for users of a deprecated field. `None` for a default text that names path and
    /// gate.
    pub field_deprecation_warning: Option<String>,
}

impl Gate {
    /// Whether the gate is on: always for a stable gate, else by `enabled`, then `default`, then
    /// true for beta only.
    pub fn is_on(&self) -> bool {
        match self.pre_release {
            PreRelease::Stable => true,
            stage => self.enabled.or(self.default).unwrap_or(stage == PreRelease::Beta),
        }
    }
}

/// The declaration `spec.customFeatureGates` of a CRD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gates {
    /// The name under which the gates are published. `None` for the CRD's group.
    pub component: Option<String>,
    /// The declared gates, in the order of the declaration.
    pub gates: Vec<Gate>,
}

impl Gates {
    /// The value for `status.customFeatureGates` of the CRD: name, stage and state of every gate.
    pub fn status(&self) -> Value {
        let row = |gate: &Gate| {
            let stage = gate.pre_release.as_str();
            json!({ "name": gate.name, "preRelease": stage, "enabled": gate.is_on() })
        };
        json!({ "featureGates": self.gates.iter().map(row).collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::{PreRelease::*, *};

    #[test_case(Stable, Some(false), Some(false) => true; "stable is on whatever is set")]
    #[test_case(Stable, None, None => true; "stable")]
    #[test_case(Alpha, Some(true), Some(false) => true; "enabled wins over default")]
    #[test_case(Beta, Some(false), Some(true) => false; "also when it says off")]
    #[test_case(Deprecated, Some(true), Some(false) => true; "also for deprecated")]
    #[test_case(Alpha, None, Some(true) => true; "default on")]
    #[test_case(Beta, None, Some(false) => false; "default off")]
    #[test_case(Deprecated, None, Some(true) => true; "deprecated by default on")]
    #[test_case(Beta, None, None => true; "beta is on")]
    #[test_case(Alpha, None, None => false; "alpha is off")]
    #[test_case(Deprecated, None, None => false; "deprecated is off")]
    fn on_or_off(pre_release: PreRelease, enabled: Option<bool>, default: Option<bool>) -> bool {
        let gate = Gate {
            name: "X".to_owned(),
            pre_release,
            enabled,
            default,
            field_paths: Vec::new(),
            field_deprecation_warning: None,
        };
        gate.is_on()
    }
}
