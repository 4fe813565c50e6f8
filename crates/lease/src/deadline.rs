//! A queue of ids by time, for which moving an id later costs nothing.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

/// Ids by the time they are due.
///
/// The queue may hold an id at an earlier time than its real one (it was renewed) or an id that is gone. The
/// owner is asked for the real time when the id comes up, so a renewal touches only the lease.
#[derive(Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(Duration, i64)>>,
}

impl Deadlines {
    pub(crate) fn push(&mut self, at: Duration, id: i64) {
        self.heap.push(Reverse((at, id)));
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }

    /// Takes the ids due at `now`, at most `limit`. `real` tells when an id is really due, or `None` if never.
    pub(crate) fn take(&mut self, now: Duration, limit: usize, real: impl Fn(i64) -> Option<Duration>) -> Vec<i64> {
        let mut due = Vec::new();
        while due.len() < limit {
            match self.heap.peek() {
                Some(Reverse((at, _))) if *at <= now => {}
                _ => break,
            }
            let Some(Reverse((_, id))) = self.heap.pop() else { break };
            match real(id) {
                Some(at) if at <= now => due.push(id),
                Some(at) => self.heap.push(Reverse((at, id))),
                None => {}
            }
        }
        due
    }
}
