//! Memory and runs as one sequence of keys.

use std::{
    collections::{BTreeMap, btree_map},
    io,
    iter::Peekable,
    ops::Bound,
};

use super::run::{Run, Walk};

/// A key, and its value unless it was deleted.
pub(super) type Record<const N: usize> = (Vec<u8>, Option<[u8; N]>);

type Memory<const N: usize> = BTreeMap<Box<[u8]>, Option<[u8; N]>>;
type InMemory<'a, const N: usize> = btree_map::Range<'a, Box<[u8]>, Option<[u8; N]>>;

/// Each key once, in order, as the newest source has it.
pub(super) struct Merge<'a, const N: usize> {
    memory: Peekable<InMemory<'a, N>>,
    /// The oldest first.
    walks: Vec<Walk<'a, N>>,
}

impl<'a, const N: usize> Merge<'a, N> {
    /// From a key on.
    pub(super) fn begin(memory: &'a Memory<N>, runs: &'a [Run<N>], from: &[u8]) -> io::Result<Self> {
        let memory = memory.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).peekable();
        let walks = runs.iter().map(|run| run.walk(from)).collect::<io::Result<_>>()?;
        Ok(Merge { memory, walks })
    }

    /// Reads on; not an iterator, as it may fail.
    pub(super) fn next(&mut self) -> io::Result<Option<Record<N>>> {
        let in_memory = self.memory.peek().map(|(key, _)| &key[..]);
        let in_runs = self.walks.iter().filter_map(|walk| walk.head()).map(|(key, _)| &key[..]);
        let Some(smallest) = in_runs.chain(in_memory).min() else { return Ok(None) };
        let mut newest = self.memory.next_if(|(key, _)| ***key == *smallest).map(|(key, value)| (key.to_vec(), *value));
        let smallest = smallest.to_vec();
        for walk in self.walks.iter_mut().rev() {
            if walk.head().is_some_and(|(key, _)| *key == smallest) {
                let record = walk.advance()?;
                newest = newest.or(record);
            }
        }
        Ok(newest)
    }
}
