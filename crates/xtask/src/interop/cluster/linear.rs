//! Is a history of one key linearizable? Knows nothing of clusters: operations with times in, a verdict out.
//!
//! The search is that of Wing and Gong with Lowe's memory of visited states. Every value is written by one operation
//! only, which decides about outcomes that nobody learned (`Outcome::Unknown`): a value that was seen was written,
//! before the first who saw it was answered; a write whose value nobody ever saw can be left out, as its effect ends
//! unnoticed at the next write.

use std::collections::{BTreeMap, BTreeSet};

/// A value of the register; 0 is "not there".
pub type Value = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Read,
    Write(Value),
    /// Sets the second if the first is there, else reads.
    Swap(Value, Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A write was done, a swap took place.
    Done,
    /// What a read found, or a swap that did not take place.
    Found(Value),
    /// No answer, or one that leaves open whether it was done.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub action: Action,
    pub outcome: Outcome,
    /// Any clock, the same for all.
    pub invoked: u64,
    pub returned: u64,
}

/// `Err` with the operations around the point beyond which no order explains what clients saw.
pub fn check(operations: &[Operation]) -> Result<(), Vec<Operation>> {
    let settled = settle(operations);
    search(&settled).map_err(|stuck| around(&settled, stuck))
}

/// Leaves only operations whose effect is certain.
fn settle(operations: &[Operation]) -> Vec<Operation> {
    let seen = first_seen(operations);
    let mut settled: Vec<Operation> = Vec::new();
    for operation in operations {
        match (operation.outcome, operation.action) {
            (Outcome::Unknown, Action::Write(value) | Action::Swap(_, value)) => {
                if let Some(returned) = seen.get(&value) {
                    settled.push(Operation { outcome: Outcome::Done, returned: *returned, ..*operation });
                }
            }
            (Outcome::Unknown, Action::Read) => {}
            _ => settled.push(*operation),
        }
    }
    settled.sort_by_key(|operation| operation.invoked);
    settled
}

/// When the first client that saw a value was answered.
fn first_seen(operations: &[Operation]) -> BTreeMap<Value, u64> {
    let mut seen = BTreeMap::new();
    for operation in operations {
        let value = match (operation.outcome, operation.action) {
            (Outcome::Found(value), _) | (Outcome::Done, Action::Swap(value, _)) => value,
            _ => continue,
        };
        let first = seen.entry(value).or_insert(operation.returned);
        *first = operation.returned.min(*first);
    }
    seen
}

/// One step of the search: which operation was put next, and the state before it.
struct Step {
    operation: usize,
    before: Value,
    /// Where to go on if it has to be taken back.
    next: usize,
}

/// `Err`: the largest number of operations that could be ordered.
fn search(operations: &[Operation]) -> Result<(), usize> {
    let mut done = Bits::new(operations.len());
    let mut visited: BTreeSet<(Vec<u64>, Value)> = BTreeSet::new();
    let mut steps: Vec<Step> = Vec::new();
    let (mut state, mut from, mut most) = (0, 0, 0);
    while steps.len() < operations.len() {
        let found = candidate(operations, &mut done, &mut visited, state, from);
        if let Some((operation, after)) = found {
            steps.push(Step { operation, before: state, next: operation + 1 });
            (state, from) = (after, 0);
            most = most.max(steps.len());
            continue;
        }
        let Some(step) = steps.pop() else { return Err(most) };
        done.clear(step.operation);
        (state, from) = (step.before, step.next);
    }
    Ok(())
}

/// The first operation from `from` on that may come next: not done, invoked before any other open one returned, and in
/// agreement with the state; marks it as done.
fn candidate(
    operations: &[Operation],
    done: &mut Bits,
    visited: &mut BTreeSet<(Vec<u64>, Value)>,
    state: Value,
    from: usize,
) -> Option<(usize, Value)> {
    let mut deadline = u64::MAX;
    for (n, operation) in operations.iter().enumerate().skip(done.first_clear()) {
        if operation.invoked > deadline {
            break;
        }
        if done.get(n) {
            continue;
        }
        deadline = deadline.min(operation.returned);
        if n < from {
            continue;
        }
        if let Some(after) = step(operation, state) {
            done.set(n);
            if visited.insert((done.key(), after)) {
                return Some((n, after));
            }
            done.clear(n);
        }
    }
    None
}

/// The state after the operation, unless what the client saw contradicts it.
fn step(operation: &Operation, state: Value) -> Option<Value> {
    match (operation.action, operation.outcome) {
        (Action::Read, Outcome::Found(value)) => (value == state).then_some(state),
        (Action::Write(value), Outcome::Done) => Some(value),
        (Action::Swap(old, new), Outcome::Done) => (old == state).then_some(new),
        (Action::Swap(old, _), Outcome::Found(value)) => (value == state && value != old).then_some(state),
        _ => None,
    }
}

/// Those done, as bits: all before `base` are.
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    fn new(length: usize) -> Bits {
        Bits { words: vec![0; length / 64 + 1] }
    }

    fn get(&self, n: usize) -> bool {
        self.words[n / 64] >> (n % 64) & 1 == 1
    }

    fn set(&mut self, n: usize) {
        self.words[n / 64] |= 1 << (n % 64);
    }

    fn clear(&mut self, n: usize) {
        self.words[n / 64] &= !(1 << (n % 64));
    }

    fn first_clear(&self) -> usize {
        let word = self.words.iter().position(|word| *word != u64::MAX).unwrap_or(self.words.len());
        word * 64 + self.words.get(word).map_or(0, |word| word.trailing_ones() as usize)
    }

    /// Short, as only few operations are under way at a time: where the first gap is, and what is done after it.
    fn key(&self) -> Vec<u64> {
        let first = self.first_clear() / 64;
        let last = self.words.iter().rposition(|word| *word != 0).unwrap_or(first);
        let rest = self.words.get(first..=last.max(first)).unwrap_or_default();
        [&[first as u64], rest].concat()
    }
}

fn around(operations: &[Operation], stuck: usize) -> Vec<Operation> {
    operations[stuck.saturating_sub(8)..operations.len().min(stuck + 8)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(action: Action, outcome: Outcome, invoked: u64, returned: u64) -> Operation {
        Operation { action, outcome, invoked, returned }
    }

    fn write(value: Value, invoked: u64, returned: u64) -> Operation {
        op(Action::Write(value), Outcome::Done, invoked, returned)
    }

    fn read(value: Value, invoked: u64, returned: u64) -> Operation {
        op(Action::Read, Outcome::Found(value), invoked, returned)
    }

    #[test]
    fn one_after_the_other_and_side_by_side() {
        assert!(check(&[]).is_ok());
        assert!(check(&[read(0, 0, 1), write(1, 2, 3), read(1, 4, 5)]).is_ok());
        // Both writes and both reads overlap; the reads agree on an order.
        assert!(check(&[write(1, 0, 10), write(2, 0, 10), read(2, 1, 3), read(1, 4, 6)]).is_ok());
    }

    #[test]
    fn a_stale_read_is_found() {
        assert!(check(&[write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]).is_err());
        assert!(check(&[write(1, 0, 10), write(2, 0, 10), read(2, 1, 3), read(1, 4, 6), read(2, 7, 8)]).is_err());
        assert!(check(&[write(1, 0, 1), read(0, 2, 3)]).is_err());
    }

    #[test]
    fn a_value_from_nowhere_is_found() {
        assert!(check(&[write(1, 0, 1), read(7, 2, 3)]).is_err());
    }

    #[test]
    fn swaps_take_place_once() {
        let swap = |old, new, outcome| op(Action::Swap(old, new), outcome, 2, 5);
        assert!(check(&[write(1, 0, 1), swap(1, 2, Outcome::Done), swap(1, 3, Outcome::Found(2))]).is_ok());
        assert!(check(&[write(1, 0, 1), swap(1, 2, Outcome::Done), swap(1, 3, Outcome::Done)]).is_err());
        assert!(check(&[write(1, 0, 1), swap(1, 2, Outcome::Found(1))]).is_err());
    }

    #[test]
    fn what_nobody_learned_may_be_or_not() {
        let lost = op(Action::Write(2), Outcome::Unknown, 2, 3);
        assert!(check(&[write(1, 0, 1), lost, read(1, 4, 5)]).is_ok());
        // It may also come late, but having been seen it stays.
        assert!(check(&[write(1, 0, 1), lost, read(1, 4, 5), read(2, 6, 7)]).is_ok());
        assert!(check(&[write(1, 0, 1), lost, read(2, 4, 5), read(1, 6, 7)]).is_err());
        let swap = op(Action::Swap(9, 2), Outcome::Unknown, 2, 3);
        assert!(check(&[write(1, 0, 1), swap, read(2, 6, 7)]).is_err(), "9 was never there");
    }

    #[test]
    fn long_histories_take_no_time() {
        let mut operations = Vec::new();
        for n in 0..5000 {
            let (value, at) = (n + 1, n * 10);
            operations.push(write(value, at, at + 9));
            operations.extend((0..4).map(|k| read(value, at + k, at + 9)));
        }
        assert!(check(&operations).is_ok());
        operations.push(read(4999, 60_000, 60_001));
        assert!(check(&operations).is_err());
    }
}
