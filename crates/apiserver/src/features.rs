//! Features of the API server itself.

use featuregate::{Feature, Level, Registry, SetErrors, beta, v};

pub(crate) const CRD_FIELD_LEVEL_VERSIONING: &str = "CRDFieldLevelVersioning";

static FEATURES: &[Feature] = &[Feature {
    name: CRD_FIELD_LEVEL_VERSIONING,
    level: Level::Server,
    owner: "apiserver",
    writes: "",
    reason: "Gates on fields of custom resources (spec.customFeatureGates of their definitions).",
    specs: &[beta(v(3, 8))],
}];

/// Whether gates on fields are heeded, from the text of `--feature-gates`.
pub(crate) fn field_gates(flag: &str) -> Result<bool, SetErrors> {
    let registry = Registry::new(FEATURES).expect("the table of features is sound, as the test below sees");
    Ok(registry.parse(Level::Server, v(3, 8), flag)?.gates.enabled(CRD_FIELD_LEVEL_VERSIONING))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_gates_are_on_unless_switched_off() {
        assert!(field_gates("").unwrap());
        assert!(!field_gates("CRDFieldLevelVersioning=false").unwrap());
        assert!(field_gates("NoSuch=true").is_err());
    }
}
