//! What a CRD may declare: the rules that refuse, and the cases that are only warned about.

mod caution;
mod cel;
mod foreign;
mod gate;
mod overlap;
mod path;
mod ratchet;

use serde_json::Value;

use crate::{FieldError, stanza::Stanza};

/// The most gates of one CRD, and the most paths of one gate: the work of a write has a bound.
pub const GATES_MAX: usize = 64;
pub const PATHS_MAX: usize = 32;
/// The longest name of a gate and text of a warning, in bytes.
pub const NAME_BYTES_MAX: usize = 63;
pub const WARNING_BYTES_MAX: usize = 256;

static NULL: Value = Value::Null;

/// Gates, and the resource they are declared for.
#[derive(Debug, Clone)]
pub struct Declaration<'a> {
    /// The value of `customFeatureGates`.
    pub stanza: &'a Value,
    /// The field it stands at, for errors.
    pub at: &'a str,
    /// The schema of the storage version (`openAPIV3Schema`).
    pub schema: &'a Value,
    /// `subresources.scale` of the storage version, or null.
    pub scale: &'a Value,
}

impl<'a> Declaration<'a> {
    /// What the `spec` of a CRD declares.
    pub fn of_crd(spec: &'a Value) -> Declaration<'a> {
        let versions = spec.get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let storage = versions.iter().find(|version| version.get("storage") == Some(&Value::Bool(true)));
        let of_storage = |pointer: &str| storage.and_then(|version| version.pointer(pointer)).unwrap_or(&NULL);
        Declaration {
            stanza: spec.get("customFeatureGates").unwrap_or(&NULL),
            at: "spec.customFeatureGates",
            schema: of_storage("/schema/openAPIV3Schema"),
            scale: of_storage("/subresources/scale"),
        }
    }
}

/// What is said to a declaration: it is refused if there are errors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    pub errors: Vec<FieldError>,
    pub warnings: Vec<String>,
}

/// Judges the gates of the `spec` of a CRD that is created, or updated from `old`.
pub fn validate_crd(spec: &Value, old: Option<&Value>) -> Verdict {
    let new = Declaration::of_crd(spec);
    let mut verdict = validate(&new, old.map(Declaration::of_crd).as_ref());
    verdict.warnings.extend(foreign::cautions(spec, &new));
    verdict
}

/// Judges a declaration that is new, or takes the place of `old`; what was wrong in `old` already is not told again.
pub fn validate(new: &Declaration<'_>, old: Option<&Declaration<'_>>) -> Verdict {
    let mut errors = faults(new);
    if let Some(old) = old {
        ratchet::drop_known(&mut errors, new, old);
    }
    Verdict { errors, warnings: caution::cautions(new, old) }
}

fn faults(declaration: &Declaration<'_>) -> Vec<FieldError> {
    let (stanza, mut errors) = Stanza::read(declaration.stanza, declaration.at);
    errors.extend(gate::check_counts(declaration));
    errors.extend(gate::check_component(&stanza, declaration.at));
    errors.extend(gate::check_names_unique(&stanza));
    for located in &stanza.gates {
        errors.extend(gate::check(located));
        errors.extend(path::check(located, declaration.schema));
    }
    errors.extend(overlap::check(&stanza));
    errors
}
