//! The log on disk, as the node sees it.

use proto::{raftpb, walpb};

use crate::world::Log;

pub(crate) struct WalLog(pub wal::Wal);

impl Log for WalLog {
    fn append(&mut self, state: Option<&raftpb::HardState>, entries: &[raftpb::Entry]) -> Result<(), wal::Error> {
        self.0.append(state, entries).map(|_| ())
    }

    fn sync(&mut self) -> Result<wal::Saved, wal::Error> {
        self.0.sync()
    }

    fn save_snapshot(&mut self, record: &walpb::Snapshot) -> Result<(), wal::Error> {
        self.0.save_snapshot(record).map(|_| ())
    }

    fn release_to(&mut self, index: u64) -> Result<(), wal::Error> {
        self.0.release_to(index)
    }
}
