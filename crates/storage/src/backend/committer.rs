//! The commit thread: the only one that writes to the file.

use std::{mem, sync::Arc};

use super::{
    Failure, Shared,
    control::{DefragStep, Turn},
    defrag::{self, Recording},
    file::File,
    layer::SharedLayer,
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
                Turn::Defrag(step) => self.defrag(step),
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
        let recording = self.recording.take().unwrap_or_default();
        let (file, report) = defrag::finish(copied, &recording, &self.shared)?;
        self.publish_file(&file, self.shared.state().frozen.clone());
        self.file = file;
        Ok(report)
    }

    /// Makes what is applied durable. After a failure nothing is written any more.
    fn commit(&mut self) {
        if self.shared.failed().is_some() {
            // A reader may have met the failure: then writers do not know yet that there will be no room.
            return self.shared.wake_writers();
        }
        let Some(frozen) = self.freeze() else { return };
        let written = self.file.write(&frozen.read());
        match written {
            Ok(times) => {
                self.shared.pending_bytes.fetch_sub(frozen.read().bytes as u64, std::sync::atomic::Ordering::Relaxed);
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
        let state = State { active: writer.active.clone(), frozen: Some(frozen.clone()), file };
        self.shared.publish(state);
        drop(writer);
        self.shared.wake_writers();
        Some(frozen)
    }

    /// Lets new views read the file as it is now.
    fn publish_file(&self, file: &File, frozen: Option<SharedLayer>) {
        let active = self.shared.state().active.clone();
        self.shared.publish(State { active, frozen, file: file.view() });
        self.shared.note_sizes(file);
    }
}
