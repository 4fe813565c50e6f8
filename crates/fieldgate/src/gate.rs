//! Gates as a CRD declares them, and whether they are on.

use std::fmt;

use serde_json::{Value, json};

use crate::Path;

/// The stage of a gate, by the words of `preRelease`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreRelease {
    Alpha,
    Beta,
    Stable,
    Deprecated,
}

impl PreRelease {
    pub const ALL: [PreRelease; 4] = [PreRelease::Alpha, PreRelease::Beta, PreRelease::Deprecated, PreRelease::Stable];

    pub fn as_str(self) -> &'static str {
        match self {
            PreRelease::Alpha => "alpha",
            PreRelease::Beta => "beta",
            PreRelease::Stable => "stable",
            PreRelease::Deprecated => "deprecated",
        }
    }

    pub fn from_name(name: &str) -> Option<PreRelease> {
        PreRelease::ALL.into_iter().find(|stage| stage.as_str() == name)
    }
}

impl fmt::Display for PreRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of `spec.customFeatureGates.featureGates`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    pub name: String,
    pub pre_release: PreRelease,
    pub enabled: Option<bool>,
    pub default: Option<bool>,
    pub field_paths: Vec<Path>,
    /// What users of a deprecated field are told; a text that names path and gate unless given.
    pub field_deprecation_warning: Option<String>,
}

impl Gate {
    /// On or off, by the first rule that fits.
    pub fn is_on(&self) -> bool {
        match self.pre_release {
            PreRelease::Stable => true,
            stage => self.enabled.or(self.default).unwrap_or(stage == PreRelease::Beta),
        }
    }
}

/// `spec.customFeatureGates` of a CRD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gates {
    /// Who is named as the source of the gates when they are published; the CRD's group unless given.
    pub component: Option<String>,
    pub gates: Vec<Gate>,
}

impl Gates {
    /// The state of every gate, for `status.customFeatureGates` of the CRD.
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
