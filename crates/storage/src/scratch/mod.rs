//! An ordered map for work that must not take memory for all its keys: the newest changes are in memory, the others in
//! runs, which are sorted files that have no name and go with the map.
//!
//! Invariants:
//! - What a key is, the newest source says: memory, then the runs from the last to the first.
//! - A run holds each key once, in order. The first run holds no deletions: there is nothing below it.
//! - After a failed read or write the map is as if empty, and the backend that it belongs to has failed: nothing that was
//!   made of its answers becomes durable.

mod merge;
mod run;

use std::{cell::Cell, collections::BTreeMap, io, path::PathBuf, sync::Arc};

use bytes::Bytes;

use self::{
    merge::Merge,
    run::{Run, RunWriter},
};
use crate::backend::{Failure, Fuse};

/// Runs that are searched one after the other; with one more they become one.
const RUNS_MAX: usize = 8;
/// About what an entry in memory takes besides its key and value.
const ENTRY_BYTES: usize = 64;

/// Keys in order, with values of `N` bytes. See [`crate::Backend::scratch`].
pub struct Scratch<const N: usize> {
    /// `None` for deleted ones that a run may hold.
    memory: BTreeMap<Box<[u8]>, Option<[u8; N]>>,
    memory_bytes: usize,
    bytes_max: usize,
    /// The oldest first.
    runs: Vec<Run<N>>,
    /// Runs are made beside this file.
    path: PathBuf,
    fuse: Arc<Fuse>,
    failed: Cell<bool>,
}

impl<const N: usize> Scratch<N> {
    pub(crate) fn new(path: PathBuf, bytes_max: usize, fuse: Arc<Fuse>) -> Self {
        let (memory, runs) = (BTreeMap::new(), Vec::new());
        Scratch { memory, memory_bytes: 0, bytes_max, runs, path, fuse, failed: Cell::new(false) }
    }

    pub fn put(&mut self, key: &[u8], value: [u8; N]) {
        self.change(key, Some(value));
    }

    pub fn delete(&mut self, key: &[u8]) {
        if self.runs.is_empty() {
            if let Some((key, _)) = self.memory.remove_entry(key) {
                self.memory_bytes -= cost::<N>(&key);
            }
        } else {
            self.change(key, None);
        }
    }

    pub fn get(&self, key: &[u8]) -> Option<[u8; N]> {
        if let Some(value) = self.memory.get(key) {
            return *value;
        }
        let found = self.runs.iter().rev().find_map(|run| run.get(key).transpose());
        self.checked(found.transpose()).flatten().flatten()
    }

    /// Keys from `from` on, in order, while `inside`: at most `keys_max`, and not many more bytes of them than `bytes_max`.
    /// Gives none only at the end.
    pub fn some_from(
        &self,
        from: &[u8],
        inside: impl Fn(&[u8]) -> bool,
        keys_max: usize,
        bytes_max: usize,
    ) -> Vec<(Bytes, [u8; N])> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        let walked = Merge::begin(&self.memory, &self.runs, from).and_then(|mut merge| {
            while found.len() < keys_max && bytes < bytes_max {
                match merge.next()? {
                    Some((key, _)) if !inside(&key) => break,
                    Some((_, None)) => {}
                    Some((key, Some(value))) => {
                        bytes += key.len();
                        found.push((Bytes::from(key), value));
                    }
                    None => break,
                }
            }
            Ok(())
        });
        self.checked(walked).map(|()| found).unwrap_or_default()
    }

    /// After many changes, and before many questions: one run takes less time to search than several.
    pub fn settle(&mut self) {
        if self.runs.len() > 1 && !self.failed.get() {
            let merged = self.merge_runs();
            self.checked(merged);
        }
    }

    fn change(&mut self, key: &[u8], value: Option<[u8; N]>) {
        match self.memory.get_mut(key) {
            Some(known) => *known = value,
            None => {
                self.memory.insert(key.into(), value);
                self.memory_bytes += cost::<N>(key);
            }
        }
        if self.memory_bytes > self.bytes_max {
            let spilled = self.spill();
            self.checked(spilled);
        }
    }

    /// Writes what is in memory as the newest run.
    fn spill(&mut self) -> io::Result<()> {
        self.memory_bytes = 0;
        let memory = std::mem::take(&mut self.memory);
        if self.failed.get() {
            return Ok(());
        }
        let run = self.write_run(Merge::begin(&memory, &[], b"")?, self.runs.is_empty())?;
        self.runs.push(run);
        if self.runs.len() > RUNS_MAX { self.merge_runs() } else { Ok(()) }
    }

    fn merge_runs(&mut self) -> io::Result<()> {
        let run = self.write_run(Merge::begin(&BTreeMap::new(), &self.runs, b"")?, true)?;
        self.runs = vec![run];
        Ok(())
    }

    fn write_run(&self, mut merge: Merge<'_, N>, lowest: bool) -> io::Result<Run<N>> {
        let mut writer = RunWriter::create(&self.path)?;
        while let Some((key, value)) = merge.next()? {
            if value.is_some() || !lowest {
                writer.push(&key, value)?;
            }
        }
        writer.finish()
    }

    /// The backend fails with the map.
    fn checked<T>(&self, result: io::Result<T>) -> Option<T> {
        if self.failed.get() {
            return None;
        }
        result
            .inspect_err(|error| {
                self.failed.set(true);
                let source = io::Error::new(error.kind(), error.to_string());
                self.fuse.blow(Failure::Scratch { path: self.path.clone(), source: Arc::new(source) });
            })
            .ok()
    }
}

fn cost<const N: usize>(key: &[u8]) -> usize {
    key.len() + N + ENTRY_BYTES
}

#[cfg(test)]
mod tests;
