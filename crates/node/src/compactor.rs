//! The compactor thread: deletes what compactions have made unreachable, a little at a time.

use std::{
    sync::{Arc, mpsc::Receiver},
    time::{Duration, Instant},
};

use storage::Backend;
use tokio::sync::oneshot;

use crate::{error::FatalError, shared::Shared};

pub(crate) struct CompactionTask {
    pub job: mvcc::CompactionJob,
    /// Told when the last key is deleted and the deletion is on disk.
    pub done: oneshot::Sender<()>,
}

pub(crate) struct Compactor {
    pub tasks: Receiver<CompactionTask>,
    pub store: Arc<mvcc::Store>,
    pub backend: Backend,
    pub shared: Arc<Shared>,
    pub batch_limit: usize,
    /// Between two steps, so that other writes get their turn.
    pub pause: Duration,
}

impl Compactor {
    pub fn run(self) {
        while let Ok(task) = self.tasks.recv() {
            match self.compact(task.job) {
                Ok(true) => {
                    let _ = task.done.send(());
                }
                Ok(false) => return,
                Err(error) => return self.shared.fail(error),
            }
        }
    }

    /// False if the node stops before the end; the next start goes on.
    fn compact(&self, mut job: mvcc::CompactionJob) -> Result<bool, FatalError> {
        let begin = Instant::now();
        while self.shared.is_running() {
            let step = Instant::now();
            let progress = job.step(&self.store, self.batch_limit);
            self.shared.observer.compaction_step(step.elapsed());
            if progress.done {
                // A crash must not bring the keys back that a physical compaction has said are gone.
                self.backend.commit().map_err(FatalError::Backend)?;
                self.shared.observer.compaction_finished(begin.elapsed());
                tracing::info!(
                    compact_revision = job.revision(),
                    took = ?begin.elapsed(),
                    "finished scheduled compaction"
                );
                return Ok(true);
            }
            std::thread::sleep(self.pause);
        }
        Ok(false)
    }
}
