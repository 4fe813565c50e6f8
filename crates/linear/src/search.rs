//! Wing and Gong's search for an order, with Lowe's memory of what was tried.
#![expect(clippy::disallowed_types, reason = "a set of states that is asked for membership, never iterated")]

use std::collections::HashSet;

use crate::{Effect, Operation, Value};

/// Whether the operations, sorted by their calls, have an order that explains what they saw.
pub(crate) fn has_order(operations: &[Operation]) -> bool {
    let mut search = Search::new(operations);
    while search.at != 0 {
        let (operation, is_call) = search.events[search.at];
        // An answer whose operation has found no place: the order so far leads nowhere.
        let goes_on = if is_call { search.try_next(operation) } else { search.go_back() };
        if !goes_on {
            return false;
        }
    }
    true
}

/// What the key holds after the operation, unless what it saw contradicts.
pub(crate) fn step(state: Option<Value>, operation: &Operation) -> Option<Option<Value>> {
    if operation.seen.is_some_and(|seen| seen != state) {
        return None;
    }
    Some(match operation.effect {
        Effect::Read => state,
        Effect::Write(value) => value,
        Effect::Swap { expected, new } if expected == state => Some(new),
        Effect::Swap { .. } => state,
    })
}

/// An order in the making. Calls and answers are a list, by time, from which operations are lifted when they are put
/// next in the order, and put back when that led nowhere.
struct Search<'a> {
    operations: &'a [Operation],
    /// Operation and whether this is its call. 0 is the head.
    events: Vec<(usize, bool)>,
    next: Vec<usize>,
    previous: Vec<usize>,
    /// Where the answer of an operation is in the list.
    answers: Vec<usize>,
    /// The event that is looked at.
    at: usize,
    state: Option<Value>,
    done: Done,
    tried: HashSet<(Vec<u64>, Option<Value>)>,
    /// Calls in the order found so far, and the state before each.
    path: Vec<(usize, Option<Value>)>,
}

impl<'a> Search<'a> {
    fn new(operations: &'a [Operation]) -> Search<'a> {
        let mut order: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * operations.len());
        for (i, o) in operations.iter().enumerate() {
            order.push((o.call, false, i));
            order.push((o.answer.unwrap_or(u64::MAX), true, i));
        }
        order.sort_unstable();
        let mut events = vec![(usize::MAX, false)];
        let mut answers = vec![0; operations.len()];
        for (_, is_answer, i) in order {
            if is_answer {
                answers[i] = events.len();
            }
            events.push((i, !is_answer));
        }
        let n = events.len();
        let next: Vec<usize> = (1..=n).map(|i| i % n).collect();
        let previous = (0..n).map(|i| (i + n - 1) % n).collect();
        let (at, done) = (next[0], Done::new(operations.len()));
        let (state, tried, path) = Default::default();
        Search { operations, events, next, previous, answers, at, state, done, tried, path }
    }

    /// Puts the operation next if the state allows it and this was not tried; else looks at the next event.
    fn try_next(&mut self, operation: usize) -> bool {
        if let Some(after) = step(self.state, &self.operations[operation]) {
            self.done.set(operation);
            if self.tried.insert((self.done.key(), after)) {
                self.path.push((self.at, self.state));
                self.state = after;
                self.lift(self.at);
                self.at = self.next[0];
                return true;
            }
            self.done.clear(operation);
        }
        self.at = self.next[self.at];
        true
    }

    /// Takes back what was put last. False if there is nothing to take back.
    fn go_back(&mut self) -> bool {
        let Some((call, before)) = self.path.pop() else { return false };
        self.state = before;
        self.done.clear(self.events[call].0);
        self.put_back(call);
        self.at = self.next[call];
        true
    }

    fn lift(&mut self, call: usize) {
        for at in [call, self.answers[self.events[call].0]] {
            let (before, after) = (self.previous[at], self.next[at]);
            self.next[before] = after;
            self.previous[after] = before;
        }
    }

    fn put_back(&mut self, call: usize) {
        for at in [self.answers[self.events[call].0], call] {
            let (before, after) = (self.previous[at], self.next[at]);
            self.next[before] = at;
            self.previous[after] = at;
        }
    }
}

/// The operations that have a place, as bits.
struct Done {
    words: Vec<u64>,
    /// No word before this has a clear bit.
    first: usize,
    /// No word from this on has a set bit.
    end: usize,
}

impl Done {
    fn new(operations: usize) -> Done {
        Done { words: vec![0; operations / 64 + 1], first: 0, end: 0 }
    }

    fn set(&mut self, n: usize) {
        self.words[n / 64] |= 1 << (n % 64);
        self.end = self.end.max(n / 64 + 1);
        while self.words.get(self.first) == Some(&u64::MAX) {
            self.first += 1;
        }
    }

    fn clear(&mut self, n: usize) {
        self.words[n / 64] &= !(1 << (n % 64));
        self.first = self.first.min(n / 64);
        while self.end > 0 && self.words[self.end - 1] == 0 {
            self.end -= 1;
        }
    }

    /// Short, as only few operations are under way at a time: where the first gap is, and what is done after it.
    fn key(&self) -> Vec<u64> {
        let rest = self.words.get(self.first..self.end).unwrap_or_default();
        [&[self.first as u64], rest].concat()
    }
}
