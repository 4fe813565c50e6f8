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

/// The most gates of one CRD. The limits bound the work of a write.
pub const GATES_MAX: usize = 64;
/// The most paths of one gate.
pub const PATHS_MAX: usize = 32;
/// The longest name of a gate, in bytes.
pub const NAME_BYTES_MAX: usize = 63;
/// The longest `fieldDeprecationWarning`, in bytes.
pub const WARNING_BYTES_MAX: usize = 256;

static NULL: Value = Value::Null;

/// A declaration of gates, and the parts of the CRD that it refers to.
#[derive(Debug, Clone)]
pub struct Declaration<'a> {
    /// The value of `customFeatureGates`, or null if the CRD has none.
    pub stanza: &'a Value,
    /// Path of that value in the object, for errors.
    pub at: &'a str,
    /// The schema of the storage version (`openAPIV3Schema`), or null.
    pub schema: &'a Value,
    /// The value of `subresources.scale` of the storage version, or null.
    pub scale: &'a Value,
}

impl<'a> Declaration<'a> {
    /// Returns the declaration in the `spec` of a CRD.
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

/// The result of a validation. A declaration with errors must be rejected.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// All errors, except those that the previous declaration had as well.
    pub errors: Vec<FieldError>,
    /// Texts for HTTP `Warning` headers about declarations that are valid but probably unintended.
    pub warnings: Vec<String>,
}

/// Validates the gates in the `spec` of a CRD that is created, or updated from `old`.
pub fn validate_crd(spec: &Value, old: Option<&Value>) -> Verdict {
    let new = Declaration::of_crd(spec);
    let mut verdict = validate(&new, old.map(Declaration::of_crd).as_ref());
    verdict.warnings.extend(foreign::cautions(spec, &new));
    verdict
}

/// Validates a declaration that is new or replaces `old`. Errors that `old` has as well are not
/// reported again.
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
