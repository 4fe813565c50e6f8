//! The node's world as traits, so that the same node runs on a disk and in a simulator.

use std::time::Duration;

use proto::{raftpb, walpb};

/// Where log entries are kept.
pub(crate) trait Log: Send {
    /// Writes entries and state; they are safe after the next [`Log::sync`].
    fn append(&mut self, state: Option<&raftpb::HardState>, entries: &[raftpb::Entry]) -> Result<(), wal::Error>;

    /// Returns how long it took.
    fn sync(&mut self) -> Result<Duration, wal::Error>;

    fn save_snapshot(&mut self, record: &walpb::Snapshot) -> Result<(), wal::Error>;

    /// Segments that hold nothing after `index` may be removed.
    fn release_to(&mut self, index: u64) -> Result<(), wal::Error>;
}

/// What is worth measuring, told to whoever measures.
pub trait Observer: Send + Sync {
    fn log_synced(&self, _took: Duration) {}
    fn proposal_failed(&self) {}
    fn leader_changed(&self, _leader: u64) {}
    fn lease_revoked(&self) {}
    fn lease_expired(&self) {}
    fn lease_granted(&self, _ttl: i64) {}
    fn lease_renewed(&self) {}
    fn compaction_step(&self, _took: Duration) {}
    fn compaction_finished(&self, _took: Duration) {}
    fn slow_apply(&self) {}
}

/// Measures nothing.
#[derive(Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}
