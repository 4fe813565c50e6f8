//! The write step: what a write may not change stays as it is stored.

use serde_json::{Map, Value};

use crate::{
    Gating, Part, Warning, list,
    tree::{Field, Here},
};

/// A create or update of an object. All values are in the storage version and pruned.
#[derive(Debug)]
pub struct Write<'a> {
    /// The stored object without defaulting, or `None` for a create.
    pub stored: Option<&'a Value>,
    /// The object as the caller would have read it just before: the stored one with defaults, or
    /// for a create the result of defaulting alone. Only warnings depend on it.
    pub read: Option<&'a Value>,
    /// The object as the caller sent it, before mutating admission. `None` if admission changed
    /// nothing. Only warnings depend on it.
    pub sent: Option<&'a Value>,
    /// The part of the object that the request writes.
    pub part: Part,
}

/// The result of [`Gating::write`].
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The object to validate and to store.
    pub value: Value,
    /// Warnings for the caller, sorted by path, without duplicates.
    pub warnings: Vec<Warning>,
    /// Whether `value` differs from the object that was passed in.
    pub changed: bool,
}

impl Gating {
    /// Applies the gates to `new`, the object after mutating admission and defaulting, and returns
    /// it with the warnings for the caller.
    pub fn write(&self, write: &Write<'_>, mut new: Value) -> Written {
        let warnings = self.warnings(write, &new);
        let changed = self.apply(write.stored, &mut new);
        Written { value: new, warnings, changed }
    }

    /// Sets every frozen field of `new` to its stored value, or removes it if none is stored.
    /// Returns whether that changed `new`.
    ///
    /// Parents of frozen fields are never created or repaired. Without `stored` all frozen fields
    /// are removed.
    pub fn apply(&self, stored: Option<&Value>, new: &mut Value) -> bool {
        !self.is_idle() && freeze(&Here::root(self), stored, new, Absent::Remove)
    }

    /// Gives `new` every frozen field that `from` has, and leaves the others as they are: what somebody wished for, on top of
    /// what it gets.
    pub fn lay_over(&self, from: &Value, new: &mut Value) {
        freeze(&Here::root(self), Some(from), new, Absent::Keep);
    }
}

/// What becomes of a frozen field that is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    Remove,
    Keep,
}

/// Invariant: `here` is not frozen itself; topmost frozen places are found on the way down.
pub(crate) fn freeze(here: &Here<'_>, stored: Option<&Value>, new: &mut Value, absent: Absent) -> bool {
    match new {
        Value::Object(new) => freeze_object(here, stored.and_then(Value::as_object), new, absent),
        Value::Array(new) => {
            freeze_list(here, stored.and_then(Value::as_array).map_or(&[], Vec::as_slice), new, absent)
        }
        _ => false,
    }
}

fn freeze_object(
    here: &Here<'_>,
    stored: Option<&Map<String, Value>>,
    new: &mut Map<String, Value>,
    absent: Absent,
) -> bool {
    let mut changed = false;
    for Field { name, place: next, .. } in here.fields() {
        let before = stored.and_then(|fields| fields.get(name));
        if next.off().is_some() {
            changed |= put_back(name, before, new, absent);
        } else if let Some(value) = new.get_mut(name) {
            changed |= freeze(&next, before, value, absent);
        }
    }
    let next = here.entries();
    if next.is_empty() {
        return changed;
    }
    // A path never ends with [*], so entries are not frozen as such.
    for (key, value) in new.iter_mut().filter(|(key, _)| !here.has_name(key)) {
        changed |= freeze(&next, stored.and_then(|fields| fields.get(key)), value, absent);
    }
    changed
}

fn put_back(name: &str, before: Option<&Value>, new: &mut Map<String, Value>, absent: Absent) -> bool {
    match before {
        None if absent == Absent::Keep => false,
        None => new.remove(name).is_some(),
        Some(before) if new.get(name) == Some(before) => false,
        Some(before) => {
            new.insert(name.to_owned(), before.clone());
            true
        }
    }
}

fn freeze_list(here: &Here<'_>, stored: &[Value], new: &mut [Value], absent: Absent) -> bool {
    let Some((keys, next)) = here.items() else { return false };
    let pairs = list::pair(keys, new, stored);
    let mut changed = false;
    for (item, mate) in new.iter_mut().zip(pairs).filter(|(item, _)| item.is_object()) {
        changed |= freeze(&next, mate.map(|index| &stored[index]), item, absent);
    }
    changed
}
