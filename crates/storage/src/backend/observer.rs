//! What the backend tells about its work, for metrics.

use std::time::Duration;

/// How long the parts of one commit took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitTimes {
    /// From the first change handed to the file to its being durable.
    pub total: Duration,
    /// Merging pages that became small, splitting those that became large, and laying out the rest.
    pub spill: Duration,
    /// Writing pages, until they are durable.
    pub write: Duration,
    /// Of `write`, waiting for the disk.
    pub sync: Duration,
    /// Changes in this commit.
    pub ops: usize,
}

/// Told about finished work, on the thread that did it: return quickly.
pub trait Observer: Send + Sync {
    fn committed(&self, _times: &CommitTimes) {}
    fn defrag_started(&self) {}
    /// Also after a failed one.
    fn defrag_ended(&self, _took: Duration) {}
    /// A snapshot was read to its end or given up.
    fn snapshot_ended(&self, _took: Duration) {}
}
