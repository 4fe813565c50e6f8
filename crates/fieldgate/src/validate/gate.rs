//! Rules of a gate that need no schema.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Declaration, GATES_MAX, NAME_BYTES_MAX, PATHS_MAX, WARNING_BYTES_MAX};
use crate::{
    FieldError, PreRelease,
    stanza::{Located, Stanza},
};

/// Counts what was written, also what could not be read.
pub(super) fn check_counts(declaration: &Declaration<'_>) -> Vec<FieldError> {
    let at = format!("{}.featureGates", declaration.at);
    let Some(gates) = declaration.stanza.get("featureGates").and_then(Value::as_array) else { return Vec::new() };
    let mut errors = Vec::new();
    if gates.len() > GATES_MAX {
        errors.push(FieldError::too_many(&at, gates.len(), GATES_MAX));
    }
    for (i, gate) in gates.iter().enumerate() {
        let paths = gate.get("fieldPaths").and_then(Value::as_array).map_or(0, Vec::len);
        if paths > PATHS_MAX {
            errors.push(FieldError::too_many(format!("{at}[{i}].fieldPaths"), paths, PATHS_MAX));
        }
    }
    errors
}

pub(super) fn check_component(stanza: &Stanza, at: &str) -> Option<FieldError> {
    let empty = stanza.component.as_deref() == Some("");
    let detail = "must not be empty; leave it out to publish under the group of the CRD";
    empty.then(|| FieldError::invalid(format!("{at}.component"), "", detail))
}

pub(super) fn check_names_unique(stanza: &Stanza) -> Vec<FieldError> {
    let mut seen = BTreeSet::new();
    let again = stanza.gates.iter().filter(|located| !seen.insert(&located.gate.name));
    again.map(|located| FieldError::duplicate(format!("{}.name", located.at), located.gate.name.as_str())).collect()
}

pub(super) fn check(located: &Located) -> Vec<FieldError> {
    [check_name(located), check_default(located), check_warning(located)].into_iter().flatten().collect()
}

fn check_name(located: &Located) -> Option<FieldError> {
    let (name, at) = (located.gate.name.as_str(), format!("{}.name", located.at));
    if name.len() > NAME_BYTES_MAX {
        return Some(FieldError::too_long(at, NAME_BYTES_MAX));
    }
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(|c| c.is_ascii_alphanumeric());
    let detail = "must be letters and digits and begin with a letter, such as FastReplicas";
    (!plain).then(|| FieldError::invalid(at, name, detail))
}

fn check_default(located: &Located) -> Option<FieldError> {
    let at = format!("{}.default", located.at);
    match (located.gate.pre_release, located.gate.default) {
        (PreRelease::Alpha, Some(true)) => {
            Some(FieldError::invalid(at, true, "must be false or left out for alpha; to turn the gate on set enabled"))
        }
        (PreRelease::Stable, Some(false)) => {
            Some(FieldError::invalid(at, false, "must be true or left out for stable, which is always on"))
        }
        (PreRelease::Deprecated, None) => {
            Some(FieldError::required(at, "must say whether a deprecated gate is on: true or false"))
        }
        _ => None,
    }
}

fn check_warning(located: &Located) -> Option<FieldError> {
    let at = format!("{}.fieldDeprecationWarning", located.at);
    let text = located.gate.field_deprecation_warning.as_deref()?;
    if located.gate.pre_release != PreRelease::Deprecated {
        return Some(FieldError::forbidden(at, "may only be set when preRelease is deprecated"));
    }
    if text.is_empty() {
        return Some(FieldError::invalid(at, text, "must not be empty; leave it out for the default text"));
    }
    if text.len() > WARNING_BYTES_MAX {
        return Some(FieldError::too_long(at, WARNING_BYTES_MAX));
    }
    let (index, _) = text.char_indices().find(|(_, c)| !is_printable(*c))?;
    let detail = format!("must only contain printable characters; found another one at byte {index}");
    Some(FieldError::invalid(at, text, detail))
}

/// The text becomes a header: no control characters, and of all white space only the plain one.
fn is_printable(c: char) -> bool {
    let invisible = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || invisible)
}
