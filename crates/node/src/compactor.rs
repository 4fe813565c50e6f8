//! The compactor thread: deletes what compactions have made unreachable, a little at a time.
#![expect(clippy::disallowed_methods, reason = "the pauses and the reported durations of a background thread")]

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
    pub(crate) fn run(self) {
        while let Ok(task) = self.tasks.recv() {
            match self.carry_out(task) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.shared.fail(error),
            }
        }
    }

    /// Does one task. False if the node has stopped before its end.
    pub(crate) fn carry_out(&self, task: CompactionTask) -> Result<bool, FatalError> {
        let done = self.compact(task.job)?;
        if done {
            let _ = task.done.send(());
        }
        Ok(done)
    }

    /// False if the node stops before the end; the next start goes on.
    fn compact(&self, mut job: mvcc::CompactionJob) -> Result<bool, FatalError> {
        let begin = Instant::now();
        while self.shared.is_running() {
            let (step, in_index) = (Instant::now(), job.is_in_index());
            let progress = job.step(&self.store, self.batch_limit);
            if in_index {
                self.shared.observer.index_compaction_step(step.elapsed());
            } else {
                self.shared.observer.compaction_step(step.elapsed());
            }
            if progress.done && progress.hash.is_none() {
                // Another member's file has taken the place of the one this was for; its own compaction follows.
                return Ok(true);
            }
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
