//! Gates of a definition, made ready for one of its versions.

use fieldgate::{Gates, Gating};
use serde_json::Value;

use super::storage_version;

/// What gates make of the schema of a version.
pub struct Gated {
    /// For pruning, defaulting and validation: without defaults that a gate keeps out.
    pub schema: Value,
    /// For people: with the state of each gate at its fields.
    pub published: Value,
    pub gating: Option<Gating>,
}

/// Versions are converted by name alone, so gates of the storage version hold for every version in which they resolve.
pub fn of(gates: &Gates, definition: &Value, schema: &Value) -> Gated {
    let (mut effective, mut published) = (schema.clone(), schema.clone());
    if gates.gates.is_empty() {
        return Gated { schema: effective, published, gating: None };
    }
    let stored = storage_version(definition).map_or(&Value::Null, |version| &version["schema"]["openAPIV3Schema"]);
    let gating = Gating::new(gates, stored);
    gating.strip_defaults(&mut effective);
    gates.publish(&mut published, definition["spec"]["group"].as_str().unwrap_or_default());
    Gated { schema: effective, published, gating: Some(gating) }
}
