//! Checks whether a history of operations on keys is linearizable.
//!
//! A key holds one value or is absent. Every [`Operation`] has a time of call and of response, the
//! change that it makes to the key and, if the response reported it, the value that the key had
//! just before. An operation whose outcome is unknown may have taken place at any time after its
//! call, or never.
#![warn(missing_docs)]

mod search;
mod settle;

use std::{collections::BTreeMap, fmt};

/// A value of a key. Each write of a history must write a value that no other write uses.
pub type Value = u64;

/// The change that an operation makes to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Leaves the key as it is.
    Read,
    /// Sets the key to the value; `None` deletes the key.
    Write(Option<Value>),
    /// Compare-and-swap: writes `new` if the key holds exactly `expected`, and changes nothing
    /// otherwise.
    Swap {
        /// The value that the key must hold; `None` if the key must be absent.
        expected: Option<Value>,
        /// The value that the key holds after a successful swap.
        new: Value,
    },
}

/// One operation on one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Number of the client that sent the operation. Appears in reports only: the check ignores it.
    pub client: usize,
    /// The change that the operation makes if it takes place.
    pub effect: Effect,
    /// The value of the key just before the operation, if the response reported it. The inner
    /// `None` means that the key was absent.
    pub seen: Option<Option<Value>>,
    /// Time of the call. Any clock will do, as long as all operations of a history use the same
    /// one.
    pub call: u64,
    /// Time of the response, by the same clock as `call`. `None` if the outcome is unknown.
    pub answer: Option<u64>,
}

/// Whether an order of the operations on one key, each between its call and its response, explains
/// all values that they saw.
pub fn is_linearizable(operations: &[Operation]) -> bool {
    search::has_order(&settle::settle(operations))
}

/// The operations on all keys, grouped by key. Each key is checked separately.
#[derive(Debug, Default, Clone)]
pub struct History<K: Ord> {
    keys: BTreeMap<K, Vec<Operation>>,
}

impl<K: Ord + Clone> History<K> {
    /// Adds one operation on `key`. Operations may be added in any order.
    pub fn push(&mut self, key: K, operation: Operation) {
        self.keys.entry(key).or_default().push(operation);
    }

    /// Checks every key. The error holds the first key, in key order, whose operations no order
    /// explains.
    pub fn check(&self) -> Result<(), NotLinearizable<K>> {
        for (key, operations) in &self.keys {
            if !is_linearizable(operations) {
                return Err(NotLinearizable { key: key.clone(), operations: until_unexplained(operations) });
            }
        }
        Ok(())
    }
}

/// The most operations of a failed history that its error message prints: the last ones.
const SHOWN: usize = 40;

/// A key, and its operations up to the first response that no order explains.
#[derive(Debug, Clone)]
pub struct NotLinearizable<K> {
    /// The first key, in key order, that is not linearizable.
    pub key: K,
    /// The operations that had begun by the time of the first unexplained response, sorted by
    /// response time, or by call time where there is no response. A response that came later is
    /// replaced with an unknown outcome.
    pub operations: Vec<Operation>,
}

impl<K: fmt::Debug> fmt::Display for NotLinearizable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no order explains what clients saw of key {:?}; the last answer is the one too many:", self.key)?;
        for o in self.operations.iter().skip(self.operations.len().saturating_sub(SHOWN)) {
            let answer = o.answer.map_or("?".into(), |a| a.to_string());
            writeln!(f, "  client {} {}..{answer} {:?} saw {:?}", o.client, o.call, o.effect, o.seen)?;
        }
        Ok(())
    }
}

impl<K: fmt::Debug> std::error::Error for NotLinearizable<K> {}

/// The history up to the first response that no order explains.
fn until_unexplained(operations: &[Operation]) -> Vec<Operation> {
    let mut answers: Vec<_> = operations.iter().filter_map(|o| o.answer).collect();
    answers.sort_unstable();
    // A history that has an order at one time has one at every earlier time.
    let explained = answers.partition_point(|end| is_linearizable(&until(operations, *end)));
    let mut cut = until(operations, answers.get(explained).copied().unwrap_or(u64::MAX));
    cut.sort_by_key(|o| o.answer.unwrap_or(o.call));
    cut
}

/// The history as it was known at the time `end`: later responses are unknown, later calls absent.
fn until(operations: &[Operation], end: u64) -> Vec<Operation> {
    let cut = |o: &Operation| match o.answer {
        Some(answer) if answer > end => Operation { answer: None, seen: None, ..*o },
        _ => *o,
    };
    operations.iter().filter(|o| o.call <= end).map(cut).collect()
}

#[cfg(test)]
mod tests;
