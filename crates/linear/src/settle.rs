//! What can be said of operations whose outcome nobody learned, before any order is searched for.
//!
//! Every value is written by one operation only. So a value that was seen was written, before the first who saw it was
//! answered; and a write of a value that nobody ever saw can be left out, as its effect ends unnoticed at the next write.
//! (Deletions are seen as an absence, which may have other reasons: they stay open.)

use std::collections::BTreeMap;

use crate::{Effect, Operation, Value};

/// The operations that matter, in the order of their calls.
pub(crate) fn settle(operations: &[Operation]) -> Vec<Operation> {
    let seen = first_seen(operations);
    let mut settled: Vec<Operation> = operations.iter().filter_map(|o| settle_one(o, &seen)).collect();
    settled.sort_by_key(|o| o.call);
    settled
}

fn settle_one(operation: &Operation, seen: &BTreeMap<Value, u64>) -> Option<Operation> {
    if operation.answer.is_some() {
        return Some(*operation);
    }
    match operation.effect {
        Effect::Read => None,
        Effect::Write(None) => Some(*operation),
        Effect::Write(Some(value)) => Some(Operation { answer: Some(*seen.get(&value)?), ..*operation }),
        Effect::Swap { expected, new } => {
            Some(Operation { answer: Some(*seen.get(&new)?), seen: Some(expected), ..*operation })
        }
    }
}

/// When the first operation that saw a value had ended, at the latest.
fn first_seen(operations: &[Operation]) -> BTreeMap<Value, u64> {
    let silent_swaps: BTreeMap<Value, Value> = operations.iter().filter_map(silent_swap).collect();
    let mut first = BTreeMap::new();
    for operation in operations {
        let (Some(Some(value)), Some(end)) = (operation.seen, operation.answer) else { continue };
        // A swap whose value was seen took place, and has in turn seen what it expected.
        let mut value = Some(value);
        while let Some(seen) = value.filter(|value| first.get(value).is_none_or(|known| end < *known)) {
            first.insert(seen, end);
            value = silent_swaps.get(&seen).copied();
        }
    }
    first
}

/// What a swap writes that did not tell what it saw, and what it replaces.
fn silent_swap(operation: &Operation) -> Option<(Value, Value)> {
    match (operation.seen, operation.effect) {
        (None, Effect::Swap { expected: Some(expected), new }) => Some((new, expected)),
        _ => None,
    }
}
