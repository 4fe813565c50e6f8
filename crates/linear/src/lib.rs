//! Is a history linearizable? Operations with times in, a verdict out; knows nothing of clusters.
//!
//! A key holds one value or none. Every operation says what it does to the key and, if its answer told, what the key
//! held just before. An operation whose outcome is unknown may have happened at any time after its call, or never.

mod search;
mod settle;

use std::{collections::BTreeMap, fmt};

/// A value; each write of a history must bring another one.
pub type Value = u64;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Read,
    /// `None` deletes.
    Write(Option<Value>),
    /// Writes if the key holds exactly that.
    Swap {
        expected: Option<Value>,
        new: Value,
    },
}

/// One operation on one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub client: usize,
    pub effect: Effect,
    /// What the key held just before, if the answer told.
    pub seen: Option<Option<Value>>,
    /// When it began, by any clock, the same for all.
    pub call: u64,
    /// `None` if the outcome is unknown.
    pub answer: Option<u64>,
}

/// Whether some order of the operations, each between its call and its answer, explains what they saw.
pub fn is_linearizable(operations: &[Operation]) -> bool {
    search::has_order(&settle::settle(operations))
}

/// Operations by key.
#[derive(Debug, Default, Clone)]
pub struct History<K: Ord> {
    keys: BTreeMap<K, Vec<Operation>>,
}

impl<K: Ord + Clone> History<K> {
    pub fn push(&mut self, key: K, operation: Operation) {
        self.keys.entry(key).or_default().push(operation);
    }

    /// The first key whose operations have no order that explains their answers.
    pub fn check(&self) -> Result<(), NotLinearizable<K>> {
        for (key, operations) in &self.keys {
            if !is_linearizable(operations) {
                return Err(NotLinearizable { key: key.clone(), operations: until_unexplained(operations) });
            }
        }
        Ok(())
    }
}

/// Operations of a failed history that are printed.
const SHOWN: usize = 40;

/// A key and what was done to it up to the first answer that cannot be explained.
#[derive(Debug, Clone)]
pub struct NotLinearizable<K> {
    pub key: K,
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

/// The history up to the first answer that cannot be explained, which is its last.
fn until_unexplained(operations: &[Operation]) -> Vec<Operation> {
    let mut answers: Vec<_> = operations.iter().filter_map(|o| o.answer).collect();
    answers.sort_unstable();
    // What is explained at a time was explained at any time before.
    let explained = answers.partition_point(|end| is_linearizable(&until(operations, *end)));
    let mut cut = until(operations, answers.get(explained).copied().unwrap_or(u64::MAX));
    cut.sort_by_key(|o| o.answer.unwrap_or(o.call));
    cut
}

/// What was known of the history at that time.
fn until(operations: &[Operation], end: u64) -> Vec<Operation> {
    let cut = |o: &Operation| match o.answer {
        Some(answer) if answer > end => Operation { answer: None, seen: None, ..*o },
        _ => *o,
    };
    operations.iter().filter(|o| o.call <= end).map(cut).collect()
}

#[cfg(test)]
mod tests;
