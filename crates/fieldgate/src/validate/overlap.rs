//! One field, one gate.

use std::collections::BTreeMap;

use crate::{FieldError, Path, stanza::Stanza};

/// A path that was seen before, with the gate it is under.
type Seen<'a> = (&'a Path, usize);

/// Every path that is there twice, or can name a field that another gate has as well.
pub(super) fn check(stanza: &Stanza) -> Vec<FieldError> {
    // By length, since only paths of one length can name one field.
    let mut seen: BTreeMap<usize, Vec<Seen<'_>>> = BTreeMap::new();
    let mut errors = Vec::new();
    for (index, located) in stanza.gates.iter().enumerate() {
        for (path, at) in located.gate.field_paths.iter().zip(&located.paths_at) {
            let others = seen.entry(path.steps().len()).or_default();
            errors.extend(clash(path, index, others, stanza, at));
            others.push((path, index));
        }
    }
    errors
}

fn clash(path: &Path, index: usize, others: &[Seen<'_>], stanza: &Stanza, at: &str) -> Option<FieldError> {
    if others.contains(&(path, index)) {
        return Some(FieldError::duplicate(at, path.to_string()));
    }
    let (other, owner) = others.iter().find(|(other, owner)| *owner != index && other.can_equal(path))?;
    let name = &stanza.gates[*owner].gate.name;
    let detail = if path == *other {
        format!("is under feature gate {name:?} already; a field can be under one gate only")
    } else {
        format!("can name the same field as {other} of feature gate {name:?}; a field can be under one gate only")
    };
    Some(FieldError::invalid(at, path.to_string(), detail))
}
