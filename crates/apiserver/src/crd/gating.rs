//! Gates of a definition, made ready for one of its versions.

use fieldgate::{Gate, Gates, Gating, Path};
use serde_json::Value;

use super::storage_version;

/// What gates make of the schema of a version.
pub(super) struct Gated {
    /// For pruning, defaulting and validation: without defaults that a gate keeps out.
    pub schema: Value,
    /// For people and clients: with the state of each gate at its fields, and as `schema` without defaults that are not filled in.
    pub published: Value,
    pub gating: Option<Gating>,
    /// Each field behind a gate that is off, alone; for definitions with a webhook.
    pub held: Vec<Gating>,
}

/// Where versions are converted by name alone, gates of the storage version hold for every version in which they resolve. With a
/// webhook only the storage version has their names, and defaults of others cannot be told to be theirs.
pub(super) fn of(gates: &Gates, definition: &Value, version: &Value, schema: &Value) -> Gated {
    let (mut effective, mut published) = (schema.clone(), schema.clone());
    if gates.gates.is_empty() {
        return Gated { schema: effective, published, gating: None, held: Vec::new() };
    }
    let stored = storage_version(definition).map_or(&Value::Null, |version| &version["schema"]["openAPIV3Schema"]);
    let gating = Gating::new(gates, stored);
    let webhook = definition["spec"]["conversion"]["strategy"] == "Webhook";
    gates.publish(&mut published, definition["spec"]["group"].as_str().unwrap_or_default());
    if !webhook || version["storage"] == true {
        gating.strip_defaults(&mut effective);
        gating.strip_defaults(&mut published);
    }
    let held = if webhook { held(gates, stored) } else { Vec::new() };
    Gated { schema: effective, published, gating: Some(gating), held }
}

fn held(gates: &Gates, schema: &Value) -> Vec<Gating> {
    let off = gates.gates.iter().filter(|gate| !gate.is_on());
    let paths = off.flat_map(|gate| gate.field_paths.iter().map(move |path| (gate, path)));
    let alone = |(gate, path): (&Gate, &Path)| {
        let gate = Gate { field_paths: vec![path.clone()], ..gate.clone() };
        Gating::new(&Gates { component: None, gates: vec![gate] }, schema)
    };
    paths.map(alone).collect()
}
