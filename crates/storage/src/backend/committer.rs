//! The commit thread: the only one that writes to the file.

use std::{
    mem,
    sync::{Arc, atomic::Ordering},
};

use failpoint::failpoint;

use super::{
    Failure, Shared,
    control::{DefragStep, Step, Turn},
    defrag::{self, Recording},
    file::File,
    layer::SharedLayer,
    take_over::{self, Received, TakeOverError},
    view::State,
};

pub(super) struct Committer {
    shared: Arc<Shared>,
    file: File,
    /// While a defragmentation copies the file: what was committed since the copy began.
    recording: Option<Recording>,
}

/// Runs until told to stop or the last handle is gone.
pub(super) fn run(shared: Arc<Shared>, file: File) {
    // Also when this thread panics, everyone who waits for it must learn.
    struct End(Arc<Shared>);
    impl Drop for End {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.fail(Failure::Panicked);
            }
            self.0.control.ended();
            self.0.wake_writers();
        }
    }
    let end = End(shared.clone());
    Committer { shared, file, recording: None }.run();
    drop(end);
}

impl Committer {
    fn run(mut self) {
        loop {
            let held = self.recording.as_ref().is_some_and(|r| r.bytes() >= self.shared.options.defrag_bytes_max);
            match self.shared.control.next(self.shared.options.batch_interval, held) {
                Turn::Commit { ticket } => {
                    self.commit();
                    self.shared.control.finished(ticket);
                }
                Turn::Step(Step::Defrag(step)) => self.defrag(step),
                Turn::Step(Step::TakeOver(received, reply)) => {
                    let _ = reply.send(self.take_over(*received));
                }
                Turn::Stop { commit } => {
                    if commit {
                        self.commit();
                    }
                    return;
                }
            }
        }
    }

    fn defrag(&mut self, step: DefragStep) {
        match step {
            DefragStep::Begin(reply) => {
                self.commit();
                let begun = self.shared.check().map(|()| {
                    self.recording = Some(Recording::default());
                    self.shared.state().file.clone()
                });
                let _ = reply.send(begun);
            }
            DefragStep::End(copied, reply) => {
                self.commit();
                let _ = reply.send(self.end_defrag(*copied));
            }
            DefragStep::GiveUp => self.recording = None,
        }
    }

    fn end_defrag(&mut self, copied: defrag::Copied) -> Result<defrag::DefragReport, defrag::DefragError> {
        self.shared.check()?;
        // Recording ends early when another file is taken over: the copy is of the one before.
        let replaced = || defrag::DefragError::Replaced { path: self.shared.path.clone() };
        let recording = self.recording.take().ok_or_else(replaced)?;
        let (file, report) = defrag::finish(copied, &recording, &self.shared)?;
        self.publish_file(&file, self.shared.state().frozen.clone());
        self.file = file;
        Ok(report)
    }

    /// Puts the received file in place of this one. What waits for its commit belongs to the old one and is dropped
    /// with it.
    fn take_over(&mut self, received: Received) -> Result<(), TakeOverError> {
        self.shared.check()?;
        let file = take_over::put_in_place(received, &self.shared)?;
        let mut writer = self.shared.writer.lock();
        writer.active = SharedLayer::default();
        writer.generation += 1;
        self.shared.pending_bytes.store(0, Ordering::Relaxed);
        let state =
            State { active: writer.active.clone(), frozen: None, file: file.view(), generation: writer.generation };
        self.shared.replace(state);
        self.shared.note_sizes(&file);
        self.recording = None;
        let old = mem::replace(&mut self.file, file);
        self.shared.room.notify_all();
        drop(writer);
        // Unmapping a large file takes a while.
        drop(old);
        Ok(())
    }

    /// Makes what is applied durable. After a failure nothing is written any more.
    fn commit(&mut self) {
        if self.shared.failed().is_some() {
            // A reader may have met the failure: then writers do not know yet that there will be no room.
            return self.shared.wake_writers();
        }
        let Some(frozen) = self.freeze() else { return };
        failpoint!("beforeCommit");
        let written = self.file.write(&frozen.read());
        failpoint!("afterCommit");
        match written {
            Ok(times) => {
                self.shared.pending_bytes.fetch_sub(frozen.read().bytes as u64, Ordering::Relaxed);
                self.publish_file(&self.file, None);
                if let Some(recording) = &mut self.recording {
                    recording.push(frozen);
                }
                if let Some(observer) = &self.shared.options.observer {
                    observer.committed(&times);
                }
            }
            // The frozen layer stays readable: what was applied remains visible until the member has stopped.
            Err(error) => self.shared.fail(Failure::commit(&self.shared.path, error)),
        }
    }

    /// Puts a new layer in place of the active one, between two units.
    fn freeze(&self) -> Option<SharedLayer> {
        let mut writer = self.shared.writer.lock();
        if writer.active.read().is_empty() {
            return None;
        }
        let frozen = mem::take(&mut writer.active);
        let file = self.shared.state().file.clone();
        let generation = writer.generation;
        let state = State { active: writer.active.clone(), frozen: Some(frozen.clone()), file, generation };
        self.shared.publish(state);
        drop(writer);
        self.shared.wake_writers();
        Some(frozen)
    }

    /// Lets new views read the file as it is now.
    fn publish_file(&self, file: &File, frozen: Option<SharedLayer>) {
        let old = self.shared.state();
        let (active, generation) = (old.active.clone(), old.generation);
        drop(old);
        self.shared.publish(State { active, frozen, file: file.view(), generation });
        self.shared.note_sizes(file);
    }
}
